#include <leasehold/server/front/gate.h>
#include <leasehold/server/front/io_thread.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/tcp_front.h>

#include <algorithm>
#include <cstring>

namespace leasehold::server {

using asio::ip::tcp;

namespace {

constexpr std::size_t kInputBytes = 16U << 10U;
/// A buffer that one request made larger than this is given back when it is empty.
constexpr std::size_t kInputBytesKept = 64U << 10U;
constexpr std::size_t kOutputBytesKept = 64U << 10U;
/// Before a connection is closed, input after its last reply is read and dropped, until none has
/// come for the first of these times, or for the second: otherwise the system would discard the
/// reply, too.
constexpr auto kLinger = std::chrono::seconds(1);
constexpr auto kLingerMax = std::chrono::seconds(10);
/// How often a connection that ends is asked for more, at most: a client may never stop asking.
constexpr int kLastReads = 16;
/// How often a thread checks whether a connection is idle; all of them in this many steps.
constexpr std::chrono::milliseconds kSweep{1000};
constexpr std::size_t kSweepSteps = 10;
/// Certificates that are looked at again in one step, of 0.2 ms each about.
constexpr std::size_t kCertificateLooks = 20;

}  // namespace

/// A socket with its input and output, around one session.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(IoThread& thread, ClientChannel channel, std::string address)
      : thread_(&thread), channel_(std::move(channel)), linger_(thread.io) {
    session_ = std::make_shared<Session>(
        Session::Context{thread.node, thread.store, thread.state, &thread.counters, &thread,
                         &thread.background(), &thread.events},
        thread.state.next_client_id.fetch_add(1, std::memory_order_relaxed), std::move(address),
        [this] { wake(); });
    if (!channel_.has_tls()) return;
    thread.state.tls_clients.fetch_add(1, std::memory_order_relaxed);
    session_->tls = true;
    session_->certificate_user = channel_.user();
    // A certificate of a user that does not exist, or is off, gives no rights: the client is like
    // one without.
    if (!channel_.user().empty()) session_->authenticate_as(channel_.user());
  }
  ~Connection() {
    thread_->state.input_bytes.fetch_sub(capacity_, std::memory_order_relaxed);
    thread_->state.client_memory.give_back(share_);
    thread_->state.clients.fetch_sub(1, std::memory_order_relaxed);
    if (session_->tls) thread_->state.tls_clients.fetch_sub(1, std::memory_order_relaxed);
  }

  void start() {
    asio::error_code ignored;
    channel_.socket().set_option(tcp::no_delay(true), ignored);
    channel_.socket().non_blocking(true, ignored);
    read();
  }

  /// Runs commands of the input and sends output, while one of the two makes progress and the turn
  /// lasts.
  void pump() {
    if (closed_ || lingering_) return;
    for (;;) {
      if (draining_ || leaving()) {
        session_->process({});
      } else {
        begin_ += session_->process({input_.get() + begin_, end_ - begin_});
        if (begin_ == end_) begin_ = end_ = 0;
      }
      if (session_->output().empty() && sending_.empty()) break;
      if (!send() || !session_->stalled()) break;
    }
    if (closed_ || !pay()) return;
    const bool all_sent = session_->output().empty() && sending_.empty();
    if (session_->finished() && all_sent) return linger();
    if (session_->turn_over()) return take_turn_later();
    if (!leaving()) return read();
    // What is still under way brings it back here.
    if (session_->busy() || !all_sent || queued_) return;
    if (!reading_) return leave();
    // One that only listens may never be heard of again.
    if (!session_->listening() || std::exchange(interrupted_, true)) return;
    asio::error_code ignored;
    channel_.socket().cancel(ignored);
  }
  /// Behind every other connection of the thread that waits for a turn.
  void take_turn_later() {
    if (!std::exchange(queued_, true)) thread_->queue_turn(shared_from_this());
  }

  void stop_reading() { draining_ = true; }
  /// Nothing is read any more but by finish(). What has been read already, and waits for its turn
  /// among the events of this thread, comes to process() before anything that is posted from now
  /// on.
  void prepare_to_finish() {
    finishing_ = true;
    asio::error_code ignored;
    channel_.socket().cancel(ignored);
  }
  /// For the last time: what is ready to be sent is sent, in as many turns as it takes. What has
  /// arrived by now is answered too: a request that is left unread breaks the connection, and its
  /// client would not know what it did.
  void finish() {
    send_all();
    for (int reads = 0; reads < kLastReads && read_now(); ++reads) send_all();
  }

  /// The first step on another thread.
  void arrive(tcp::socket socket) {
    channel_.replace_socket(std::move(socket));
    linger_ = asio::steady_timer(thread_->io);
    asio::error_code ignored;
    channel_.socket().non_blocking(true, ignored);
    session_->move_to(thread_->counters, *thread_, &thread_->events);
    pump();
  }

  /// Called about every kSweep. True: the client has asked nothing for too long.
  bool sweep(lease::Duration idle_timeout) {
    if (session_->busy() || !sending_.empty() || lingering_ || session_->listening()) {
      active_ = coarse_now();
    }
    return idle_timeout > lease::Duration(0) && coarse_now() - active_ > idle_timeout;
  }
  /// As often. True: its first request takes too long to arrive.
  bool slow_to_ask(lease::Duration limit) const {
    return limit > lease::Duration(0) && began_.count() != 0 && !session_->has_asked() &&
           coarse_now() - began_ > limit;
  }
  /// Called as often. True: it is to be pumped.
  bool wants_progress() {
    return !closed_ && !lingering_ && session_->wants_progress(coarse_now());
  }
  bool looks_outdated() const { return channel_.looks_outdated(thread_->state.client_tls); }
  bool is_believed() { return channel_.is_believed(thread_->state.client_tls); }
  bool fits(const ClientFilter& filter) const {
    return (!filter.id || *filter.id == session_->id()) &&
           (!filter.not_id || *filter.not_id != session_->id()) &&
           (filter.address.empty() || filter.address == session_->address());
  }
  std::uint64_t id() const { return session_->id(); }
  std::string describe() const { return session_->describe(idle_seconds()); }
  void close_after_replies() { session_->close_after_replies(); }

  void close() {
    if (closed_) return;
    closed_ = true;
    session_->stop_listening();
    linger_.cancel();
    channel_.close();
    thread_->forget(this);
  }

 private:
  void wake() {
    if (std::exchange(awake_, true)) return;
    thread_->wake(shared_from_this());
  }
  friend class IoThread;

  std::uint64_t idle_seconds() const {
    const auto idle = std::chrono::duration_cast<std::chrono::seconds>(coarse_now() - active_);
    return static_cast<std::uint64_t>(idle.count());
  }

  /// It is among the newcomers, and has shown that it belongs elsewhere.
  bool leaving() const {
    return thread_->next_thread && session_->proven() && !session_->closing() && !draining_ &&
           !finishing_;
  }
  void leave() {
    asio::error_code error;
    const tcp::endpoint own = channel_.socket().local_endpoint(error);
    const int handle = error ? -1 : channel_.socket().release(error);
    if (error) return close();
    auto self = shared_from_this();
    session_->leave_thread();
    thread_->forget(this);
    thread_ = &thread_->next_thread();
    thread_->take_over(std::move(self), own.protocol(), handle);
  }

  /// With so large an input.
  bool affords(std::size_t capacity) {
    using Holder = ClientMemory::Holder;
    const std::size_t held = capacity + sending_.capacity() + session_->held_bytes();
    const Holder holder = session_->is_stranger() ? Holder::stranger : Holder::user;
    return thread_->state.client_memory.set(share_, held, holder);
  }
  bool reserve(std::size_t capacity) {
    if (capacity == capacity_) return true;
    if (!affords(capacity)) return false;
    thread_->state.input_bytes.fetch_add(capacity - capacity_, std::memory_order_relaxed);
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (end_ > begin_) std::memcpy(larger.get(), input_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    input_ = std::move(larger);
    capacity_ = capacity;
    return true;
  }

  /// Counts what it holds by now. False: too much over all connections, and this one was closed.
  bool pay() {
    if (affords(capacity_)) return true;
    session_->multi().clear();  // then there may be room for the answer
    refuse_more(affords(capacity_));
    return false;
  }
  void refuse_more(bool room_to_answer) {
    thread_->counters.connections_large.add();
    if (!room_to_answer) return close();
    // Never before the replies to what is under way.
    if (!session_->busy()) append_error(session_->output(), kMemoryUsedUp);
    session_->close_after_replies();
    if (send() && sending_.empty()) linger();
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
    if (reading_ || draining_ || finishing_ || session_->stalled() || session_->closing()) return;
    if (!make_space()) return refuse_more(true);
    reading_ = true;
    channel_.async_read_some(input_.get() + end_, capacity_ - end_,
                             [self = shared_from_this()](asio::error_code error, std::size_t size) {
                               self->reading_ = false;
                               if (self->closed_) return;
                               if (error && self->finishing_) return;
                               const bool interrupted = std::exchange(self->interrupted_, false);
                               if (interrupted && error == asio::error::operation_aborted) {
                                 return self->pump();
                               }
                               if (error) return self->close();
                               self->active_ = coarse_now();
                               if (self->began_.count() == 0) self->began_ = self->active_;
                               self->end_ += size;
                               self->pump();
                             });
  }

  void send_all() {
    do {
      pump();
    } while (!closed_ && !lingering_ && session_->turn_over() && sending_.empty());
  }

  /// False: nothing has arrived, or nothing more is taken.
  bool read_now() {
    if (closed_ || lingering_ || draining_ || session_->stalled() || session_->closing() ||
        !make_space()) {
      return false;
    }
    asio::error_code error;
    const std::size_t size = channel_.read_some(input_.get() + end_, capacity_ - end_, error);
    end_ += size;
    return !error;
  }

  /// Sends at once what the system takes and the rest when it can. False: some is left.
  bool send() {
    if (!sending_.empty()) return false;
    std::string& output = session_->output();
    std::size_t sent = 0;
    while (sent < output.size()) {
      asio::error_code error;
      sent += channel_.write_some(output.data() + sent, output.size() - sent, error);
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
    channel_.async_write_rest(sending_.data() + sent, sending_.size() - sent,
                              [self = shared_from_this()](asio::error_code error) {
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
    linger_until_ = coarse_now() + kLingerMax;
    channel_.shut_down_sending();
    linger_on();
    drop_input();
  }

  void linger_on() {
    linger_.expires_after(kLinger);
    linger_.async_wait([self = shared_from_this()](asio::error_code error) {
      if (!error) self->close();
    });
  }

  void drop_input() {
    if (closed_) return;
    begin_ = end_ = 0;
    if (capacity_ == 0 && !reserve(kInputBytes)) return close();
    // Of TLS, too: nothing of it is looked at.
    channel_.socket().async_read_some(
        asio::buffer(input_.get(), capacity_),
        [self = shared_from_this()](asio::error_code error, std::size_t) {
          if (error) return self->close();
          if (coarse_now() < self->linger_until_) self->linger_on();
          self->drop_input();
        });
  }

  IoThread* thread_;
  ClientChannel channel_;
  asio::steady_timer linger_;
  std::chrono::nanoseconds linger_until_{0};
  std::shared_ptr<Session> session_;
  /// Uninitialised beyond end_: memory that a client announces and never sends costs nothing.
  std::unique_ptr<char[]> input_;
  ClientMemory::Share share_;
  std::chrono::nanoseconds began_{0};               ///< when its first byte came
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;  ///< begin to end: the bytes that wait
  std::string sending_;                             ///< output that the system did not take at once
  std::chrono::nanoseconds active_ = coarse_now();  ///< when the client's last bytes came
  bool reading_ = false, interrupted_ = false;  ///< interrupted: the reading, to leave the thread
  bool awake_ = false, queued_ = false;  ///< the thread knows of progress; that it waits its turn
  bool draining_ = false, finishing_ = false, lingering_ = false, closed_ = false;
};

// All pending tasks run before any connection sends: replies that became ready together leave in
// one write.
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

void IoThread::queue_turn(std::shared_ptr<Connection> connection) {
  turns_.push_back(std::move(connection));
  if (!std::exchange(turn_scheduled_, true)) asio::post(io, [this] { run_turn(); });
}

// One turn, and then the sockets that have become ready: a client with few requests never waits for
// more than one turn of clients with many.
void IoThread::run_turn() {
  const std::shared_ptr<Connection> connection = std::move(turns_.front());
  turns_.pop_front();
  turn_scheduled_ = !turns_.empty();
  if (turn_scheduled_) asio::post(io, [this] { run_turn(); });
  connection->queued_ = false;
  connection->pump();
}

void IoThread::take_over(std::shared_ptr<Connection> connection, tcp protocol, int handle) {
  asio::post(io, [this, connection = std::move(connection), protocol, handle] {
    tcp::socket socket(io, protocol, handle);
    if (closed_) return;
    connections_.emplace(connection.get(), connection);
    if (draining_) connection->stop_reading();
    connection->arrive(std::move(socket));
  });
}

void IoThread::adopt(tcp::socket socket, std::string address, ClientTls::Mode mode) {
  if (mode == ClientTls::Mode::off) {
    welcome(ClientChannel(std::move(socket)), std::move(address));
  } else {
    greetings_.begin(std::move(socket), std::move(address), mode);
  }
}

void IoThread::welcome(ClientChannel channel, std::string address) {
  if (closed_) {
    state.clients.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  auto connection = std::make_shared<Connection>(*this, std::move(channel), std::move(address));
  connections_.emplace(connection.get(), connection);
  if (draining_) connection->stop_reading();
  connection->start();
}

void IoThread::stop_reading() {
  draining_ = true;
  for (const auto& [key, connection] : connections_) connection->stop_reading();
}

void IoThread::close_all() {
  closed_ = true;
  sweep_.cancel();
  greetings_.close_all();
  for (const auto& [key, connection] : connections_) connection->prepare_to_finish();
  asio::post(io, [this] {
    const auto connections = std::exchange(connections_, {});
    for (const auto& [key, connection] : connections) {
      connection->finish();
      connection->close();
    }
  });
}

void IoThread::sweep() {
  std::vector<std::shared_ptr<Connection>> idle, slow, behind, distrusted;
  std::size_t looks = kCertificateLooks;
  const std::size_t buckets = connections_.bucket_count();
  for (std::size_t i = 0; i < buckets / kSweepSteps + 1; ++i) {
    const std::size_t bucket = next_bucket_++ % buckets;
    for (auto at = connections_.begin(bucket); at != connections_.end(bucket); ++at) {
      if (at->second->sweep(state.options.idle_timeout)) {
        idle.push_back(at->second);
      } else if (at->second->slow_to_ask(state.options.first_request_timeout)) {
        slow.push_back(at->second);
      } else if (looks > 0 && at->second->looks_outdated()) {
        --looks;
        if (!at->second->is_believed()) distrusted.push_back(at->second);
      } else if (at->second->wants_progress()) {
        behind.push_back(at->second);
      }
    }
  }
  counters.connections_idle.add(idle.size());
  counters.connections_slow.add(slow.size());
  counters.tls_distrusted.add(distrusted.size());
  for (const auto* ended : {&idle, &slow, &distrusted}) {
    for (const auto& connection : *ended) connection->close();
  }
  for (const auto& connection : behind) connection->pump();
  greetings_.end_late();
  sweep_.expires_after(kSweep / kSweepSteps);
  sweep_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled && !closed_) sweep();
  });
}

ListedClients IoThread::list(const ClientFilter& filter) const {
  ListedClients listed;
  for (const auto& [key, connection] : connections_) {
    if (connection->fits(filter)) listed.lines[connection->id()] = connection->describe();
  }
  return listed;
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

}  // namespace leasehold::server
