// The admin port over real sockets: its bounds, and what it asks of the node.
#include <leasehold/server/admin/admin_port.h>
#include <leasehold/tests/server/admin_rig.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::server {
namespace {

using asio::ip::tcp;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kReady = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A port over a fake node. Only `answering` does a thread answer what the port asks the node.
class AdminPortTest : public ::testing::Test {
 protected:
  void open(const std::string& listen = "127.0.0.1:0") {
    AdminOptions options;
    options.listen = listen;
    options.data_dir = "/";
    auto port = AdminPort::open(options, *rig_.groups, rig_.state, rig_.sources());
    ASSERT_TRUE(port.ok()) << port.error().message;
    port_ = std::move(port).value();
  }
  /// The node answers each look from now on.
  void answer_looks() {
    worker_ = std::thread([this] {
      while (!stopping_) {
        node().wait_for_calls();
        while (node().statuses() > 0) {
          ++looks_;
          node().end_status(leading_status());
        }
      }
    });
  }
  void TearDown() override {
    port_.reset();
    stopping_ = true;
    if (worker_.joinable()) worker_.join();
    while (node().statuses() > 0) node().end_status(leading_status());  // after the port's end
  }
  FakeNode& node() { return *rig_.nodes.front(); }

  tcp::socket connect() {
    tcp::socket socket(io_);
    socket.connect({asio::ip::address_v4::loopback(), port_->port()});
    return socket;
  }
  static void send(tcp::socket& socket, const std::string& bytes) {
    asio::error_code ignored;
    asio::write(socket, asio::buffer(bytes), ignored);
  }
  /// Until the port closes the connection.
  static std::string rest_of(tcp::socket& socket) {
    std::string out;
    asio::error_code error;
    asio::read(socket, asio::dynamic_buffer(out), error);
    return out;
  }
  std::string ask(const std::string& request) {
    tcp::socket socket = connect();
    send(socket, request);
    return rest_of(socket);
  }

  AdminRig rig_;
  asio::io_context io_;
  std::unique_ptr<AdminPort> port_;
  std::thread worker_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> looks_{0};
};

TEST_F(AdminPortTest, ARequestIsAConnection) {
  open();
  answer_looks();
  const std::string answer = ask(std::string(kReady) + kReady);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos);
  EXPECT_THAT(ask("GET /metrics HTTP/1.0\r\n\r\n"), HasSubstr("\nleasehold_groups_led 1\n"));
}

TEST_F(AdminPortTest, ARequestMayComeByteByByte) {
  open();
  answer_looks();
  tcp::socket socket = connect();
  for (const char* c = kReady; *c != '\0'; ++c) send(socket, std::string(1, *c));
  EXPECT_THAT(rest_of(socket), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(AdminPortTest, ThoseWhoAskAtOneTimeShareOneLook) {
  open();
  std::vector<tcp::socket> sockets;
  for (std::size_t i = 0; i < AdminPort::kConnectionsMax; ++i) {
    sockets.push_back(connect());
    send(sockets.back(), kReady);
  }
  while (node().statuses() == 0) std::this_thread::yield();
  EXPECT_EQ(node().statuses(), 1U);
  node().end_status(leading_status());
  // Those who asked behind it share the next one, or use this one again.
  answer_looks();
  for (tcp::socket& socket : sockets) EXPECT_THAT(rest_of(socket), StartsWith("HTTP/1.1 200"));
  // A look is used for a tenth of a second, and a busy machine may need some of these to ask.
  EXPECT_LE(looks_, static_cast<int>(AdminPort::kConnectionsMax) / 2);
}

TEST_F(AdminPortTest, ThoseWhoDoNotAskMakeRoomForOneThatDoes) {
  open();
  answer_looks();
  std::vector<tcp::socket> silent;
  for (std::size_t i = 0; i < 3 * AdminPort::kConnectionsMax; ++i) {
    silent.push_back(connect());
    send(silent.back(), "GET /readyz HTTP/1.1\r\n");
  }
  EXPECT_THAT(ask(kReady), StartsWith("HTTP/1.1 200 OK\r\n"));
  // The oldest had to go, the youngest is served.
  EXPECT_EQ(rest_of(silent.front()), "");
  send(silent.back(), "Host: localhost\r\n\r\n");
  EXPECT_THAT(rest_of(silent.back()), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(ask("GET /metrics HTTP/1.0\r\n\r\n"),
              HasSubstr("\nleasehold_admin_refused_total{reason=\"crowded\"} "));
}

TEST_F(AdminPortTest, AHeadThatIsTooLongIsRefused) {
  open();
  answer_looks();
  const std::string filler = "GET / HTTP/1.1\r\nX: " + std::string(AdminPort::kHeadBytesMax, 'x');
  EXPECT_THAT(ask(filler), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask(filler + std::string(200'000, 'x')), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask("GET /metrics HTTP/1.0\r\n\r\n"),
              HasSubstr("\nleasehold_admin_refused_total{reason=\"large\"} 2\n"));
}

TEST_F(AdminPortTest, WhatIsNoGetIsRefusedWhateverFollows) {
  open();
  answer_looks();
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x')),
              StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask("*1\r\n$4\r\nPING\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_EQ(ask("\x16\x03\x01 no TLS is offered here"), "");
}

TEST_F(AdminPortTest, ItEndsWhileItsClientsAndItsLookWait) {
  open();
  tcp::socket silent = connect();
  tcp::socket asking = connect();
  send(asking, kReady);
  while (node().statuses() == 0) std::this_thread::yield();
  port_.reset();
  EXPECT_EQ(rest_of(silent), "");
  EXPECT_EQ(rest_of(asking), "");
  node().end_status(leading_status());  // nobody waits for it
}

TEST_F(AdminPortTest, BeyondLoopbackItWantsProtection) {
  const auto opened = [this](const AdminOptions& options) {
    return AdminPort::open(options, *rig_.groups, rig_.state, rig_.sources());
  };
  AdminOptions options;
  for (const char* address : {"0.0.0.0:0", "[::]:0"}) {
    options.listen = address;
    const auto refused = opened(options);
    ASSERT_FALSE(refused.ok()) << address;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(refused.error().message, HasSubstr("--admin-open on"));
  }
  options.listen = "0.0.0.0:0";
  options.open = true;
  EXPECT_TRUE(opened(options).ok());
}

TEST_F(AdminPortTest, AnAddressThatIsNoneOrIsTakenIsRefused) {
  AdminOptions options;
  for (const char* address : {"127.0.0.1", "127.0.0.1:", "no such host.invalid:1"}) {
    options.listen = address;
    const auto refused = AdminPort::open(options, *rig_.groups, rig_.state, rig_.sources());
    ASSERT_FALSE(refused.ok()) << address;
    EXPECT_THAT(refused.error().message, HasSubstr("--admin"));
  }
  open();
  options.listen = "127.0.0.1:" + std::to_string(port_->port());
  const auto taken = AdminPort::open(options, *rig_.groups, rig_.state, rig_.sources());
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace leasehold::server
