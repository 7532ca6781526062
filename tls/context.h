// What one end of TLS connections knows: its certificate and key, whom it trusts, or the group's
// key.
//
// Peers speak TLS 1.3 only. They prove who they are by certificates of the group's authority, or by
// the group's key, which is an external pre-shared key of TLS 1.3 (RFC 8446, 4.2.11) with a fresh
// Diffie-Hellman exchange. So both kinds of protection have one record layer, and no cryptographic
// code of our own.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/tls/group_key.h>

#include <memory>
#include <string>
#include <vector>

// Of OpenSSL, so that this header does not include it.
struct ssl_ctx_st;

namespace leasehold::tls {

/// Paths of PEM files. `authority` may hold several certificates, while one authority replaces
/// another.
struct CertificateFiles {
  std::string certificate;  ///< with the chain below the authority, if there is one
  std::string key;          ///< not encrypted; readable for its owner, and for a group at most
  std::string authority;    ///< trusted
  std::string revoked;  ///< a list of revoked certificates, signed by the authority; empty: none
  bool given() const { return !certificate.empty() || !key.empty() || !authority.empty(); }
  friend bool operator==(const CertificateFiles&, const CertificateFiles&) = default;
};

/// What the client port asks of a client.
enum class ClientCertificates : std::uint8_t {
  none,      ///< nothing
  optional,  ///< one that it shows has to be valid
  required,
};

class Context;
using ContextPtr = std::shared_ptr<const Context>;

/// Immutable. Any thread. Errors of the functions that make one: io (a file), invalid_argument
/// (what a file holds, or that a certificate and a key do not belong together); each names the
/// file.
class Context {
 public:
  /// The peer port: accepts peers that prove themselves by a certificate (`files`, null: not
  /// accepted) or by one of `keys` (empty: not accepted). One of the two is there.
  static Result<ContextPtr> accept_peers(const CertificateFiles* files, std::vector<GroupKey> keys);
  /// For dialling peers.
  static Result<ContextPtr> dial_peers(const CertificateFiles& files);
  static Result<ContextPtr> dial_peers(const GroupKey& key);
  /// The client port.
  static Result<ContextPtr> serve_clients(const CertificateFiles& files, ClientCertificates wish);
  /// A client of the client port. `files.certificate` and `files.key` may be empty; without an
  /// authority the system's authorities are trusted.
  static Result<ContextPtr> be_client(const CertificateFiles& files);

  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // For stream.cc.
  ssl_ctx_st* native() const { return native_; }
  const std::vector<GroupKey>& keys() const { return keys_; }
  bool of_peers() const { return of_peers_; }
  /// When the first of its lists of revoked certificates ends, as in session_end.h.
  const std::string& revoked_end() const { return revoked_end_; }
  /// The other side has to have shown a certificate, or proved a key.
  bool demands_proof() const { return demands_proof_; }

 private:
  enum class Side : std::uint8_t { client, server };
  Context(Side side, bool of_peers);
  Result<void> load(const CertificateFiles& files);
  Result<void> trust(const CertificateFiles& files);
  void use_keys(Side side, std::vector<GroupKey> keys);

  ssl_ctx_st* native_;
  bool of_peers_;
  bool demands_proof_ = false;
  std::string revoked_end_;
  std::vector<GroupKey> keys_;
};

}  // namespace leasehold::tls
