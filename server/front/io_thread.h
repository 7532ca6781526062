// One io thread of the client port, and the connections that it serves.
#pragma once

#include <leasehold/server/front/greetings.h>
#include <leasehold/server/front/session.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace leasehold::server {

class Connection;

/// Lines of CLIENT LIST by the client's id. A connection that moves to another thread meanwhile is
/// seen on both threads, and is listed once, as it was seen last.
struct ListedClients {
  std::map<std::uint64_t, std::string> lines;
  ListedClients& operator+=(ListedClients more) {
    more.lines.merge(lines);
    lines.swap(more.lines);
    return *this;
  }
};

/// A thread and its connections. Each connection has turns of bounded work (kTurnWork); between two
/// turns of connections that need more, the thread polls the sockets.
///
/// One of the threads, `back`, also runs the long reads of all connections, and serves new
/// connections until they are proven: see TcpFront.
class IoThread final : public Executor {
 public:
  /// `back` may be null: then it is this one. All arguments outlive the thread.
  IoThread(const ServedGroups& served, ServerState& shared_state, Counters& own_counters,
           IoThread* back)
      : groups(served),
        state(shared_state),
        counters(own_counters),
        events(served),
        aside_(io),
        back_(back == nullptr ? *this : *back),
        work_(io.get_executor()),
        sweep_(io),
        greetings_(io, state, counters, [this](ClientChannel channel, std::string address) {
          welcome(std::move(channel), std::move(address));
        }) {}

  void start();
  /// It gets no further events. Any thread, after start().
  void ignore_events();
  /// Ends when there is nothing left to do.
  void join();
  /// Any thread.
  void post(std::function<void()> task) override;
  /// Tasks that take long: one at a time, and others have their turns between them. Any thread.
  Executor& background() { return back_.aside_; }

  // On this thread.

  /// The connection has something to do once the tasks at hand have run.
  void wake(std::shared_ptr<Connection> connection) { awake_.push_back(std::move(connection)); }
  /// The connection has a turn when all that waited before it have had theirs.
  void queue_turn(std::shared_ptr<Connection> connection);
  /// Makes a connection, after its TLS handshake if there is one, and unless close_all() has been
  /// called.
  void adopt(asio::ip::tcp::socket socket, std::string address, ClientTls::Mode mode);
  void forget(const Connection* connection);
  /// There are as many clients as there may be: the one that is nobody's yet (is_nobodys()), and
  /// has been here for longest, is closed. False: there is none.
  bool make_place();
  void stop_reading();
  void close_all();
  /// This thread's part of CLIENT LIST and CLIENT KILL.
  ListedClients list(const ClientFilter& filter) const;
  std::size_t kill(const ClientFilter& filter, std::uint64_t asker);

  /// Takes a connection from another thread. Any thread.
  void take_over(std::shared_ptr<Connection> connection, asio::ip::tcp protocol, int handle);

  // Connections, which look at these when they end, may be kept by what `io` has still to do.
  const ServedGroups& groups;
  ServerState& state;
  Counters& counters;
  EventHubs events;
  asio::io_context io{1};
  /// The thread to which a proven connection moves; empty: it stays. Set before start().
  std::function<IoThread&()> next_thread;

 private:
  class Aside final : public Executor {
   public:
    explicit Aside(asio::io_context& context) : io_(context) {}
    void post(std::function<void()> task) override { asio::post(io_, std::move(task)); }

   private:
    asio::io_context& io_;
  };

  void welcome(ClientChannel channel, std::string address);
  std::shared_ptr<Connection> oldest_nobodys();
  void look_at_events(std::size_t group);
  /// Behind each task, but for sweep(), it looks for more for `busy` before it waits: a thread that
  /// sleeps needs some tens of microseconds to wake up. Other threads may have the processor
  /// between two looks.
  void run_busily(lease::Duration busy);
  void run_tasks();
  void run_turn();
  void sweep();

  Aside aside_;
  IoThread& back_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer sweep_;
  Greetings greetings_;
  std::thread thread_;
  std::unordered_map<const Connection*, std::shared_ptr<Connection>> connections_;
  /// Among the connections, by id: all that are nobody's are here.
  std::map<std::uint64_t, std::shared_ptr<Connection>> nobodys_;
  /// Of the histories of all groups.
  std::vector<kv::EventHistory::Listener> news_;
  std::size_t next_bucket_ = 0;  ///< of connections_, for the sweep
  std::vector<std::shared_ptr<Connection>> awake_;
  std::deque<std::shared_ptr<Connection>> turns_;
  bool turn_scheduled_ = false;
  std::vector<std::function<void()>> running_;
  bool swept_ = false;  ///< sweep() has run; nobody has asked for anything by it
  bool draining_ = false;
  bool closed_ = false;
  std::mutex mutex_;
  /// Guarded by mutex_. Bounded by the places of the sessions: each posts once.
  std::vector<std::function<void()>> tasks_;
  bool scheduled_ = false;  ///< guarded by mutex_
};

}  // namespace leasehold::server
