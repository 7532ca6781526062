// Listens for notices that a process of a peer has ended. The one part of this room that knows
// datagrams.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/net/handshake.h>
#include <leasehold/raft/types.h>
#include <leasehold/wire/hello.h>

#include <asio/io_context.hpp>
#include <asio/ip/udp.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::net {

/// Counters since the start.
struct NoticeCounters {
  std::uint64_t believed = 0;  ///< the first copy of each
  std::uint64_t late = 0;      ///< of a process whose next one was met already
  std::uint64_t refused = 0;   ///< not a notice, of a process that was never met, or a wrong secret
};

/// A notice is believed if its secret belongs to the process that this node has met last under that
/// number, in a handshake. So it moves nothing for a stranger, and a late copy names a process that
/// has ended in any case. Each datagram costs one hash at most, and is answered only if it is
/// believed: nothing can be made larger by way of this port.
///
/// Threads: as TcpTransport.
class NoticePort {
 public:
  using OnEnd = std::function<void(const raft::Peer& ended)>;

  NoticePort(asio::io_context& io, std::uint64_t cluster_id, raft::NodeId self, OnEnd on_end);
  ~NoticePort();
  NoticePort(const NoticePort&) = delete;
  NoticePort& operator=(const NoticePort&) = delete;

  /// Listens where the peer port listens: the same number, of UDP. Errors: in_use, io; then it
  /// may be called again. Without it the node works as before, and its promises end by time.
  Result<void> listen(const HostPort& at);
  /// A handshake with this process is done.
  void met(const wire::Hello& hello);
  /// Forgets all others.
  void keep(const std::vector<PeerAddress>& peers);
  void stop();
  const NoticeCounters& counters() const { return counters_; }

 private:
  struct Met {
    raft::Peer peer;
    std::string commitment;
    bool ended = false;
  };

  void receive();
  /// The process that has ended, if the notice is believed and so answered.
  std::optional<raft::Peer> take(std::string_view datagram);

  const std::uint64_t cluster_id_;
  const raft::NodeId self_;
  const OnEnd on_end_;
  asio::ip::udp::socket socket_;
  asio::ip::udp::endpoint from_;
  std::array<char, 256> datagram_{};
  /// Of each number the process that was met last.
  std::map<raft::NodeId, Met> met_;
  NoticeCounters counters_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace leasehold::net
