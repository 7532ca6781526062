// The client port: sockets, io threads and buffers around the sessions.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/store.h>
#include <leasehold/node/node.h>
#include <leasehold/server/front/server_state.h>

#include <cstdint>
#include <memory>
#include <string>

namespace leasehold::server {

/// Bytes of requests that are not complete yet, over all connections. Past it a connection that
/// needs a larger buffer is closed with an error.
inline constexpr std::size_t kInputBytesTotalMax = std::size_t{1} << 30U;

/// Listens, and runs the threads of the clients: one back thread and ServerOptions::io_threads
/// others. A connection starts on the back thread. When it is proven (kProvingCommands) it moves to
/// one of the others, once, and stays there. So what strangers cost (taking their connections,
/// refusing their commands, closing what is out of step) and what takes long (long reads, wherever
/// they were asked for) never stands before a proven client; and where processors are few, the back
/// thread gives way to the others after each piece of its work.
///
/// What can be answered on a connection's thread (a read under the lease) is: without a hop, a lock
/// or an allocation beyond the value's own.
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
  /// Takes no further connection: they are refused. Those that exist, and those that wait to be
  /// taken, go on. Idempotent.
  void close_door();
  /// Takes no further connection and no further request.
  void stop_accepting();
  /// Answers what has arrived (a node that has stopped refuses at once), sends the replies that are
  /// ready, closes every connection and ends the threads. Idempotent.
  void stop();

 private:
  class Impl;
  explicit TcpFront(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::server
