// One socket to a peer: frames in, queued bytes out.
//
// It does not know which peers may talk; tcp_admission.cc decides that.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/net/tcp_transport.h>
#include <leasehold/wire/frame.h>
#include <leasehold/wire/hello.h>

#include <asio/ip/tcp.hpp>
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

  /// `scratch` and `counters` outlive the connection; `owner` outlives it or calls close().
  TcpConnection(asio::ip::tcp::socket socket, Side side, Owner& owner, std::string& scratch,
                TcpCounters& counters);

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
  /// Closes at once; the owner hears nothing more.
  void close();
  bool closed() const { return owner_ == nullptr; }

  Side side() const { return side_; }
  /// Of the other end: address:port.
  const std::string& address() const { return address_; }

  /// Closes the connection when the handshake has not ended in time. The owner arms and cancels it.
  asio::steady_timer deadline;
  /// The hello of the other side, once it is accepted.
  std::optional<wire::Hello> peer;

 private:
  void wait_readable();
  void read();
  /// False: the connection is closed.
  bool take_frames(std::string_view chunk);
  void end(std::optional<RejectReason> reason, Error error);
  void end_later(std::string why);

  asio::ip::tcp::socket socket_;
  Side side_;
  Owner* owner_;
  std::string& scratch_;
  TcpCounters& counters_;
  std::string address_;
  wire::FrameReader reader_{wire::kHandshakeFrameBytesMax};
  wire::SendBuffer out_;
  /// A wait for the kernel's buffer is under way.
  bool waits_to_write_ = false;
};

}  // namespace leasehold::net
