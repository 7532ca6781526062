#include <leasehold/tests/net/tcp_rig.h>

#include <leasehold/wire/codec.h>

#include <asio/buffer.hpp>
#include <asio/write.hpp>

#include <gtest/gtest.h>

#include <array>

namespace leasehold::net {

namespace {

std::string bytes_of(const wire::SendBuffer& buffer) {
  std::vector<std::string_view> views(64);
  std::string all;
  const std::size_t count = buffer.front(views.data(), views.size());
  for (std::size_t i = 0; i < count; ++i) all += views[i];
  return all;
}

}  // namespace

TcpOptions TcpRig::options(std::uint64_t id) {
  TcpOptions options;
  options.cluster_id = kTestCluster;
  options.id = raft::NodeId(id);
  options.uuid = raft::Uuid{id, 100 + id};
  options.incarnation = raft::Incarnation(1);
  options.process = 1000 + id;
  options.listen = "127.0.0.1:0";
  options.limits.reconnect_min = std::chrono::milliseconds(2);
  options.limits.reconnect_max = std::chrono::milliseconds(50);
  return options;
}

TestNode& TcpRig::start(TcpOptions options) {
  const std::uint64_t id = options.id.value();
  if (ports_.count(id) != 0) options.listen = "127.0.0.1:" + std::to_string(ports_[id]);
  auto node = std::make_unique<TestNode>();
  TestNode* raw = node.get();
  TcpCallbacks callbacks;
  callbacks.on_message = [raw](const raft::Peer& from, wire::PeerMessage message) {
    raw->received.emplace_back(from.id, std::move(message));
    if (raw->on_message) raw->on_message();
  };
  callbacks.on_peer = [raw](const raft::Peer& peer) { raw->peers_up.push_back(peer.id); };
  callbacks.accept_peer = [raw](raft::NodeId peer, raft::Uuid uuid, raft::Incarnation incarnation) {
    return raw->accept ? raw->accept(peer, uuid, incarnation) : Result<void>();
  };
  callbacks.judge_stranger = [raw](const wire::Hello& hello) {
    return raw->stranger ? raw->stranger(hello) : std::optional<wire::Refusal>();
  };
  callbacks.judge_introduction = [raw](const wire::Hello& hello) {
    return raw->introduction ? raw->introduction(hello) : std::optional<wire::Refusal>();
  };
  callbacks.on_reject = [raw](const Rejection& rejection) { raw->rejections.push_back(rejection); };
  node->options = options;
  node->transport = std::make_unique<TcpTransport>(io, std::move(options), std::move(callbacks));
  const Result<void> started = node->transport->start();
  EXPECT_TRUE(started.ok()) << started.error().message;
  ports_[id] = node->transport->port();
  nodes_[id] = std::move(node);
  return *raw;
}

void TcpRig::kill(std::uint64_t id) {
  nodes_.erase(id);
}

void TcpRig::introduce(TestNode& peer, TestNode& to) {
  const Result<void> set = to.transport->set_peer(
      PeerAddress{peer.options.id, "127.0.0.1:" + std::to_string(peer.transport->port())});
  EXPECT_TRUE(set.ok());
}

void TcpRig::introduce_all() {
  for (auto& [id, to] : nodes_) {
    for (auto& [other, peer] : nodes_) {
      if (id != other) introduce(*peer, *to);
    }
  }
}

bool TcpRig::run_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    io.restart();
    io.run_one_for(std::chrono::milliseconds(10));
  }
  return true;
}

void TcpRig::poll() {
  io.restart();
  io.poll();
}

bool TcpRig::connect_all() {
  introduce_all();
  return run_until([this] {
    for (const auto& [id, node] : nodes_) {
      for (const auto& [other, peer] : nodes_) {
        if (id != other && !node->transport->connected(raft::NodeId(other))) return false;
      }
    }
    return true;
  });
}

Stranger::Stranger(std::uint16_t port) {
  asio::error_code error;
  socket_.connect(asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), port), error);
  EXPECT_FALSE(error) << error.message();
  socket_.non_blocking(true, error);
}

bool Stranger::send(std::string_view bytes) {
  asio::error_code error;
  socket_.native_non_blocking(false, error);
  asio::write(socket_, asio::buffer(bytes.data(), bytes.size()), error);
  socket_.native_non_blocking(true, error);
  return !error;
}

bool Stranger::ended() {
  std::array<char, 4096> buffer;
  while (!ended_) {
    asio::error_code error;
    const std::size_t bytes = socket_.read_some(asio::buffer(buffer), error);
    received_.append(buffer.data(), bytes);
    if (error == asio::error::would_block || error == asio::error::try_again) break;
    if (error) ended_ = true;
  }
  return ended_;
}

wire::Hello test_hello(std::uint64_t from, std::uint64_t to) {
  wire::Hello hello;
  hello.cluster_id = kTestCluster;
  hello.from = raft::NodeId(from);
  hello.to = raft::NodeId(to);
  hello.uuid = raft::Uuid{from, 100 + from};
  hello.incarnation = raft::Incarnation(1);
  hello.process = 1000 + from;
  return hello;
}

std::string hello_bytes(const wire::Hello& hello) {
  wire::SendBuffer out;
  wire::encode_hello(hello, out);
  return bytes_of(out);
}

std::string message_bytes(const wire::PeerMessage& message) {
  wire::SendBuffer out;
  EXPECT_TRUE(wire::encode_message(message, std::size_t{1} << 30U, out).ok());
  return bytes_of(out);
}

wire::PeerMessage numbered(std::uint64_t number) {
  return with_payload(number, 0);
}

wire::PeerMessage with_payload(std::uint64_t number, std::size_t bytes) {
  return wire::PeerMessage{raft::GroupId(),
                           wire::ForwardRequest{raft::Term(1), raft::Incarnation(1), number,
                                                Bytes(std::string(bytes, 'p'))}};
}

std::uint64_t number_of(const wire::PeerMessage& message) {
  return std::get<wire::ForwardRequest>(message.payload).sequence;
}

}  // namespace leasehold::net
