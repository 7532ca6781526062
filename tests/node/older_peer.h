// A peer of an older build, as far as a handshake shows it: it says which wire versions it speaks,
// and then says and does nothing.
#pragma once

#include <leasehold/wire/frame.h>
#include <leasehold/wire/hello.h>

#include <array>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/write.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace leasehold::node {

class OlderPeer {
 public:
  enum class Manner : std::uint8_t {
    answers,
    waits,  ///< for answer(); until then it is reached, and says nothing
  };
  OlderPeer(raft::NodeId id, raft::Uuid uuid, std::uint16_t port, wire::VersionRange versions,
            Manner manner = Manner::answers)
      : id_(id),
        uuid_(uuid),
        versions_(versions),
        work_(io_.get_executor()),
        acceptor_(io_, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), port)),
        thread_([this] { io_.run(); }) {
    if (manner == Manner::answers) answer();
  }
  ~OlderPeer() {
    io_.stop();
    thread_.join();
  }
  OlderPeer(const OlderPeer&) = delete;
  OlderPeer& operator=(const OlderPeer&) = delete;

  void answer() {
    asio::post(io_, [this] { accept(); });
  }

 private:
  struct Connection {
    explicit Connection(asio::ip::tcp::socket accepted) : socket(std::move(accepted)) {}
    asio::ip::tcp::socket socket;
    wire::FrameReader reader{wire::kHandshakeFrameBytesMax};
    std::array<char, 4096> buffer{};
    bool greeted = false;
  };

  void accept() {
    acceptor_.async_accept([this](asio::error_code error, asio::ip::tcp::socket socket) {
      if (error) return;
      listen(connections_.emplace_back(std::make_shared<Connection>(std::move(socket))));
      accept();
    });
  }
  void listen(const std::shared_ptr<Connection>& from) {
    from->socket.async_read_some(asio::buffer(from->buffer),
                                 [this, from](asio::error_code error, std::size_t bytes) {
                                   if (error) return;
                                   if (!from->greeted) greet(*from, bytes);
                                   listen(from);
                                 });
  }
  void greet(Connection& to, std::size_t bytes) {
    to.reader.feed(std::string_view(to.buffer.data(), bytes));
    auto frame = to.reader.next();
    if (!frame.ok() || !frame.value()) return;
    auto theirs = wire::decode_hello(*frame.value());
    if (!theirs.ok()) return;
    wire::Hello mine;
    mine.versions = versions_;
    mine.cluster_id = theirs.value().cluster_id;
    mine.from = id_;
    mine.to = theirs.value().from;
    mine.uuid = uuid_;
    mine.incarnation = raft::Incarnation(1);
    mine.process = 1;
    mine.purpose = theirs.value().purpose;
    wire::SendBuffer out;
    wire::encode_hello(mine, out);
    std::array<std::string_view, 8> views;
    for (std::size_t i = out.front(views.data(), views.size()), at = 0; at < i; ++at) {
      asio::error_code error;
      asio::write(to.socket, asio::buffer(views[at].data(), views[at].size()), error);
    }
    to.greeted = true;
  }

  raft::NodeId id_;
  raft::Uuid uuid_;
  wire::VersionRange versions_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::ip::tcp::acceptor acceptor_;
  std::list<std::shared_ptr<Connection>> connections_;
  std::thread thread_;
};

}  // namespace leasehold::node
