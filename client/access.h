// How a program reaches the servers of a group: plain, or by TLS; and which group it means.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <memory>
#include <string>

namespace leasehold::tls {
class Context;
}

namespace leasehold::client {

/// What every connection of a client shares. Copies are cheap and share what was read from files.
/// Any thread.
///
/// By TLS, a server is believed if its certificate is of the authority, and either names a node of
/// a group (`leasehold cert node` makes such ones) or is for the host that was dialled. The first
/// is what a group is known by whatever its addresses are; the second, what other authorities
/// certify. So an authority should serve one group: a node of another one with the same authority
/// would be believed, too.
class Access {
 public:
  /// Paths of PEM files.
  struct Files {
    std::string authority;    ///< trusted; empty: the authorities that the system trusts
    std::string certificate;  ///< proves who the client is, with `key`; both empty: nothing does
    std::string key;          ///< not encrypted, and not readable for everybody
  };

  /// Plain.
  Access() = default;
  /// Reads the files. Errors: io, invalid_argument; each names the file.
  static Result<Access> by_tls(const Files& files);

  // Of nodes with many groups: which one has the leases, the sessions and whatever else names no
  // key. Without either it is the first one.

  /// The group of that number, from 1 on. Nodes that have no such group refuse the connection.
  Access in_group(std::size_t number) const;
  /// The group of the key, if the nodes have many.
  Access in_group_of(std::string key) const;

  // For the connections of this library.

  /// Null: plain.
  const std::shared_ptr<const tls::Context>& tls() const { return tls_; }
  std::size_t group() const { return group_; }                       ///< 0: none is named
  const std::string& key_of_group() const { return key_of_group_; }  ///< empty: none is named

 private:
  std::shared_ptr<const tls::Context> tls_;
  std::size_t group_ = 0;
  std::string key_of_group_;
};

}  // namespace leasehold::client
