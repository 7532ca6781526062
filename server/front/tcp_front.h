// The client port: sockets, io threads and buffers around the sessions.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/server/front/served_groups.h>
#include <leasehold/server/front/server_state.h>

#include <cstdint>
#include <memory>
#include <string>

namespace leasehold::server {

/// Listens, and runs the threads of the clients: one back thread and ServerOptions::io_threads
/// others. A connection starts on the back thread. When it is proven (kProvingCommands) it moves to
/// one of the others, once, and stays there. So a proven client never waits for the work that
/// strangers cause (accepting their connections, refusing their commands, closing broken ones) or
/// for long reads of any connection; and where processors are few, the back thread yields to the
/// others after each piece of its work.
///
/// A read under the lease is answered on the connection's thread: without another thread, a lock or
/// an allocation other than the value's.
class TcpFront {
 public:
  /// `listen` is host:port; port 0 lets the system choose. The other arguments outlive the front.
  /// Errors: invalid_argument (the address), io (it cannot be bound); each says what to do.
  static Result<std::unique_ptr<TcpFront>> open(const std::string& listen,
                                                const ServedGroups& groups, ServerState& state);
  /// Calls stop(). Before it the groups have to have stopped: its completions post to these
  /// threads.
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
