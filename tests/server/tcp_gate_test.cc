// What is let in at the client port, over real sockets.
#include <leasehold/client/resp_client.h>
#include <leasehold/tests/server/tcp_front_rig.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::server {
namespace {

using client::RespClient;
using std::chrono::milliseconds;
using ::testing::StartsWith;

constexpr milliseconds kPatience = kFrontPatience;

/// Without TLS: these tests send bytes as they are.
class TcpGateTest : public TcpFrontTest {};
INSTANTIATE_TEST_SUITE_P(Kinds, TcpGateTest, ::testing::Values(Kind{1, false}, Kind{2, false}),
                         kind_name);

/// A client that sends bytes as they are.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : socket_(io_) {
    socket_.connect({asio::ip::address_v4::loopback(), port});
  }
  void send(const std::string& bytes) { asio::write(socket_, asio::buffer(bytes)); }
  /// What comes until the connection is closed, or until `size` bytes have come.
  std::string read(std::size_t size = 1U << 20U) {
    std::string bytes;
    asio::async_read(socket_, asio::dynamic_buffer(bytes, size),
                     [](const asio::error_code&, std::size_t) {});
    io_.restart();
    io_.run_for(std::chrono::seconds(20));
    if (!io_.stopped()) {
      ADD_FAILURE() << "the connection stays open";
      socket_.cancel();
      io_.run();
    }
    return bytes;
  }

 private:
  asio::io_context io_;
  asio::ip::tcp::socket socket_;
};

TEST_P(TcpGateTest, HttpIsClosedAndNothingBehindItIsExecuted) {
  ServerOptions options;
  std::atomic<int> said{0};
  options.notice = [&said](const std::string& text) {
    EXPECT_THAT(text, StartsWith("possible cross-protocol scripting attack"));
    ++said;
  };
  open(options);
  for (const char* request : {"POST / HTTP/1.1", "GET / HTTP/1.1", "put /x HTTP/1.0", "hOsT: x",
                              "SET /stolen HTTP/1.1", "DEL /a /b HTTP/2"}) {
    RawClient browser(front_->port());
    const std::string text = std::string(request) + "\r\nSET stolen 1\r\nPING\r\n";
    browser.send(text);
    EXPECT_EQ(browser.read(), "") << request;
  }
  EXPECT_EQ(state_->sum(&Counters::http_requests), 6U);
  EXPECT_EQ(state_->sum(&Counters::writes), 0U);
  EXPECT_EQ(said, 1);
  // A command may have such a word.
  RespClient good = connect();
  EXPECT_EQ(call(good, {"ECHO", "HTTP/1.1"}).text, "HTTP/1.1");
}

TEST_P(TcpGateTest, BytesOfTlsAtAPlainPortAreClosed) {
  ServerOptions options;
  std::atomic<int> said{0};
  options.notice = [&said](const std::string& text) {
    EXPECT_THAT(text, StartsWith("127.0.0.1:"));
    EXPECT_THAT(text, ::testing::HasSubstr("--client-tls"));
    ++said;
  };
  open(options);
  // Whole records, parts of one, and what only begins as one.
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x00\xc8", 5), std::string("\x16"), std::string(3000, '\x16'),
        std::string("\x16\x03\x01\r\nSET stolen 1\r\nPING\r\n"), std::string("\x14\x03"),
        std::string("\x15\x03"), std::string("\x17\x03")}) {
    RawClient client(front_->port());
    client.send(bytes);
    EXPECT_EQ(client.read(), "");
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_EQ(state_->sum(&Counters::protocol_errors), 7U);
  EXPECT_EQ(state_->sum(&Counters::writes), 0U);
  EXPECT_EQ(said, 1);
  // A request may have such a byte.
  RespClient good = connect();
  EXPECT_EQ(call(good, {"ECHO", "\x16"}).text, "\x16");
}

TEST_P(TcpGateTest, ASilentStrangerGivesUpItsPlace) {
  ServerOptions options;
  options.clients_max = 5;
  open(options);
  RespClient user = connect();
  EXPECT_EQ(call(user, {"PING"}).text, "PONG");
  EXPECT_EQ(call(user, {"ACL", "SETUSER", "default", ">secret"}).text, "OK");
  EXPECT_EQ(call(user, {"AUTH", "secret"}).text, "OK");
  RawClient silent(front_->port());
  RawClient half(front_->port());
  half.send("*1\r\n$4\r\nPI");
  RawClient refused(front_->port());
  // A stranger stays one, whatever it asks.
  for (int i = 0; i < 40; ++i) {
    refused.send("RESET\r\n");
    EXPECT_EQ(refused.read(8), "+RESET\r\n");
  }
  RawClient newest(front_->port());
  newest.send("*1\r\n");
  std::vector<RespClient> more;
  for (int i = 0; i < 4; ++i) {
    more.push_back(connect());
    EXPECT_EQ(call(more.back(), {"AUTH", "secret"}).text, "OK");
  }
  for (RawClient* gone : {&silent, &half, &refused, &newest}) EXPECT_EQ(gone->read(), "");
  EXPECT_EQ(state_->sum(&Counters::connections_displaced), 4U);
  expect_refused();
  EXPECT_EQ(call(user, {"PING"}).text, "PONG");
  for (RespClient& one : more) EXPECT_EQ(call(one, {"PING"}).text, "PONG");
}

TEST_P(TcpGateTest, ASilentOneKeepsItsPlaceWhileThereAreOthers) {
  ServerOptions options;
  options.clients_max = 3;
  open(options);
  // As the connections of a pool that has not been used yet.
  RespClient first = connect();
  RespClient second = connect();
  RespClient third = connect();
  EXPECT_EQ(call(third, {"PING"}).text, "PONG");
  EXPECT_EQ(call(second, {"PING"}).text, "PONG");
  EXPECT_EQ(call(first, {"PING"}).text, "PONG");
  expect_refused();
}

TEST_P(TcpGateTest, UnfinishedRequestsHaveOneBudgetAndSmallOnesAreServed) {
  ServerOptions options;
  options.client_memory_max = 8U << 20U;
  open(options);
  std::vector<std::unique_ptr<RawClient>> greedy;
  for (int i = 0; i < 4; ++i) {
    greedy.push_back(std::make_unique<RawClient>(front_->port()));
    const std::string part = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4000000\r\n" + std::string(40000, 'x');
    greedy.back()->send(part);
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (state_->sum(&Counters::connections_large) < 3) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
  EXPECT_LE(state_->client_memory.used(), 6U << 20U);
  RespClient small = connect();
  EXPECT_EQ(call(small, {"SET", "a", "b"}).text, "OK");
  greedy.clear();
  while (state_->client_memory.used() > 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
}

TEST_P(TcpGateTest, QueuesOfTransactionsAreOfTheBudget) {
  ServerOptions options;
  options.client_memory_max = 8U << 20U;
  open(options);
  std::vector<RespClient> greedy;
  std::size_t refused = 0;
  for (int i = 0; i < 12; ++i) {
    greedy.push_back(connect());
    RespClient& client = greedy.back();
    EXPECT_EQ(call(client, {"MULTI"}).text, "OK");
    ASSERT_TRUE(client.send({{"SET", "k", std::string(1200000, 'v')}}, kPatience).ok());
    const auto reply = client.reply(kPatience);
    ASSERT_TRUE(reply.ok());
    if (reply.value().text == "QUEUED") {
      static_cast<void>(client.send({{"PING"}}, kPatience));  // its queue is counted by now
      if (client.reply(kPatience).ok()) continue;
    } else {
      EXPECT_THAT(reply.value().text, ::testing::HasSubstr("--client-memory-max"));
    }
    ++refused;
    EXPECT_FALSE(client.reply(kPatience).ok()) << "it is closed";
  }
  EXPECT_GE(refused, 6U);
  EXPECT_LT(refused, 12U);
  EXPECT_LE(state_->client_memory.used(), 6U << 20U);
  RespClient small = connect();
  EXPECT_EQ(call(small, {"SET", "a", "b"}).text, "OK");
  greedy.clear();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (state_->client_memory.used() > 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
}

TEST_P(TcpGateTest, StrangersLeaveTheMemoryToUsers) {
  ServerOptions options;
  options.client_memory_max = 8U << 20U;
  open(options);
  RespClient user = connect();
  EXPECT_EQ(call(user, {"ACL", "SETUSER", "default", ">secret"}).text, "OK");
  EXPECT_EQ(call(user, {"AUTH", "secret"}).text, "OK");
  std::string part = "*10\r\n";
  for (int i = 0; i < 9; ++i) part += "$16384\r\n" + std::string(16384, 'x') + "\r\n";
  std::vector<std::unique_ptr<RawClient>> strangers;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (state_->sum(&Counters::connections_large) < 3) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    strangers.push_back(std::make_unique<RawClient>(front_->port()));
    strangers.back()->send(part);
    EXPECT_LE(state_->client_memory.used_by_strangers(), 1U << 20U);
  }
  EXPECT_GT(state_->client_memory.used_by_strangers(), 0U);
  EXPECT_EQ(call(user, {"SET", "k", std::string(1500000, 'v')}).text, "OK");
}

TEST_P(TcpGateTest, AFirstRequestThatDoesNotArriveEndsTheConnection) {
  ServerOptions options;
  options.first_request_timeout = std::chrono::seconds(1);
  open(options);
  RespClient pooled = connect();
  RawClient asked(front_->port());
  asked.send("PING\r\n*1\r\n$4\r\nPI");
  EXPECT_EQ(asked.read(7), "+PONG\r\n");
  RawClient slow(front_->port());
  slow.send("*1\r\n$4\r\nPI");
  EXPECT_EQ(slow.read(), "");
  EXPECT_EQ(state_->sum(&Counters::connections_slow), 1U);
  EXPECT_EQ(call(pooled, {"PING"}).text, "PONG");
  asked.send("NG\r\n");
  EXPECT_EQ(asked.read(7), "+PONG\r\n");
}

TEST_P(TcpGateTest, ConnectionsBeyondTheRateWait) {
  ServerOptions options;
  options.connection_rate = 4;
  open(options);
  const auto begun = std::chrono::steady_clock::now();
  std::vector<RespClient> clients;
  for (int i = 0; i < 12; ++i) clients.push_back(connect());
  for (RespClient& client : clients) EXPECT_EQ(call(client, {"PING"}).text, "PONG");
  // Eight at once, and four in another second.
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(700));
  EXPECT_GE(state_->sum(&Counters::connections_delayed), 3U);
}

class TlsGateTest : public TcpFrontTest {};
INSTANTIATE_TEST_SUITE_P(Kinds, TlsGateTest, ::testing::Values(Kind{1, true}, Kind{2, true}),
                         kind_name);

TEST_P(TlsGateTest, ASilentClientIsIdleBeforeItHasSaidWhetherItHasTls) {
  ServerOptions options;
  options.idle_timeout = std::chrono::seconds(1);
  open(options);
  state_->client_tls.replace(ClientTls::Mode::optional, context());
  RawClient silent(front_->port());
  EXPECT_EQ(silent.read(), "");
  EXPECT_EQ(state_->sum(&Counters::connections_idle), 1U);
}

TEST_P(TlsGateTest, ASilentClientGivesUpItsPlaceBeforeItHasSaidWhetherItHasTls) {
  ServerOptions options;
  options.clients_max = 2;
  open(options);
  state_->client_tls.replace(ClientTls::Mode::optional, context());
  RespClient first = connect();
  EXPECT_EQ(call(first, {"PING"}).text, "PONG");
  RawClient silent(front_->port());
  RespClient second = connect();
  EXPECT_EQ(silent.read(), "");
  EXPECT_EQ(call(second, {"PING"}).text, "PONG");
  EXPECT_EQ(call(first, {"PING"}).text, "PONG");
  expect_refused();
}

TEST_P(TlsGateTest, WithoutACertificateNobodyStaysWhoCameByTls) {
  open();
  RespClient client = connect();
  EXPECT_EQ(call(client, {"ECHO", "here"}).text, "here");
  state_->client_tls.replace(ClientTls::Mode::off, context());
  EXPECT_EQ(call(client, {"ECHO", "still"}).text, "still");
  // Nothing can say any more whether what it has shown is still good.
  state_->client_tls.replace(ClientTls::Mode::off, nullptr);
  EXPECT_FALSE(client.reply(kPatience).ok());
  EXPECT_EQ(state_->sum(&Counters::tls_distrusted), 1U);
}

}  // namespace
}  // namespace leasehold::server
