// The protection of a node's peer connections as it is in force: files that were read, and what
// follows from them.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/net/peer_security.h>
#include <leasehold/tls/context.h>
#include <leasehold/tls/stream.h>
#include <leasehold/wire/hello.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace leasehold::net {

class PeerGuard;
using GuardPtr = std::shared_ptr<const PeerGuard>;

/// Immutable. Any thread.
class PeerGuard {
 public:
  /// Reads the files. Errors: invalid_argument (a file is missing from the options, or holds
  /// something else), io, malformed; each says what to do.
  static Result<GuardPtr> load(const PeerSecurity& security);
  /// Plain, on loopback.
  static GuardPtr plain();

  const PeerSecurity& security() const { return security_; }
  /// Null: plain.
  const tls::ContextPtr& dialling() const { return dialling_; }
  /// Null: no TLS.
  const tls::ContextPtr& accepting() const { return accepting_; }

  /// Whether what the other side has proved fits what it says in its hello. `stream` is null for a
  /// plain connection. `cluster` is the name of this node's cluster. None: it fits.
  std::optional<wire::Refusal> judge(const tls::Stream* stream, const wire::Hello& hello,
                                     const std::string& cluster) const;
  /// Why plain connections are not taken, and what to do.
  wire::Refusal plain_refused() const;

 private:
  explicit PeerGuard(PeerSecurity security) : security_(std::move(security)) {}

  PeerSecurity security_;
  tls::ContextPtr dialling_;
  tls::ContextPtr accepting_;
};

}  // namespace leasehold::net
