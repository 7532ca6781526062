#include <leasehold/net/tcp_connection.h>

#include <fmt/format.h>

#include <asio/buffer.hpp>
#include <asio/post.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <utility>

namespace leasehold::net {

namespace {

/// Pieces of one gathered write; the kernel's own limit is 1024.
constexpr std::size_t kPiecesPerWrite = 64;
/// Written or read before others get a turn.
constexpr std::size_t kBytesPerTurn = std::size_t{1} << 20U;

/// Keep-alive: after this much silence the kernel probes an accepted connection, this many times,
/// with these pauses. A dialled connection is always written to and needs only the timeout of
/// unacknowledged bytes.
constexpr int kKeepAliveIdleSeconds = 5;
constexpr int kKeepAlivePauseSeconds = 1;
constexpr int kKeepAliveTries = 3;

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

TcpConnection::TcpConnection(asio::ip::tcp::socket socket, Side side, Owner& owner,
                             std::string& scratch, TcpCounters& counters)
    : deadline(socket.get_executor()),
      socket_(std::move(socket)),
      side_(side),
      owner_(&owner),
      scratch_(scratch),
      counters_(counters) {}

void TcpConnection::start(const TcpLimits& limits) {
  asio::error_code error;
  const asio::ip::tcp::endpoint remote = socket_.remote_endpoint(error);
  if (!error) {
    const std::string host = remote.address().to_string();
    address_ = remote.address().is_v6() ? fmt::format("[{}]:{}", host, remote.port())
                                        : fmt::format("{}:{}", host, remote.port());
  }
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
  }
  wait_readable();
}

void TcpConnection::wait_readable() {
  socket_.async_wait(asio::socket_base::wait_read,
                     [self = shared_from_this()](const asio::error_code& error) {
                       // The read that follows reports a wait that failed.
                       if (error != asio::error::operation_aborted) self->read();
                     });
}

void TcpConnection::read() {
  for (std::size_t taken = 0; !closed() && taken < kBytesPerTurn;) {
    asio::error_code error;
    const std::size_t bytes =
        socket_.read_some(asio::buffer(scratch_.data(), scratch_.size()), error);
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
    counters_.bytes_received += bytes;
    taken += bytes;
    if (!take_frames(std::string_view(scratch_.data(), bytes))) return;
    if (bytes < scratch_.size()) break;
  }
  if (!closed()) wait_readable();
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
  if (closed() || waits_to_write_) return;
  for (std::size_t given = 0; !out_.empty() && given < kBytesPerTurn;) {
    Pieces pieces;
    front_pieces(out_, pieces);
    asio::error_code error;
    const std::size_t bytes = socket_.write_some(pieces, error);
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
  if (out_.empty()) return;
  waits_to_write_ = true;
  socket_.async_wait(asio::socket_base::wait_write,
                     [self = shared_from_this()](const asio::error_code& error) {
                       self->waits_to_write_ = false;
                       if (error != asio::error::operation_aborted) self->flush();
                     });
}

void TcpConnection::close() {
  if (closed()) return;
  owner_ = nullptr;
  deadline.cancel();
  out_.clear();
  asio::error_code ignored;
  // An orderly end, so that a refusal that was just written still arrives.
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  socket_.close(ignored);
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
