// The client port over real sockets, with a fake node behind it.
#include <leasehold/client/resp_client.h>
#include <leasehold/kv/command.h>
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/server/front/session.h>
#include <leasehold/server/front/tcp_front.h>
#include <leasehold/tests/server/store_over.h>
#include <leasehold/tests/server/tcp_front_rig.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using client::RespClient;
using client::RespValue;

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

constexpr milliseconds kPatience = kFrontPatience;

TEST_P(TcpFrontTest, AnswersOverASocket) {
  open();
  RespClient client = connect();
  EXPECT_EQ(call(client, {"PING"}).text, "PONG");
  EXPECT_EQ(call(client, {"SET", "k", "v"}).text, "OK");
  EXPECT_EQ(call(client, {"GET", "k"}).text, "v");
  EXPECT_EQ(call(client, {"GET", "none"}).kind, RespValue::Kind::null);
  EXPECT_EQ(call(client, {"INCR", "n"}).integer, 1);
  EXPECT_THAT(call(client, {"INFO"}).text, HasSubstr("connected_clients:1"));
}

TEST_P(TcpFrontTest, LargeValuesGoThroughWhole) {
  open();
  RespClient client = connect();
  const std::string value(kv::kValueBytesMax, 'v');
  ASSERT_EQ(call(client, {"SET", "large", value}).text, "OK");
  EXPECT_EQ(call(client, {"GET", "large"}).text, value);
  EXPECT_THAT(call(client, {"SET", "k", value + "v"}).text, StartsWith("ERR "));
  EXPECT_EQ(call(client, {"PING"}).text, "PONG");
}

TEST_P(TcpFrontTest, DeepPipelinesComeBackInOrder) {
  open();
  RespClient client = connect();
  std::vector<Words> commands;
  for (int i = 0; i < 5000; ++i) {
    commands.push_back({"SET", "k", std::to_string(i)});
    if (i % 3 == 0) commands.push_back({"GET", "k"});
    if (i % 7 == 0) commands.push_back({"ECHO", std::to_string(i)});
  }
  ASSERT_TRUE(client.send(commands, kPatience).ok());
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(client.reply(kPatience).value().text, "OK");
    if (i % 3 == 0) {
      ASSERT_EQ(client.reply(kPatience).value().text, std::to_string(i));
    }
    if (i % 7 == 0) {
      ASSERT_EQ(client.reply(kPatience).value().text, std::to_string(i));
    }
  }
}

TEST_P(TcpFrontTest, AClientThatSendsALotBeforeItReadsIsServed) {
  open();
  node_.grant_lease(std::chrono::hours(1));
  RespClient client = connect();
  const std::string value(100000, 'v');
  ASSERT_EQ(call(client, {"SET", "k", value}).text, "OK");
  const std::vector<Words> commands(300, Words{"GET", "k"});
  ASSERT_TRUE(client.send(commands, kPatience).ok());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    ASSERT_EQ(client.reply(kPatience).value().text, value);
  }
  EXPECT_EQ(state_->sum(&Counters::lease_hits), commands.size());
}

TEST_P(TcpFrontTest, ManyClientsAtOnce) {
  open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      RespClient client = connect();
      const std::string key = "k" + std::to_string(t);
      for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(call(client, {"SET", key, std::to_string(i)}).text, "OK");
        ASSERT_EQ(call(client, {"GET", key}).text, std::to_string(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(state_->sum(&Counters::connections), 8U);
  EXPECT_EQ(state_->sum(&Counters::commands), 8U * 400U);
}

TEST_P(TcpFrontTest, ProtocolErrorsGetTheirReplyAndTheEnd) {
  open();
  RespClient good = connect();
  RespClient bad = connect();
  // An array whose announced bulk is far too large, then more bytes than the server reads: to send
  // them all never ends.
  static_cast<void>(bad.send({Words{std::string(17U << 20U, 'x')}}, milliseconds(500)));
  const auto reply = bad.reply(kPatience);
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply.value().text, "ERR Protocol error: invalid bulk length");
  EXPECT_FALSE(bad.reply(kPatience).ok());
  EXPECT_EQ(call(good, {"PING"}).text, "PONG");
  EXPECT_EQ(state_->sum(&Counters::protocol_errors), 1U);
}

TEST_P(TcpFrontTest, TooManyClientsGetARefusal) {
  ServerOptions options;
  options.clients_max = 2;
  open(options);
  RespClient first = connect();
  RespClient second = connect();
  EXPECT_EQ(call(first, {"PING"}).text, "PONG");
  EXPECT_EQ(call(second, {"PING"}).text, "PONG");
  expect_refused();
  EXPECT_EQ(state_->sum(&Counters::connections_refused), 1U);
}

TEST_P(TcpFrontTest, TheLogReportsRefusedClientsButNotEach) {
  ServerOptions options;
  options.clients_max = 1;
  std::atomic<int> said{0};
  options.notice = [&said](const std::string& text) {
    EXPECT_THAT(text, StartsWith("1 client connections refused"));
    ++said;
  };
  open(options);
  RespClient first = connect();
  EXPECT_EQ(call(first, {"PING"}).text, "PONG");
  for (int i = 0; i < 5; ++i) {
    expect_refused();
  }
  EXPECT_EQ(state_->sum(&Counters::connections_refused), 5U);
  EXPECT_EQ(said, 1);
}

TEST_P(TcpFrontTest, AnIdleClientIsClosedAndABusyOneStays) {
  ServerOptions options;
  options.idle_timeout = std::chrono::seconds(1);
  open(options);
  RespClient idle = connect();
  RespClient busy = connect();
  EXPECT_EQ(call(idle, {"PING"}).text, "PONG");
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (state_->sum(&Counters::connections_idle) == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    ASSERT_EQ(call(busy, {"PING"}).text, "PONG");
  }
  EXPECT_FALSE(idle.reply(kPatience).ok());
  EXPECT_EQ(call(busy, {"PING"}).text, "PONG");
  EXPECT_EQ(state_->sum(&Counters::connections_idle), 1U);
}

TEST_P(TcpFrontTest, ClientsAreListedAndKilledAcrossThreads) {
  open();
  std::vector<RespClient> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(connect());
    ASSERT_EQ(call(clients.back(), {"CLIENT", "SETNAME", "c" + std::to_string(i)}).text, "OK");
  }
  const std::string list = call(clients[0], {"CLIENT", "LIST"}).text;
  for (int i = 0; i < 5; ++i) EXPECT_THAT(list, HasSubstr(" name=c" + std::to_string(i) + " "));
  const auto id = std::to_string(call(clients[3], {"CLIENT", "ID"}).integer);
  EXPECT_EQ(call(clients[0], {"CLIENT", "KILL", "ID", id}).integer, 1);
  EXPECT_FALSE(clients[3].reply(kPatience).ok());
  EXPECT_EQ(call(clients[0], {"CLIENT", "KILL", "ID", id}).integer, 0);
  // Without ID or ADDR all connections are meant, except the one that asks.
  EXPECT_EQ(call(clients[1], {"CLIENT", "KILL", "SKIPME", "yes"}).integer, 3);
  EXPECT_FALSE(clients[0].reply(kPatience).ok());
  // One's own end comes behind the answer.
  EXPECT_EQ(call(clients[1], {"CLIENT", "KILL", "SKIPME", "no"}).integer, 1);
  EXPECT_FALSE(clients[1].reply(kPatience).ok());
}

TEST_P(TcpFrontTest, AConnectionThatMovesIsListedAndAnswersInOrder) {
  open();
  std::vector<RespClient> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(connect());
    // Accepted, and therefore listed.
    ASSERT_EQ(call(clients.back(), {"PING"}).text, "PONG");
  }
  // All are proven in the middle of what they ask, each at another place.
  const std::size_t asked = 3 * kProvingCommands;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    std::vector<Words> words(i, Words{"NOSUCH"});
    for (std::size_t n = 0; n < asked; ++n) words.push_back({"ECHO", std::to_string(n)});
    words.push_back({"SET", "k", "v"});
    words.push_back({"GET", "k"});
    words.push_back({"CLIENT", "LIST"});
    ASSERT_TRUE(clients[i].send(words, kPatience).ok());
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    for (std::size_t n = 0; n < i; ++n) EXPECT_TRUE(clients[i].reply(kPatience).ok());
    for (std::size_t n = 0; n < asked; ++n) {
      ASSERT_EQ(clients[i].reply(kPatience).value().text, std::to_string(n));
    }
    EXPECT_EQ(clients[i].reply(kPatience).value().text, "OK");
    EXPECT_EQ(clients[i].reply(kPatience).value().text, "v");
    const std::string list = clients[i].reply(kPatience).value().text;
    EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 4) << list;
  }
  EXPECT_EQ(state_->clients.load(), clients.size());
}

TEST_P(TcpFrontTest, StopClosesEveryConnection) {
  open();
  RespClient client = connect();
  EXPECT_EQ(call(client, {"PING"}).text, "PONG");
  front_->stop_accepting();
  front_->stop();
  EXPECT_FALSE(client.reply(kPatience).ok());
  EXPECT_EQ(state_->clients.load(), 0U);
  EXPECT_EQ(state_->input_bytes.load(), 0U);
}

TEST_P(TcpFrontTest, WhatHasArrivedAtStopIsAnswered) {
  open();
  std::vector<RespClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(connect());
    EXPECT_EQ(call(clients.back(), {"PING"}).text, "PONG");
  }
  state_->draining = true;
  // A sent command has arrived, as a rule, but perhaps no thread has read it.
  for (RespClient& client : clients) {
    ASSERT_TRUE(client.send({{"PING"}, {"SET", "k", "v"}}, kPatience).ok());
  }
  front_->stop();
  for (RespClient& client : clients) {
    ASSERT_EQ(client.reply(kPatience).value().text, "PONG");
    EXPECT_TRUE(client.reply(kPatience).value().is_error("TRYAGAIN"));
    EXPECT_FALSE(client.reply(kPatience).ok());
  }
}

TEST_P(TcpFrontTest, RepliesThatAreReadyAtStopAreSent) {
  open();
  RespClient client = connect();
  ASSERT_TRUE(client.send(std::vector<Words>(100, Words{"SET", "k", "v"}), kPatience).ok());
  ASSERT_EQ(client.reply(kPatience).value().text, "OK");
  front_->stop_accepting();
  stopping_ = true;
  worker_.join();
  node_.complete_some();
  front_->stop();
  std::size_t answered = 1;
  while (client.reply(kPatience).ok()) ++answered;
  EXPECT_EQ(answered, state_->sum(&Counters::writes_committed));
}

/// Waits in keys_after() until the test lets it go on.
class StoreWithSlowScans final : public StoreOver {
 public:
  using StoreOver::StoreOver;
  void let_go() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    changed_.notify_all();
  }
  void wait_for_scan() const {
    std::unique_lock lock(mutex_);
    LEASEHOLD_ASSERT(changed_.wait_for(lock, kPatience, [this] { return scanning_; }));
  }
  Result<std::vector<std::string>> keys_after(std::optional<std::string_view> after,
                                              std::size_t count) const override {
    std::unique_lock lock(mutex_);
    scanning_ = true;
    changed_.notify_all();
    LEASEHOLD_ASSERT(changed_.wait_for(lock, kPatience, [this] { return free_; }));
    return StoreOver::keys_after(after, count);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable bool scanning_ = false;
  bool free_ = false;
};

TEST_P(TcpFrontTest, AProvenClientIsServedWhileOthersScan) {
  auto slow = std::make_unique<StoreWithSlowScans>(node_.store());
  StoreWithSlowScans& store = *slow;
  node_.grant_lease(std::chrono::hours(1));
  open_with(std::move(slow));
  RespClient good = connect();
  for (std::size_t i = 0; i < kProvingCommands; ++i) {
    ASSERT_EQ(call(good, {"PING"}).text, "PONG");
  }
  RespClient other = connect();
  ASSERT_TRUE(other.send({Words{"KEYS", "*"}, Words{"PING"}}, kPatience).ok());
  store.wait_for_scan();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(call(good, {"GET", "k"}).kind == RespValue::Kind::null);
  // Its own scan waits behind the other's, and its own line behind its own scan.
  ASSERT_TRUE(good.send({Words{"KEYS", "*"}, Words{"PING"}}, kPatience).ok());
  store.let_go();
  for (RespClient* client : {&other, &good}) {
    EXPECT_TRUE(client->reply(kPatience).ok());
    EXPECT_EQ(client->reply(kPatience).value().text, "PONG");
  }
}

/// New clients, proven clients, and clients whose watch had to wait for the node.
TEST_P(TcpFrontTest, WatchersGetEverythingInOrder) {
  open();
  std::vector<RespClient> watchers;
  for (int i = 0; i < 12; ++i) {
    watchers.push_back(connect());
    if (i == 6) node_.grant_lease(std::chrono::hours(1));
    for (std::size_t pings = 0; i % 3 == 1 && pings < 2 * kProvingCommands; ++pings) {
      ASSERT_EQ(call(watchers.back(), {"PING"}).text, "PONG");
    }
    if (i % 2 == 0) call(watchers.back(), {"HELLO", "3"});
    const auto begun = call(watchers.back(), {"LEASEHOLD", "WATCH", "PREFIX", "k"});
    ASSERT_EQ(begun.items.at(0).text, "watching");
    ASSERT_EQ(begun.items.at(1).integer, 1);
  }
  EXPECT_EQ(state_->watchers.load(), 12U);
  RespClient writer = connect();
  constexpr int kWrites = 500;
  std::vector<Words> writes;
  for (int i = 0; i < kWrites; ++i) writes.push_back({"SET", i % 2 == 0 ? "k" : "other", "v"});
  ASSERT_TRUE(writer.send(writes, kPatience).ok());
  for (std::size_t i = 0; i < watchers.size(); ++i) {
    for (int revision = 1; revision <= kWrites; revision += 2) {
      const auto message = watchers[i].reply(kPatience);
      ASSERT_TRUE(message.ok()) << message.error().message;
      EXPECT_EQ(message.value().kind, i % 2 == 0 ? RespValue::Kind::push : RespValue::Kind::array);
      ASSERT_EQ(message.value().items.at(0).text, "events");
      ASSERT_EQ(message.value().items.at(1).integer, revision);
    }
  }
  // It ends between messages, too.
  for (std::size_t i = 1; i < watchers.size(); i += 2) {
    EXPECT_EQ(call(watchers[i], {"LEASEHOLD", "UNWATCH"}).text, "OK");
  }
  for (int i = 0; i < kWrites; ++i) ASSERT_EQ(writer.reply(kPatience).value().text, "OK");
  watchers.clear();
  for (auto until = std::chrono::steady_clock::now() + kPatience;
       state_->watchers.load() > 0 && std::chrono::steady_clock::now() < until;) {
    std::this_thread::yield();
  }
  EXPECT_EQ(state_->watchers.load(), 0U);
}

TEST_P(TcpFrontTest, AWatcherThatHearsNothingIsNotIdle) {
  ServerOptions options;
  options.idle_timeout = std::chrono::seconds(1);
  open(options);
  node_.grant_lease(std::chrono::hours(1));
  RespClient watcher = connect();
  RespClient idle = connect();
  ASSERT_EQ(call(watcher, {"SUBSCRIBE", "__keyevent@0__:set"}).items.size(), 3U);
  EXPECT_EQ(idle.reply(kPatience).error().code, ErrorCode::unavailable);  // it is closed
  RespClient other = connect();
  ASSERT_EQ(call(other, {"SET", "k", "v"}).text, "OK");
  EXPECT_EQ(watcher.reply(kPatience).value().items.at(2).text, "k");
}

INSTANTIATE_TEST_SUITE_P(Kinds, TcpFrontTest,
                         ::testing::Values(Kind{1, false}, Kind{2, false}, Kind{1, true},
                                           Kind{2, true}, Kind{2, false, true}),
                         kind_name);

TEST(TcpFront, BadAddressesAreRefused) {
  FakeNode node;
  const ServedGroups groups({ServedGroup{node, node.store(), node.health()}});
  ServerState state{ServerOptions{}, command_table()};
  for (const char* address : {"", "7201", "127.0.0.1:", "127.0.0.1:port"}) {
    const auto front = TcpFront::open(address, groups, state);
    ASSERT_FALSE(front.ok()) << address;
    EXPECT_EQ(front.error().code, ErrorCode::invalid_argument);
  }
  auto first = TcpFront::open("127.0.0.1:0", groups, state);
  ASSERT_TRUE(first.ok());
  const std::string taken = "127.0.0.1:" + std::to_string(first.value()->port());
  const auto second = TcpFront::open(taken, groups, state);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("Choose another --listen"));
}

}  // namespace
}  // namespace leasehold::server
