// The client port: sockets, io threads and buffers around the sessions.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/store.h>
#include <leasehold/node/node.h>
#include <leasehold/server/server_state.h>

#include <cstdint>
#include <memory>
#include <string>

namespace leasehold::server {

/// Bytes of requests that are not complete yet, over all connections. Past it a connection that
/// needs a larger buffer is closed with an error.
inline constexpr std::size_t kInputBytesTotalMax = std::size_t{1} << 30U;

/// Listens, and runs the io threads. A connection stays on one thread for its life, and what can be
/// answered there (a read under the lease) is: without a hop, a lock or an allocation beyond the
/// value's own.
class TcpFront {
 public:
  /// `listen` is host:port; port 0 lets the system choose. The other arguments outlive the front.
  /// Errors: invalid_argument (the address), io (it cannot be bound); each says what to do.
  static Result<std::unique_ptr<TcpFront>> open(const std::string& listen, node::Node& node,
                                                const kv::Store& store, ServerState& state);
  /// Calls stop(). Before it the node has to have stopped: its completions post to these threads.
  ~TcpFront();
  TcpFront(const TcpFront&) = delete;
  TcpFront& operator=(const TcpFront&) = delete;

  std::uint16_t port() const;
  /// Takes no further connection and no further request.
  void stop_accepting();
  /// Sends the replies that are ready, closes every connection and ends the threads. Idempotent.
  void stop();

 private:
  class Impl;
  explicit TcpFront(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::server
