#include <leasehold/server/front/connection.h>
#include <leasehold/server/front/gate.h>

#include <asio/buffer.hpp>
#include <asio/error.hpp>

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

void release(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kOutputBytesKept) buffer.shrink_to_fit();
}

}  // namespace

Connection::Connection(IoThread& thread, ClientChannel channel, std::string address)
    : thread_(&thread), channel_(std::move(channel)), linger_(thread.io) {
  session_ =
      std::make_shared<Session>(Session::Context{thread.groups, thread.state, &thread.counters,
                                                 &thread, &thread.background(), &thread.events},
                                thread.state.next_client_id.fetch_add(1, std::memory_order_relaxed),
                                std::move(address), [this] { wake(); });
  if (!channel_.has_tls()) return;
  thread.state.tls_clients.fetch_add(1, std::memory_order_relaxed);
  session_->tls = true;
  session_->certificate_user = channel_.user();
  // A certificate of a user that does not exist, or is off, gives no rights: the client is like
  // one without.
  if (!channel_.user().empty()) session_->authenticate_as(channel_.user());
}
Connection::~Connection() {
  thread_->state.input_bytes.fetch_sub(capacity_, std::memory_order_relaxed);
  thread_->state.client_memory.give_back(share_);
  thread_->state.clients.fetch_sub(1, std::memory_order_relaxed);
  if (session_->tls) thread_->state.tls_clients.fetch_sub(1, std::memory_order_relaxed);
}

void Connection::start() {
  asio::error_code ignored;
  channel_.socket().set_option(tcp::no_delay(true), ignored);
  channel_.socket().non_blocking(true, ignored);
  read();
}

void Connection::pump() {
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

void Connection::prepare_to_finish() {
  finishing_ = true;
  asio::error_code ignored;
  channel_.socket().cancel(ignored);
}

void Connection::finish() {
  send_all();
  for (int reads = 0; reads < kLastReads && read_now(); ++reads) send_all();
}

void Connection::arrive(tcp::socket socket) {
  channel_.replace_socket(std::move(socket));
  linger_ = asio::steady_timer(thread_->io);
  asio::error_code ignored;
  channel_.socket().non_blocking(true, ignored);
  session_->move_to(thread_->counters, *thread_, &thread_->events);
  pump();
}

bool Connection::sweep(lease::Duration idle_timeout) {
  if (session_->busy() || !sending_.empty() || lingering_ || session_->listening()) {
    active_ = coarse_now();
  }
  return idle_timeout > lease::Duration(0) && coarse_now() - active_ > idle_timeout;
}

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  session_->stop_listening();
  linger_.cancel();
  channel_.close();
  thread_->forget(this);
}

void Connection::leave() {
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

bool Connection::affords(std::size_t capacity) {
  using Holder = ClientMemory::Holder;
  const std::size_t held = capacity + sending_.capacity() + session_->held_bytes();
  const Holder holder = session_->is_stranger() ? Holder::stranger : Holder::user;
  return thread_->state.client_memory.set(share_, held, holder);
}

bool Connection::reserve(std::size_t capacity) {
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

bool Connection::pay() {
  if (affords(capacity_)) return true;
  session_->multi().clear();  // then there may be room for the answer
  refuse_more(affords(capacity_));
  return false;
}

void Connection::refuse_more(bool room_to_answer) {
  thread_->counters.connections_large.add();
  if (!room_to_answer) return close();
  // Never before the replies to what is under way.
  if (!session_->busy()) append_error(session_->output(), kMemoryUsedUp);
  session_->close_after_replies();
  if (send() && sending_.empty()) linger();
}

bool Connection::make_space() {
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

void Connection::read() {
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

void Connection::send_all() {
  do {
    pump();
  } while (!closed_ && !lingering_ && session_->turn_over() && sending_.empty());
}

bool Connection::read_now() {
  if (closed_ || lingering_ || draining_ || session_->stalled() || session_->closing() ||
      !make_space()) {
    return false;
  }
  asio::error_code error;
  const std::size_t size = channel_.read_some(input_.get() + end_, capacity_ - end_, error);
  end_ += size;
  return !error;
}

bool Connection::send() {
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

void Connection::send_rest(std::size_t sent) {
  channel_.async_write_rest(sending_.data() + sent, sending_.size() - sent,
                            [self = shared_from_this()](asio::error_code error) {
                              if (self->closed_) return;
                              if (error) return self->close();
                              release(self->sending_);
                              self->pump();
                            });
}

void Connection::linger() {
  lingering_ = true;
  linger_until_ = coarse_now() + kLingerMax;
  channel_.shut_down_sending();
  linger_on();
  drop_input();
}

void Connection::linger_on() {
  linger_.expires_after(kLinger);
  linger_.async_wait([self = shared_from_this()](asio::error_code error) {
    if (!error) self->close();
  });
}

void Connection::drop_input() {
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

}  // namespace leasehold::server
