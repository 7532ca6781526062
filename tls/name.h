// Who a certificate is for, as one URI among the alternative names of its subject.
//
//   leasehold://CLUSTER/node/ID/UUID    a node; UUID is `-` or the uuid of its data directory
//   leasehold://CLUSTER/user/NAME       a user
//
// CLUSTER and NAME are bytes. Letters, digits and - . _ ~ stand for themselves, every other byte is
// %XX with capital digits (RFC 3986). ID is decimal, without leading zeros. There is one URI for
// each name, and parse_uri() accepts no other.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace leasehold::tls {

/// Bytes of a cluster's name, and of a user's.
inline constexpr std::size_t kClusterNameBytesMax = 256;
inline constexpr std::size_t kUserNameBytesMax = 256;
/// The `uuid` of a certificate that is good for every data directory of its node id.
inline constexpr std::string_view kAnyUuid = "-";

/// A node.
struct NodeName {
  std::string cluster;   ///< 1 to kClusterNameBytesMax bytes
  std::uint64_t id = 0;  ///< from 1 on
  std::string uuid;      ///< 32 hexadecimal digits in lower case, not all zero; or kAnyUuid
  friend bool operator==(const NodeName&, const NodeName&) = default;
};

/// A user of the client port.
struct UserName {
  std::string cluster;  ///< as in NodeName
  std::string user;     ///< 1 to kUserNameBytesMax bytes
  friend bool operator==(const UserName&, const UserName&) = default;
};

using CertificateName = std::variant<NodeName, UserName>;

/// Whether the name is within the bounds above. Errors: invalid_argument, with what is wrong.
Result<void> validate_name(const CertificateName& name);

/// The name as a URI; parse_uri() reads it if validate_name() accepts the name.
std::string to_uri(const CertificateName& name);

/// The reverse: accepts what to_uri() makes of a valid name, and nothing else. `uri` may be any
/// bytes. Errors: malformed.
Result<CertificateName> parse_uri(std::string_view uri);

}  // namespace leasehold::tls
