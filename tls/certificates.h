// An authority of a group's own: it makes the certificates of nodes and users, and revokes them.
//
// Keys are EC P-256. Everything is a PEM file in one directory: ca.pem, ca-key.pem, crl.pem, and
// what is made from them.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/tls/context.h>
#include <leasehold/tls/name.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::tls {

/// The longest life of a certificate, in days.
inline constexpr int kDaysMax = 36500;
inline constexpr int kAuthorityDays = 3650;
inline constexpr int kCertificateDays = 365;

/// Files that one call has made.
struct MadeFiles {
  std::string certificate;
  std::string key;
};

/// What a certificate says.
struct CertificateFacts {
  std::string name;        ///< the URI of ours, or "authority of CLUSTER"; empty: neither
  std::string serial;      ///< hexadecimal
  std::string not_before;  ///< "2026-11-25 08:00:00", UTC
  std::string not_after;
  std::int64_t days_left = 0;  ///< full days; negative: it has ended
};

// Errors of all: io (a file, with its path), invalid_argument (a name, days, or what a file holds).
// A file that exists is not overwritten, unless `replace`: then one error says so. Keys are for
// their owner only.

/// ca.pem, ca-key.pem and an empty crl.pem in `directory`, which is made if it does not exist.
Result<MadeFiles> make_authority(const std::string& directory, const std::string& cluster,
                                 bool replace);
/// The cluster whose authority is in `directory`.
Result<std::string> authority_cluster(const std::string& directory);
/// A certificate for `name`, in the directory `out` as STEM.pem and STEM-key.pem. That of a node
/// serves and asks, and is good for `hosts` (names or addresses at which clients reach it); that of
/// a user only asks. Its life begins an hour ago, because clocks differ, and ends after `days`,
/// which may be negative: in tests.
Result<MadeFiles> make_certificate(const std::string& directory, const CertificateName& name,
                                   const std::vector<std::string>& hosts, int days,
                                   const std::string& out, const std::string& stem, bool replace);
/// Puts the certificate in the file `certificate` on the list crl.pem.
Result<void> revoke_certificate(const std::string& directory, const std::string& certificate);
Result<CertificateFacts> read_certificate(const std::string& path);
/// Whether those that trust `files.authority` would believe `files.certificate`, as far as its
/// signatures and the list of revoked certificates decide that; its dates are not judged. Errors:
/// invalid_argument (they would not, and why), io (a file).
Result<void> check_chain(const CertificateFiles& files);
/// A file with one group key (group_key.h).
Result<void> make_group_key(const std::string& path, bool replace);

}  // namespace leasehold::tls
