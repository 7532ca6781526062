#include <leasehold/base/assert.h>
#include <leasehold/server/people_time.h>
#include <leasehold/server/session.h>
#include <leasehold/server/tcp_front.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using asio::ip::tcp;

constexpr std::size_t kInputBytes = 16U << 10U;
/// A buffer that one request made larger than this is given back when it is empty.
constexpr std::size_t kInputBytesKept = 64U << 10U;
constexpr std::size_t kOutputBytesKept = 256U << 10U;
/// After the last reply of a connection that is to be closed, what the client still sends is read
/// and dropped for so long, or the system would throw the reply away with it.
constexpr auto kLinger = std::chrono::seconds(1);
/// How often a thread looks which of its connections are idle.
constexpr auto kSweep = std::chrono::seconds(1);
/// Refused connections are told to the log at most so often.
constexpr auto kSayAgain = std::chrono::seconds(10);
/// Pause after a failed accept: the process is out of file descriptors.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

class Connection;

/// One thread and its connections.
class IoThread final : public Executor {
 public:
  IoThread(node::Node& served_node, const kv::Store& served_store, ServerState& shared_state,
           Counters& own_counters)
      : node(served_node),
        store(served_store),
        state(shared_state),
        counters(own_counters),
        work_(io.get_executor()),
        sweep_(io) {}

  void start() {
    sweep();
    thread_ = std::thread([this] { io.run(); });
  }
  void join() {
    work_.reset();
    if (thread_.joinable()) thread_.join();
  }
  void post(std::function<void()> task) override;
  /// The connection has something to do once the tasks at hand have run.
  void wake(std::shared_ptr<Connection> connection) { awake_.push_back(std::move(connection)); }
  /// Makes a connection, unless close_all() has been called.
  void adopt(tcp::socket socket, std::string address);
  void forget(const Connection* connection) { connections_.erase(connection); }
  void stop_reading();
  void close_all();
  /// This thread's part of CLIENT LIST and CLIENT KILL.
  std::string list(const ClientFilter& filter) const;
  std::size_t kill(const ClientFilter& filter, std::uint64_t asker);

  asio::io_context io{1};
  node::Node& node;
  const kv::Store& store;
  ServerState& state;
  Counters& counters;

 private:
  void run_tasks();
  void sweep();

  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer sweep_;
  std::thread thread_;
  std::unordered_map<const Connection*, std::shared_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Connection>> awake_;
  std::vector<std::function<void()>> running_;
  bool closed_ = false;
  std::mutex mutex_;
  /// Guarded by mutex_. Bounded by the places of the sessions: each posts once.
  std::vector<std::function<void()>> tasks_;
  bool scheduled_ = false;  ///< guarded by mutex_
};

/// A socket with its input and output, around one session.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(IoThread& thread, tcp::socket socket, std::string address)
      : thread_(thread), socket_(std::move(socket)), linger_(thread.io) {
    session_ = std::make_shared<Session>(
        Session::Context{thread.node, thread.store, thread.state, thread.counters, thread},
        thread.state.next_client_id.fetch_add(1, std::memory_order_relaxed), std::move(address),
        [this] { wake(); });
  }
  ~Connection() {
    thread_.state.input_bytes.fetch_sub(capacity_, std::memory_order_relaxed);
    thread_.state.clients.fetch_sub(1, std::memory_order_relaxed);
  }

  void start() {
    asio::error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
    read();
  }

  /// Runs what may run of the input and sends what can be sent, for as long as one lets the other
  /// go on.
  void pump() {
    if (closed_ || lingering_) return;
    for (;;) {
      if (!draining_) {
        begin_ += session_->process({input_.get() + begin_, end_ - begin_});
        if (begin_ == end_) begin_ = end_ = 0;
      }
      if (session_->output().empty() && sending_.empty()) break;
      if (!send() || !session_->stalled()) break;
    }
    if (closed_) return;
    if (session_->finished() && session_->output().empty() && sending_.empty()) return linger();
    read();
  }

  void stop_reading() { draining_ = true; }

  /// Called every kSweep. True: the client has asked nothing for too long.
  bool sweep(lease::Duration idle_timeout) {
    if (session_->busy() || !sending_.empty() || lingering_) {
      quiet_sweeps_ = 0;
      return false;
    }
    ++quiet_sweeps_;
    return idle_timeout > lease::Duration(0) && quiet_sweeps_ * kSweep > idle_timeout;
  }
  bool fits(const ClientFilter& filter) const {
    return (!filter.id || *filter.id == session_->id()) &&
           (!filter.not_id || *filter.not_id != session_->id()) &&
           (filter.address.empty() || filter.address == session_->address());
  }
  std::uint64_t id() const { return session_->id(); }
  std::string describe() const { return session_->describe(quiet_sweeps_); }
  void close_after_replies() { session_->close_after_replies(); }

  void close() {
    if (closed_) return;
    closed_ = true;
    asio::error_code ignored;
    linger_.cancel();
    socket_.close(ignored);
    thread_.forget(this);
  }

 private:
  void wake() {
    if (std::exchange(awake_, true)) return;
    thread_.wake(shared_from_this());
  }
  friend class IoThread;

  bool reserve(std::size_t capacity) {
    if (capacity == capacity_) return true;
    auto& total = thread_.state.input_bytes;
    if (capacity > capacity_ &&
        total.load(std::memory_order_relaxed) + capacity > kInputBytesTotalMax) {
      return false;
    }
    total.fetch_add(capacity - capacity_, std::memory_order_relaxed);
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (end_ > begin_) std::memcpy(larger.get(), input_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    input_ = std::move(larger);
    capacity_ = capacity;
    return true;
  }

  bool make_space() {
    const std::size_t unread = end_ - begin_;
    if (unread == 0) {
      begin_ = end_ = 0;
      const bool fits = capacity_ > 0 && capacity_ <= kInputBytesKept;
      return fits || reserve(kInputBytes);
    }
    const std::size_t wanted = std::max(session_->expected(), unread + kInputBytes / 4);
    if (wanted > capacity_) return reserve(std::max(wanted, 2 * unread));
    if (begin_ > 0 && begin_ + wanted > capacity_) {
      std::memmove(input_.get(), input_.get() + begin_, unread);
      begin_ = 0;
      end_ = unread;
    }
    return true;
  }

  void read() {
    if (reading_ || draining_ || session_->stalled() || session_->closing()) return;
    if (!make_space()) {
      thread_.counters.connections_refused.add();
      append_error(session_->output(), "ERR the server's input buffers are full, try again later");
      session_->close_after_replies();
      if (send() && sending_.empty()) linger();
      return;
    }
    reading_ = true;
    socket_.async_read_some(asio::buffer(input_.get() + end_, capacity_ - end_),
                            [self = shared_from_this()](asio::error_code error, std::size_t size) {
                              self->reading_ = false;
                              if (self->closed_) return;
                              if (error) return self->close();
                              self->quiet_sweeps_ = 0;
                              self->end_ += size;
                              self->pump();
                            });
  }

  /// Sends at once what the system takes and the rest when it can. False: some is left.
  bool send() {
    if (!sending_.empty()) return false;
    std::string& output = session_->output();
    std::size_t sent = 0;
    while (sent < output.size()) {
      asio::error_code error;
      sent += socket_.write_some(asio::buffer(output.data() + sent, output.size() - sent), error);
      if (error == asio::error::would_block) {
        sending_.swap(output);
        send_rest(sent);
        return false;
      }
      if (error) {
        close();
        return false;
      }
    }
    release(output);
    return true;
  }

  void send_rest(std::size_t sent) {
    asio::async_write(socket_, asio::buffer(sending_.data() + sent, sending_.size() - sent),
                      [self = shared_from_this()](asio::error_code error, std::size_t) {
                        if (self->closed_) return;
                        if (error) return self->close();
                        release(self->sending_);
                        self->pump();
                      });
  }

  static void release(std::string& buffer) {
    buffer.clear();
    if (buffer.capacity() > kOutputBytesKept) buffer.shrink_to_fit();
  }

  void linger() {
    lingering_ = true;
    asio::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    linger_.expires_after(kLinger);
    linger_.async_wait([self = shared_from_this()](asio::error_code error) {
      if (!error) self->close();
    });
    drop_input();
  }

  void drop_input() {
    if (closed_) return;
    begin_ = end_ = 0;
    if (capacity_ == 0 && !reserve(kInputBytes)) return close();
    socket_.async_read_some(asio::buffer(input_.get(), capacity_),
                            [self = shared_from_this()](asio::error_code error, std::size_t) {
                              if (error) return self->close();
                              self->drop_input();
                            });
  }

  IoThread& thread_;
  tcp::socket socket_;
  asio::steady_timer linger_;
  std::shared_ptr<Session> session_;
  /// Uninitialised beyond end_: memory that a client announces and never sends costs nothing.
  std::unique_ptr<char[]> input_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0, end_ = 0;  ///< the bytes that wait in input_
  std::string sending_;              ///< output that the system did not take at once
  std::uint32_t quiet_sweeps_ = 0;   ///< since the client's last bytes
  bool reading_ = false;
  bool awake_ = false;
  bool draining_ = false;
  bool lingering_ = false;
  bool closed_ = false;
};

void IoThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (std::exchange(scheduled_, true)) return;
  }
  asio::post(io, [this] { run_tasks(); });
}

// All that is at hand runs before any connection sends: replies that became ready together leave
// in one write.
void IoThread::run_tasks() {
  {
    const std::lock_guard lock(mutex_);
    running_.swap(tasks_);
    scheduled_ = false;
  }
  for (auto& task : running_) task();
  running_.clear();
  for (std::size_t i = 0; i < awake_.size(); ++i) {
    const std::shared_ptr<Connection> connection = std::move(awake_[i]);
    connection->awake_ = false;
    connection->pump();
  }
  awake_.clear();
}

void IoThread::adopt(tcp::socket socket, std::string address) {
  if (closed_) {
    state.clients.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  auto connection = std::make_shared<Connection>(*this, std::move(socket), std::move(address));
  connections_.emplace(connection.get(), connection);
  connection->start();
}

void IoThread::stop_reading() {
  for (const auto& [key, connection] : connections_) connection->stop_reading();
}

void IoThread::close_all() {
  closed_ = true;
  sweep_.cancel();
  const auto connections = std::exchange(connections_, {});
  for (const auto& [key, connection] : connections) connection->close();
}

void IoThread::sweep() {
  std::vector<std::shared_ptr<Connection>> idle;
  for (const auto& [key, connection] : connections_) {
    if (connection->sweep(state.options.idle_timeout)) idle.push_back(connection);
  }
  counters.connections_idle.add(idle.size());
  for (const auto& connection : idle) connection->close();
  sweep_.expires_after(kSweep);
  sweep_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled && !closed_) sweep();
  });
}

std::string IoThread::list(const ClientFilter& filter) const {
  std::string lines;
  for (const auto& [key, connection] : connections_) {
    if (connection->fits(filter)) lines += connection->describe();
  }
  return lines;
}

std::size_t IoThread::kill(const ClientFilter& filter, std::uint64_t asker) {
  std::vector<std::shared_ptr<Connection>> chosen;
  for (const auto& [key, connection] : connections_) {
    if (connection->fits(filter)) chosen.push_back(connection);
  }
  for (const auto& connection : chosen) {
    connection->id() == asker ? connection->close_after_replies() : connection->close();
  }
  return chosen.size();
}

std::string describe(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  const bool v6 = endpoint.address().is_v6();
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

}  // namespace

class TcpFront::Impl final : public ClientDirectory {
 public:
  Impl(node::Node& node, const kv::Store& store, ServerState& state) : state_(state) {
    for (Counters& counters : state.counters) {
      threads_.push_back(std::make_unique<IoThread>(node, store, state, counters));
    }
    state.clients_known = this;
    acceptor_ = std::make_unique<tcp::acceptor>(threads_.front()->io);
    pause_ = std::make_unique<asio::steady_timer>(threads_.front()->io);
  }

  Result<void> listen(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    if (colon == std::string::npos || colon + 1 == address.size()) {
      return Error{ErrorCode::invalid_argument,
                   "cannot listen on '" + address + "': write host:port, as in 127.0.0.1:7201"};
    }
    std::string host = address.substr(0, colon);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    asio::error_code error;
    tcp::resolver resolver(threads_.front()->io);
    const auto found =
        resolver.resolve(host, address.substr(colon + 1), tcp::resolver::passive, error);
    if (error) {
      return Error{ErrorCode::invalid_argument, "cannot listen on '" + address +
                                                    "': " + error.message() +
                                                    ". Write host:port, as in 127.0.0.1:7201"};
    }
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_->open(endpoint.protocol(), error);
    if (!error) acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_->bind(endpoint, error);
    if (!error) acceptor_->listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return Error{ErrorCode::io, "cannot listen for clients on " + describe(endpoint) + ": " +
                                      error.message() +
                                      ". Choose another --listen, or end what uses it"};
    }
    state_.port = port_ = acceptor_->local_endpoint().port();
    for (auto& thread : threads_) thread->start();
    asio::post(threads_.front()->io, [this] { accept(); });
    return {};
  }

  std::uint16_t port() const { return port_; }

  void list(ClientFilter filter, std::function<void(std::string lines)> done) override {
    gather<std::string>([filter](IoThread& thread) { return thread.list(filter); },
                        std::move(done));
  }
  void kill(ClientFilter filter, std::uint64_t asker,
            std::function<void(std::size_t)> done) override {
    gather<std::size_t>([filter, asker](IoThread& thread) { return thread.kill(filter, asker); },
                        std::move(done));
  }

  void stop_accepting() {
    if (std::exchange(accepting_stopped_, true)) return;
    asio::post(threads_.front()->io, [this] {
      asio::error_code ignored;
      pause_->cancel();
      acceptor_->close(ignored);
    });
    for (auto& thread : threads_) {
      asio::post(thread->io, [&thread] { thread->stop_reading(); });
    }
  }

  void stop() {
    if (std::exchange(stopped_, true)) return;
    stop_accepting();
    // Behind everything that was posted before: replies that are ready leave first.
    for (auto& thread : threads_) {
      asio::post(thread->io, [&thread] { thread->close_all(); });
    }
    for (auto& thread : threads_) thread->join();
  }

 private:
  /// Asks every thread, on it, and hands on the sum.
  template <class T>
  void gather(std::function<T(IoThread&)> ask, std::function<void(T)> done) {
    struct Sum {
      std::mutex mutex;
      T value{};
      std::size_t missing = 0;
    };
    auto sum = std::make_shared<Sum>();
    sum->missing = threads_.size();
    for (auto& thread : threads_) {
      asio::post(thread->io, [&thread, sum, ask, done] {
        T part = ask(*thread);
        const std::lock_guard lock(sum->mutex);
        sum->value += part;
        if (--sum->missing == 0) done(std::move(sum->value));
      });
    }
  }

  /// The log is told of refused connections, but not of each.
  void note_refused() {
    ++refused_;
    const auto now = coarse_now();
    if (!state_.options.notice || now - refused_said_ < kSayAgain) return;
    state_.options.notice(
        std::to_string(std::exchange(refused_, 0)) +
        " client connections refused since the last such line: --clients-max is " +
        std::to_string(state_.options.clients_max));
    refused_said_ = now;
  }

  void accept() {
    IoThread& target = *threads_[next_thread_++ % threads_.size()];
    acceptor_->async_accept(target.io, [this, &target](asio::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || !acceptor_->is_open()) return;
      if (error) {
        pause_->expires_after(kAcceptPause);
        pause_->async_wait([this](asio::error_code cancelled) {
          if (!cancelled) accept();
        });
        return;
      }
      take(target, std::move(socket));
      accept();
    });
  }

  void take(IoThread& target, tcp::socket socket) {
    Counters& counters = threads_.front()->counters;
    asio::error_code error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) return;  // gone already
    if (state_.clients.load(std::memory_order_relaxed) >= state_.options.clients_max) {
      counters.connections_refused.add();
      note_refused();
      std::string reply;
      append_error(reply, "ERR max number of clients reached; raise --clients-max of this node");
      socket.non_blocking(true, error);
      socket.write_some(asio::buffer(reply), error);
      return;
    }
    counters.connections.add();
    state_.clients.fetch_add(1, std::memory_order_relaxed);
    auto shared = std::make_shared<tcp::socket>(std::move(socket));
    asio::post(target.io, [&target, shared, address = describe(peer)]() mutable {
      target.adopt(std::move(*shared), std::move(address));
    });
  }

  ServerState& state_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::unique_ptr<tcp::acceptor> acceptor_;  ///< on the first thread
  std::unique_ptr<asio::steady_timer> pause_;
  std::size_t next_thread_ = 0;
  std::size_t refused_ = 0;  ///< since refused_said_
  std::chrono::nanoseconds refused_said_ = -kSayAgain;
  std::uint16_t port_ = 0;
  bool accepting_stopped_ = false;
  bool stopped_ = false;
};

Result<std::unique_ptr<TcpFront>> TcpFront::open(const std::string& listen, node::Node& node,
                                                 const kv::Store& store, ServerState& state) {
  LEASEHOLD_ASSERT(!state.counters.empty());
  auto impl = std::make_unique<Impl>(node, store, state);
  if (auto listening = impl->listen(listen); !listening) return listening.error();
  return std::unique_ptr<TcpFront>(new TcpFront(std::move(impl)));
}

TcpFront::TcpFront(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TcpFront::~TcpFront() {
  stop();
}
std::uint16_t TcpFront::port() const {
  return impl_->port();
}
void TcpFront::stop_accepting() {
  impl_->stop_accepting();
}
void TcpFront::stop() {
  impl_->stop();
}

}  // namespace leasehold::server
