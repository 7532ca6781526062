// Who is let in at the client port, how fast, and what no connection may bring.
#pragma once

#include <leasehold/server/front/command_spec.h>
#include <leasehold/server/front/server_state.h>

#include <asio/ip/address.hpp>

#include <chrono>
#include <cstdint>

namespace leasehold::server {

/// Anybody may use the default user: it has no password. Any thread.
bool default_user_is_open(ServerState& state, const kv::Users& users);

/// 127.0.0.0/8, ::1, and the first of them mapped into IPv6.
bool is_loopback(const asio::ip::address& address);

/// Protected mode refuses connections from `address`, which come to a port in the mode `tls`.
bool is_protected_from(ServerState& state, const kv::Users& users, const asio::ip::address& address,
                       ClientTls::Mode tls);

/// The replies to a connection that protected mode refuses, and to one that wants more memory than
/// there is.
extern const char* const kProtectedModeRefusal;
extern const char* const kMemoryUsedUp;

/// The request is a line or a header of HTTP: a web page has made a browser send it here, to have
/// the commands in its body executed. A page chooses the method and the path, so every `line`
/// (which an array is not) that ends with a version of HTTP is one.
bool is_http(const Arguments& args, bool line);

/// Connections per second, as a bucket of tokens. One thread at a time.
class ConnectionRate {
 public:
  /// `per_second` 0: no limit. As many as two seconds bring may come at once.
  explicit ConnectionRate(std::uint64_t per_second) : per_second_(per_second) {}

  /// Counts a connection at `now`. Returns how long no further one is to be taken; zero: it may be
  /// taken at once.
  std::chrono::nanoseconds take(std::chrono::nanoseconds now);

 private:
  std::uint64_t per_second_;
  /// When the bucket is full again.
  std::chrono::nanoseconds full_at_ = std::chrono::nanoseconds::min();
};

}  // namespace leasehold::server
