// A connected socket to a peer, however it was made, and what is known of its other end.
#pragma once

#include <leasehold/net/peer_streams.h>

#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <functional>
#include <mutex>
#include <string>

namespace leasehold::net {

struct PeerSocket {
  asio::generic::stream_protocol::socket socket;
  std::string address;    ///< of the other end, for people; of TCP: address:port
  bool loopback = false;  ///< TCP: the kernel can say whose the other end is
  bool proved = false;    ///< PeerStreams::proves_peers()
};

PeerSocket of_tcp(asio::ip::tcp::socket socket);

/// Where streams of PeerStreams come in, from any thread, until it is closed. What comes later is
/// closed.
class StreamDoor {
 public:
  /// `io` outlives this, or close() is called before it ends.
  StreamDoor(asio::io_context& io, const PeerStreams& streams)
      : io_(&io), proves_peers_(streams.proves_peers()) {}

  /// Calls `done` later, on the thread that runs `io`. Errors: that of `stream`, or
  /// invalid_argument: it is no connected stream.
  void pass(Result<PeerStream> stream, std::function<void(Result<PeerSocket>)> done);
  void close();

 private:
  Result<PeerSocket> adopt(const PeerStream& stream);

  std::mutex mutex_;
  asio::io_context* io_;  ///< null: closed
  const bool proves_peers_;
};

}  // namespace leasehold::net
