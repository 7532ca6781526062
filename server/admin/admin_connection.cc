#include <leasehold/server/admin/admin_connection.h>
#include <leasehold/server/admin/admin_port.h>

#include <sys/socket.h>

#include <cerrno>

namespace leasehold::server {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
/// What a client that was refused may still send: it would lose the answer to a connection that is
/// reset. And for how long.
constexpr std::size_t kDiscardedMax = std::size_t{256} << 10U;
constexpr std::chrono::seconds kDiscardTimeMax{1};

}  // namespace

void AdminConnection::start() {
  asio::error_code ignored;
  channel_.socket().non_blocking(true, ignored);
  limit(AdminPort::kRequestTimeMax);
  greet();
}

void AdminConnection::close() {
  if (std::exchange(closed_, true)) return;
  deadline_.cancel();
  channel_.close();
  owner_.ended(this);
}

/// From now on; the limit before it counts no more.
void AdminConnection::limit(std::chrono::seconds time) {
  deadline_.expires_after(time);
  deadline_.async_wait([self = shared_from_this()](asio::error_code error) {
    if (error || self->closed_) return;
    ++self->owner_.counts.slow;
    self->close();
  });
}

void AdminConnection::greet() {
  if (closed_) return;
  unsigned char first = 0;
  const auto handle = channel_.socket().native_handle();
  const ssize_t got = channel_.has_tls() ? 1 : ::recv(handle, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return greet_again(ClientChannel::Socket::wait_read);
  }
  if (got <= 0) return close();
  if (!channel_.has_tls() && first != kTlsHandshake) {
    if (owner_.door.plain) return read();
    ++owner_.counts.unproven;
    return refuse(403, "Forbidden", "this port speaks TLS only: write https");
  }
  using State = Greeting::State;
  switch (channel_.greet(owner_.state.client_tls, owner_.state.options.cluster).state) {
    case State::waits_to_read: return greet_again(ClientChannel::Socket::wait_read);
    case State::waits_to_write: return greet_again(ClientChannel::Socket::wait_write);
    case State::ended: return close();
    case State::failed: ++owner_.counts.unproven; return close();
    case State::done: break;
  }
  if (!owner_.door.certificate || !channel_.user().empty()) return read();
  ++owner_.counts.unproven;
  refuse(403, "Forbidden",
         "show the certificate of a user of this cluster: leasehold cert client makes one");
}

void AdminConnection::greet_again(ClientChannel::Socket::wait_type what) {
  channel_.socket().async_wait(what, [self = shared_from_this()](asio::error_code error) {
    if (error) return self->close();
    self->greet();
  });
}

void AdminConnection::read() {
  if (closed_) return;
  channel_.async_read_some(
      buffer_.data(), buffer_.size(),
      [self = shared_from_this()](asio::error_code error, std::size_t got) {
        if (self->closed_) return;
        if (error) return self->close();
        const std::size_t from = self->head_.size() < 3 ? 0 : self->head_.size() - 3;
        self->head_.append(self->buffer_.data(), got);
        const std::size_t end = self->head_.find(kHeadEnd, from);
        if (end == std::string::npos && self->head_.size() < AdminPort::kHeadBytesMax) {
          return self->read();
        }
        if (end == std::string::npos || end > AdminPort::kHeadBytesMax) {
          ++self->owner_.counts.large;
          return self->refuse(431, "Request Header Fields Too Large",
                              "a request here has 16 KiB at most");
        }
        self->head_.resize(end + kHeadEnd.size());
        self->asking_ = false;
        // The answer takes its own time, and how long is bounded where it is made.
        self->limit(AdminPort::kAnswerTimeMax);
        self->owner_.answer(self->head_,
                            [self](std::string answer) { self->write(std::move(answer)); });
      });
}

void AdminConnection::refuse(int status, const char* reason, const char* text) {
  write(plain_answer(status, reason, text));
}

void AdminConnection::write(std::string answer) {
  if (closed_) return;
  asking_ = false;
  limit(AdminPort::kAnswerTimeMax);
  answer_ = std::move(answer);
  std::size_t sent = 0;
  asio::error_code error;
  while (!error && sent < answer_.size()) {
    sent += channel_.write_some(answer_.data() + sent, answer_.size() - sent, error);
  }
  if (!error) return say_farewell();
  if (error != asio::error::would_block) return close();
  write_more(sent);
}

void AdminConnection::write_more(std::size_t sent) {
  channel_.async_write_rest(answer_.data() + sent, answer_.size() - sent,
                            [self = shared_from_this()](asio::error_code error) {
                              if (self->closed_) return;
                              if (error) return self->close();
                              self->say_farewell();
                            });
}

void AdminConnection::say_farewell() {
  channel_.shut_down_sending();
  deadline_.expires_after(kDiscardTimeMax);
  deadline_.async_wait([self = shared_from_this()](asio::error_code error) {
    if (!error) self->close();
  });
  discard();
}

void AdminConnection::discard() {
  if (closed_) return;
  channel_.socket().async_read_some(
      asio::buffer(buffer_), [self = shared_from_this()](asio::error_code error, std::size_t got) {
        self->discarded_ += got;
        if (error || self->discarded_ > kDiscardedMax) return self->close();
        self->discard();
      });
}

}  // namespace leasehold::server
