// The nodes of one group, by their client ports.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/client/resp_client.h>
#include <leasehold/lease/instant.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::client {

/// Stays with one server, the leader if it is among them, while that one answers; moves to the next
/// when it refuses or its connection breaks. One thread at a time.
class ServerGroup {
 public:
  /// Whether executing the command twice does no harm, or it may be executed once at most.
  enum class Repeat : std::uint8_t { harmless, never };

  /// Client addresses, host:port; at least one.
  explicit ServerGroup(std::vector<std::string> servers, Access access = {})
      : servers_(std::move(servers)), access_(std::move(access)) {}

  /// The reply, which is not an error. A slot may have moved since the connection selected its
  /// group: then it selects again. Errors, with the meaning of client/lease_service.h:
  /// unavailable (it was not executed), timed_out (unknown), in_use, not_found; invalid_argument:
  /// it will be refused again, or no server has an address.
  Result<RespValue> call(const std::vector<std::string>& words, lease::Duration timeout,
                         Repeat repeat);
  /// The connection to the server, for exchanges other than calls; call drop() after one that has
  /// not ended. Errors: unavailable, timed_out, invalid_argument.
  Result<RespClient*> connection(lease::Duration timeout);
  /// Hangs up; the next call goes to the next server.
  void drop();

 private:
  Result<void> connect(RespClient::Timeout timeout);
  void seek_leader(RespClient::Timeout timeout);

  const std::vector<std::string> servers_;
  const Access access_;
  std::optional<RespClient> client_;
  /// The server that client_ is connected to, or the next to try.
  std::size_t at_ = 0;
};

}  // namespace leasehold::client
