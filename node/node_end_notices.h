// What a node does so that its peers know when its process has ended, and to know it of theirs.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/net/notice_port.h>
#include <leasehold/net/tcp_transport.h>
#include <leasehold/node/node.h>
#include <leasehold/node/node_deputy.h>
#include <leasehold/raft/types.h>
#include <leasehold/wire/hello.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace leasehold::node {

/// The secret of this process, the deputy that has it, and the port on which notices of others come
/// in. The node's thread.
class EndNotices {
 public:
  /// `program`: the deputy's; empty: this node has none, and still listens for the notices of
  /// others.
  EndNotices(asio::io_context& io, std::string program, net::NoticePort::OnEnd on_end,
             std::function<void(const std::string& line)> say);

  /// Puts into `tcp` what peers have to know of the notice.
  void prepare(net::TcpOptions& tcp);
  /// The transport has started. Nothing that fails here keeps the node from running: it says so.
  void start(const net::TcpTransport& transport);
  void met(const wire::Hello& hello, const net::TcpTransport& transport);
  /// `leads`: the others are to know when this process has ended.
  void stop(bool leads);
  void describe(NodeStatus& status) const;

 private:
  void listen(const net::HostPort& at, std::chrono::seconds pause);

  asio::io_context& io_;
  const std::string program_;
  const net::NoticePort::OnEnd on_end_;
  const std::function<void(const std::string& line)> say_;
  std::string notice_;
  raft::Peer self_;
  std::unique_ptr<net::NoticePort> port_;
  bool listens_ = false;
  asio::steady_timer again_;  ///< until it listens
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<Deputy> deputy_;
  /// Peers, where they were reached last.
  std::map<raft::NodeId, net::HostPort> reached_;
};

}  // namespace leasehold::node
