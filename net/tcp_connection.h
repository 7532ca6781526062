// One socket to a peer: frames in, queued bytes out.
//
// It does not know which peers may talk; tcp_admission.cc decides that.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/net/peer_guard.h>
#include <leasehold/net/tcp_socket.h>
#include <leasehold/net/tcp_transport.h>
#include <leasehold/tls/stream.h>
#include <leasehold/wire/frame.h>
#include <leasehold/wire/hello.h>

#include <asio/steady_timer.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::net {

/// Reads and writes without blocking, on the node's one thread. Reading goes through one scratch
/// buffer that all connections share, so an idle connection holds no memory; writing tries the
/// kernel first and waits only when that is full.
///
/// It opens by proving who both sides are, as far as its guard asks: by TLS, or, on a plain
/// loopback connection, by the user that both processes belong to. Nothing of a frame is read or
/// sent before.
class TcpConnection : public std::enable_shared_from_this<TcpConnection> {
 public:
  enum class Side : std::uint8_t { dialled, accepted };

  /// Hears what happens, from io handlers only. Both calls may close the connection.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_frame(TcpConnection& connection, wire::Frame frame) = 0;
    /// The stream has ended or failed. With a reason: the received bytes were refused. No call
    /// follows.
    virtual void on_end(TcpConnection& connection, std::optional<RejectReason> reason,
                        Error error) = 0;
  };

  /// `scratch` and `counters` outlive the connection; `owner` and `slot`, which may be null,
  /// outlive it or the owner calls close().
  TcpConnection(PeerSocket socket, Side side, Owner& owner, std::string& scratch,
                TcpCounters& counters, GuardPtr guard, tls::SessionSlot* slot = nullptr);

  /// Sets the socket's options and starts to read. Frames are bounded by the handshake's limit
  /// until allow().
  void start(const TcpLimits& limits);
  /// The handshake is done: frames up to `frame_bytes_max` may come.
  void allow(std::size_t frame_bytes_max) { reader_.set_frame_bytes_max(frame_bytes_max); }

  /// What waits to be sent; flush() after adding.
  wire::SendBuffer& out() { return out_; }
  const wire::SendBuffer& out() const { return out_; }
  /// Gives the kernel what it accepts now and sends the rest later.
  void flush();
  /// Another connection takes its place: ends it when all of out() is given to the kernel.
  void end_when_sent();
  /// Closes at once; the owner hears nothing more.
  void close();
  bool closed() const { return owner_ == nullptr; }

  Side side() const { return side_; }
  /// Of the other end: address:port, or what PeerStreams said.
  const std::string& address() const { return end_.address; }
  /// Whether what the other side has proved fits its hello; `cluster` is the name of this node's
  /// cluster.
  std::optional<wire::Refusal> judge_proof(const wire::Hello& hello,
                                           const std::string& cluster) const {
    return guard_->judge(stream_.get(), hello, cluster);
  }
  /// Whether `guard` would still let the other side in, with what it has proved on this connection.
  bool believed_by(const PeerGuard& guard) const;
  /// The guard that it was opened with.
  const PeerGuard& guard() const { return *guard_; }
  /// What the other side has proved: "plain" (nothing), "key NAME", "tls SERIAL".
  std::string proof() const;

  /// Closes the connection when the handshake has not ended in time. The owner arms and cancels it.
  asio::steady_timer deadline;
  /// The hello of the other side, once it is accepted.
  std::optional<wire::Hello> peer;

 private:
  void wait_readable();
  void wait_writable();
  void read();
  /// Goes on with what comes before the first frame. False: it is not done, or the connection is
  /// closed.
  bool open();
  /// An accepted connection shows by its first byte what the dialler speaks. False: none has come,
  /// or it is not taken.
  bool look_at_first_byte();
  bool open_plain();
  bool shake_hands();
  void refuse_plain();
  /// The other end of a plain connection, whose first bytes have come, is not known to be this
  /// user's.
  std::string why_unproved(std::size_t bytes);
  std::size_t read_some(asio::error_code& error);
  std::size_t write_some(asio::error_code& error);
  asio::error_code error_of(const tls::Stream::Step& step);
  /// False: the connection is closed.
  bool take_frames(std::string_view chunk);
  void end(std::optional<RejectReason> reason, Error error);
  void end_later(std::string why);

  PeerSocket end_;
  asio::generic::stream_protocol::socket& socket_ = end_.socket;
  GuardPtr guard_;
  tls::SessionSlot* slot_;
  /// Null: a plain connection, or not known yet.
  std::unique_ptr<tls::Stream> stream_;
  bool open_ = false;
  /// On a plain loopback connection: which user is at the other end is still to be asked.
  bool user_unknown_ = false;
  /// The other end may ask the same about this one.
  bool judged_by_user_ = false;
  Side side_;
  Owner* owner_;
  std::string& scratch_;
  TcpCounters& counters_;
  wire::FrameReader reader_{wire::kHandshakeFrameBytesMax};
  wire::SendBuffer out_;
  /// A wait for the kernel's buffer is under way.
  bool waits_to_write_ = false;
  bool ends_when_sent_ = false;
};

}  // namespace leasehold::net
