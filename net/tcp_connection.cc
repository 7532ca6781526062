#include <leasehold/net/tcp_connection.h>

#include <leasehold/net/tcp_peer_user.h>

#include <fmt/format.h>

#include <asio/buffer.hpp>
#include <asio/post.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace leasehold::net {

namespace {

/// Pieces of one gathered write; the kernel's own limit is 1024.
constexpr std::size_t kPiecesPerWrite = 64;
/// Written or read before others get a turn.
constexpr std::size_t kBytesPerTurn = std::size_t{1} << 20U;
/// A read counts as so many at least: a peer may put one byte into each record.
constexpr std::size_t kBytesPerRead = std::size_t{4} << 10U;

/// Keep-alive: after this much silence the kernel probes an accepted connection, this many times,
/// with these pauses. A dialled connection is always written to and needs only the timeout of
/// unacknowledged bytes.
constexpr int kKeepAliveIdleSeconds = 5;
constexpr int kKeepAlivePauseSeconds = 1;
constexpr int kKeepAliveTries = 3;

/// How long the socket of a plain connection stays for the other end to ask the kernel about it.
constexpr std::chrono::milliseconds kAskedWithin{200};

/// The type of a TLS record with a handshake message (RFC 8446, 5.1): the first byte of every TLS
/// connection.
constexpr char kTlsHandshake = 0x16;
/// Bytes of one TLS record, at most (RFC 8446, 5.1).
constexpr std::size_t kTlsRecordBytes = std::size_t{16} << 10U;

/// The front of a SendBuffer as asio wants to see it.
struct Pieces {
  using value_type = asio::const_buffer;
  using const_iterator = const asio::const_buffer*;
  const_iterator begin() const { return buffers.data(); }
  const_iterator end() const { return buffers.data() + count; }

  std::array<asio::const_buffer, kPiecesPerWrite> buffers;
  std::size_t count = 0;
};

void front_pieces(const wire::SendBuffer& from, Pieces& to) {
  std::array<std::string_view, kPiecesPerWrite> views;
  to.count = from.front(views.data(), views.size());
  for (std::size_t i = 0; i < to.count; ++i) {
    to.buffers[i] = asio::const_buffer(views[i].data(), views[i].size());
  }
}

/// Options are hints: a system without one of them still works.
void set_int_option(int socket, int level, int name, int value) {
  static_cast<void>(::setsockopt(socket, level, name, &value, sizeof value));
}

RejectReason reason_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::overloaded: return RejectReason::oversized;
    case ErrorCode::unsupported_format: return RejectReason::version;
    default: return RejectReason::malformed;
  }
}

bool would_block(const asio::error_code& error) {
  return error == asio::error::would_block || error == asio::error::try_again ||
         error == asio::error::interrupted;
}

}  // namespace

TcpConnection::TcpConnection(PeerSocket socket, Side side, Owner& owner, std::string& scratch,
                             TcpCounters& counters, GuardPtr guard, tls::SessionSlot* slot)
    : deadline(socket.socket.get_executor()),
      end_(std::move(socket)),
      guard_(std::move(guard)),
      slot_(slot),
      side_(side),
      owner_(&owner),
      scratch_(scratch),
      counters_(counters) {}

void TcpConnection::start(const TcpLimits& limits) {
  asio::error_code error;
  socket_.non_blocking(true, error);
  if (error) {
    end_later("cannot be made non-blocking: " + error.message());
    return;
  }
  const int handle = socket_.native_handle();
  set_int_option(handle, IPPROTO_TCP, TCP_NODELAY, 1);
  set_int_option(handle, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_int_option(handle, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set_int_option(handle, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAlivePauseSeconds);
  set_int_option(handle, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveTries);
  if (side_ == Side::dialled) {
    set_int_option(handle, IPPROTO_TCP, TCP_USER_TIMEOUT,
                   static_cast<int>(limits.unacknowledged_timeout.count()));
    // Not here: what goes wrong is for the owner, who is in the middle of its own work.
    if (guard_->dialling() || !open_plain()) {
      asio::post(socket_.get_executor(), [self = shared_from_this()] { self->read(); });
      return;
    }
  }
  wait_readable();
}

void TcpConnection::wait_writable() {
  if (waits_to_write_) return;
  waits_to_write_ = true;
  socket_.async_wait(asio::socket_base::wait_write,
                     [self = shared_from_this()](const asio::error_code& error) {
                       self->waits_to_write_ = false;
                       if (error == asio::error::operation_aborted || self->closed()) return;
                       self->open_ ? self->flush() : self->read();
                     });
}

bool TcpConnection::open() {
  if (side_ == Side::accepted && !stream_ && !look_at_first_byte()) return false;
  if (side_ == Side::dialled && !stream_) {
    if (!guard_->dialling()) {
      end(RejectReason::unproved,
          Error{ErrorCode::invalid_argument, guard_->plain_refused().reason});
      return false;
    }
    stream_ = std::make_unique<tls::Stream>(guard_->dialling(), tls::Stream::Side::dialled,
                                            socket_.native_handle(), slot_);
  }
  if (stream_ && !shake_hands()) return false;
  open_ = true;
  flush();
  return !closed();
}

bool TcpConnection::look_at_first_byte() {
  char first = 0;
  const ssize_t size = ::recv(socket_.native_handle(), &first, 1, MSG_PEEK);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
    wait_readable();
    return false;
  }
  if (size <= 0) {
    end(std::nullopt, Error{ErrorCode::io, "connection lost before the first byte"});
    return false;
  }
  if (first != kTlsHandshake) {
    if (open_plain()) return true;
    refuse_plain();
    return false;
  }
  if (!guard_->accepting()) {
    end(RejectReason::unproved,
        Error{ErrorCode::wrong_cluster,
              "a node dials with TLS, and this one has neither the group's key nor a certificate: "
              "give it one"});
    return false;
  }
  stream_ = std::make_unique<tls::Stream>(guard_->accepting(), tls::Stream::Side::accepted,
                                          socket_.native_handle());
  return true;
}

bool TcpConnection::open_plain() {
  const PeerSecurity& security = guard_->security();
  const bool wanted = side_ == Side::dialled ? security.dial == Protection::plain
                                             : security.accepts(Protection::plain);
  if (!wanted) return false;
  if (security.plain_beyond_loopback || end_.proved) return open_ = true;
  if (!end_.loopback) return false;
  // A listening process that has not accepted yet cannot be asked for: it is when its first bytes
  // have come.
  user_unknown_ = side_ == Side::dialled;
  if (!user_unknown_ && !same_user_at_other_end(socket_.native_handle())) return false;
  judged_by_user_ = side_ == Side::accepted;
  return open_ = true;
}

bool TcpConnection::shake_hands() {
  const tls::Stream::Step step = stream_->handshake();
  switch (step.state) {
    case tls::Stream::State::done: return true;
    case tls::Stream::State::wants_read: wait_readable(); return false;
    case tls::Stream::State::wants_write: wait_writable(); return false;
    case tls::Stream::State::ended:
      // The refusal of a node without TLS is no TLS, and its end looks like any other.
      end(side_ == Side::dialled ? std::optional(RejectReason::unproved) : std::nullopt,
          Error{ErrorCode::io,
                "the connection ended in the TLS handshake: does the other node have this "
                "protection?"});
      return false;
    case tls::Stream::State::failed: break;
  }
  end(RejectReason::unproved, Error{ErrorCode::wrong_cluster, stream_->problem()});
  return false;
}

void TcpConnection::refuse_plain() {
  const wire::Refusal refusal = guard_->plain_refused();
  out_.clear();
  wire::encode_refusal(refusal, out_);
  open_ = true;
  flush();
  // Bytes that nobody has read would make the system cut the connection, and the reason with it.
  asio::error_code ignored;
  socket_.read_some(asio::buffer(scratch_.data(), scratch_.size()), ignored);
  end(RejectReason::unproved, Error{ErrorCode::wrong_cluster, refusal.reason});
}

std::string TcpConnection::why_unproved(std::size_t bytes) {
  // A node that takes no plain connections has closed its end already, so the kernel does not know
  // it any more.
  reader_.feed(std::string_view(scratch_.data(), bytes));
  const Result<std::optional<wire::Frame>> frame = reader_.next();
  if (frame.ok() && frame.value() && frame.value()->header.kind == wire::FrameKind::refusal) {
    const Result<wire::Refusal> refusal = wire::decode_refusal(*frame.value());
    if (refusal.ok() && refusal.value().code == wire::RefusalCode::unproved) {
      return refusal.value().reason;
    }
  }
  return guard_->plain_refused().reason;
}

bool TcpConnection::believed_by(const PeerGuard& guard) const {
  if (!open_) return false;
  if (!stream_) {
    // While plain connections go beyond loopback, nobody asks whose they are.
    const bool known = end_.proved || !guard_->security().plain_beyond_loopback;
    return guard.security().accepts(Protection::plain) &&
           (known || guard.security().plain_beyond_loopback);
  }
  // What this node dials by it accepts, too, and it accepts every key of the group.
  return guard.accepting() && stream_->believed_by(*guard.accepting());
}

std::string TcpConnection::proof() const {
  if (!stream_) return "plain";
  const std::string& key = stream_->peer_key();
  return key.empty() ? "tls " + stream_->peer_serial() : "key " + key;
}

asio::error_code TcpConnection::error_of(const tls::Stream::Step& step) {
  switch (step.state) {
    case tls::Stream::State::done: return {};
    case tls::Stream::State::wants_read: return asio::error::would_block;
    case tls::Stream::State::wants_write: wait_writable(); return asio::error::would_block;
    case tls::Stream::State::ended: return asio::error::eof;
    case tls::Stream::State::failed: return asio::error::connection_aborted;
  }
  return asio::error::connection_aborted;
}

std::size_t TcpConnection::read_some(asio::error_code& error) {
  if (!stream_) return socket_.read_some(asio::buffer(scratch_.data(), scratch_.size()), error);
  const tls::Stream::Step step = stream_->read(scratch_.data(), scratch_.size());
  error = error_of(step);
  return step.bytes;
}

std::size_t TcpConnection::write_some(asio::error_code& error) {
  Pieces pieces;
  if (!stream_) {
    front_pieces(out_, pieces);
    return socket_.write_some(pieces, error);
  }
  // As much as one record takes, copied together: small messages that leave at once share a record.
  std::array<std::string_view, kPiecesPerWrite> views;
  const std::size_t count = out_.front(views.data(), views.size());
  std::array<char, kTlsRecordBytes> record;
  std::size_t size = 0;
  for (std::size_t i = 0; i < count && size < record.size(); ++i) {
    size += views[i].copy(record.data() + size, record.size() - size);
  }
  const tls::Stream::Step step = stream_->write({record.data(), size});
  error = error_of(step);
  return step.bytes;
}

void TcpConnection::wait_readable() {
  socket_.async_wait(asio::socket_base::wait_read,
                     [self = shared_from_this()](const asio::error_code& error) {
                       // The read that follows reports a wait that failed.
                       if (error != asio::error::operation_aborted) self->read();
                     });
}

void TcpConnection::read() {
  if (closed() || (!open_ && !open())) return;
  for (std::size_t taken = 0; !closed() && taken < kBytesPerTurn;) {
    asio::error_code error;
    const std::size_t bytes = read_some(error);
    if (would_block(error)) break;
    if (error == asio::error::eof && reader_.held_bytes() > 0) {
      end(RejectReason::malformed,
          Error{ErrorCode::malformed, "malformed frame: the connection ended inside of it"});
      return;
    }
    if (error) {
      end(std::nullopt, Error{ErrorCode::io, "connection lost: " + error.message()});
      return;
    }
    if (std::exchange(user_unknown_, false) && !same_user_at_other_end(socket_.native_handle())) {
      end(RejectReason::unproved, Error{ErrorCode::wrong_cluster, why_unproved(bytes)});
      return;
    }
    counters_.bytes_received += bytes;
    taken += std::max(bytes, kBytesPerRead);
    if (!take_frames(std::string_view(scratch_.data(), bytes))) return;
    // Then the socket has no more, or becomes readable again.
    if (stream_ ? !stream_->has_pending() : bytes < scratch_.size()) break;
  }
  if (closed()) return;
  // What TLS has read already does not make the socket readable again.
  if (stream_ && stream_->has_pending()) {
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->read(); });
  } else {
    wait_readable();
  }
}

bool TcpConnection::take_frames(std::string_view chunk) {
  reader_.feed(chunk);
  for (;;) {
    Result<std::optional<wire::Frame>> frame = reader_.next();
    if (!frame.ok()) {
      end(reason_of(frame.error().code), frame.error());
      return false;
    }
    if (!frame.value()) return true;
    owner_->on_frame(*this, std::move(*frame.value()));
    if (closed()) return false;
  }
}

void TcpConnection::flush() {
  if (closed() || !open_ || waits_to_write_) return;
  for (std::size_t given = 0; !out_.empty() && given < kBytesPerTurn;) {
    asio::error_code error;
    const std::size_t bytes = write_some(error);
    if (would_block(error)) break;
    if (error) {
      out_.clear();
      end_later("connection lost: " + error.message());
      return;
    }
    out_.consume(bytes);
    counters_.bytes_sent += bytes;
    given += bytes;
  }
  if (!out_.empty()) return wait_writable();
  if (ends_when_sent_) end_later("another connection has taken its place");
}

void TcpConnection::end_when_sent() {
  if (stream_) stream_->forget_slot();
  ends_when_sent_ = true;
  flush();
}

void TcpConnection::close() {
  if (closed()) return;
  owner_ = nullptr;
  deadline.cancel();
  out_.clear();
  asio::error_code ignored;
  if (stream_) {
    stream_->shut_down();
    stream_->forget_slot();
  }
  // An orderly end, so that a refusal that was just written still arrives.
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  if (!judged_by_user_) {
    socket_.close(ignored);
    return;
  }
  // The other end asks whose process this one is when it has read what came last, which may be why
  // it is refused.
  deadline.expires_after(kAskedWithin);
  deadline.async_wait([self = shared_from_this()](const asio::error_code&) {
    asio::error_code also_ignored;
    self->socket_.close(also_ignored);
  });
}

void TcpConnection::end_later(std::string why) {
  // Not at once: the owner may be in the middle of its own work.
  asio::post(socket_.get_executor(), [self = shared_from_this(), why = std::move(why)] {
    self->end(std::nullopt, Error{ErrorCode::io, why});
  });
}

void TcpConnection::end(std::optional<RejectReason> reason, Error error) {
  if (!closed()) owner_->on_end(*this, reason, std::move(error));
}

}  // namespace leasehold::net
