// Several TcpTransports on loopback in one io_context, and a stranger that may send any bytes.
#pragma once

#include <leasehold/net/tcp_transport.h>
#include <leasehold/wire/frame.h>
#include <leasehold/wire/hello.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::net {

inline constexpr std::uint64_t kTestCluster = 0xc1;

/// A node that does nothing but remember what its transport tells it.
struct TestNode {
  std::unique_ptr<TcpTransport> transport;
  TcpOptions options;
  std::vector<std::pair<raft::NodeId, wire::PeerMessage>> received;
  std::vector<raft::NodeId> peers_up;
  std::vector<Rejection> rejections;
  /// What accept_peer answers; empty: it accepts all.
  std::function<Result<void>(raft::NodeId, raft::Uuid, raft::Incarnation)> accept;
  /// What judge_stranger and judge_introduction answer; empty: they accept all.
  std::function<std::optional<wire::Refusal>(const wire::Hello&)> stranger;
  std::function<std::optional<wire::Refusal>(const wire::Hello&)> introduction;
  /// Called after a message is remembered.
  std::function<void()> on_message;

  std::uint64_t rejected(RejectReason reason) const {
    return transport->counters().rejected[static_cast<std::size_t>(reason)];
  }
};

class TcpRig {
 public:
  /// The options of every node; change `limits` before start().
  static TcpOptions options(std::uint64_t id);

  /// Starts a transport of `options`. A node of the same number that was stopped before keeps its
  /// port. The other nodes do not know it: see introduce().
  TestNode& start(TcpOptions options);
  TestNode& start(std::uint64_t id) { return start(options(id)); }
  /// The process is gone, its connections with it.
  void kill(std::uint64_t id);
  /// Tells `to` where `peer` listens.
  void introduce(TestNode& peer, TestNode& to);
  /// Tells all nodes about all others.
  void introduce_all();
  TestNode& node(std::uint64_t id) { return *nodes_.at(id); }

  /// Runs until `condition` holds; false after a deadline that only a failure reaches.
  bool run_until(const std::function<bool()>& condition);
  /// Runs for as long as anything is ready, without waiting.
  void poll();
  bool connect_all();

  asio::io_context io;

 private:
  std::map<std::uint64_t, std::unique_ptr<TestNode>> nodes_;
  std::map<std::uint64_t, std::uint16_t> ports_;
};

/// A client that speaks bytes, not messages. Blocking, so only for little data.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port);
  /// False: the connection is gone.
  bool send(std::string_view bytes);
  /// Whether the other side has ended the connection. Reads what has arrived so far.
  bool ended();
  /// Everything that came; see ended().
  const std::string& received() const { return received_; }

 private:
  asio::io_context io_;
  asio::ip::tcp::socket socket_{io_};
  std::string received_;
  bool ended_ = false;
};

/// The bytes of a hello of node `from` to node `to`, and of any message.
wire::Hello test_hello(std::uint64_t from, std::uint64_t to);
std::string hello_bytes(const wire::Hello& hello);
std::string message_bytes(const wire::PeerMessage& message);

/// A message with a number of its own.
wire::PeerMessage numbered(std::uint64_t number);
wire::PeerMessage with_payload(std::uint64_t number, std::size_t bytes);
std::uint64_t number_of(const wire::PeerMessage& message);

}  // namespace leasehold::net
