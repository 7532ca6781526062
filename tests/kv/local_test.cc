// Leases, locks and registrations in the process of the nodes: three of them, with real sockets and
// logs, each with a store.
#include <leasehold/base/assert.h>
#include <leasehold/client/queue_lock.h>
#include <leasehold/client/registration.h>
#include <leasehold/kv/lease_keeper.h>
#include <leasehold/kv/local/lease_timer.h>
#include <leasehold/kv/local/local_keys.h>
#include <leasehold/kv/local/local_leases.h>
#include <leasehold/kv/memory_store.h>
#include <leasehold/node/node.h>
#include <leasehold/node/system_clock.h>
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tests/node/free_ports.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::kv {
namespace {

using namespace std::chrono_literals;
using client::LeaseHolder;
using client::QueueLock;
using client::Registration;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// How long a test waits for what has to happen; reached only when it does not happen.
constexpr auto kPatience = 60s;
constexpr lease::Duration kTimeout = 10s;

/// A node with all that a host puts around it.
struct Host {
  explicit Host(node::NodeOptions options) {
    auto opened = node::Node::open(std::move(options), store, clock, observer);
    LEASEHOLD_ASSERT(opened.ok());
    node = std::move(opened).value();
    timer = std::make_unique<LeaseTimer>(*node, keeper, 50ms);
  }
  LocalGroup group() { return {*node, store, keeper}; }

  node::SystemClock clock;
  replica::Observer observer;
  kv::MemoryStore store;
  kv::LeaseKeeper keeper{clock,
                         [this](std::uint64_t cursor) { return store.lease_changes(cursor); }};
  std::unique_ptr<node::Node> node;
  std::unique_ptr<LeaseTimer> timer;
};

class LocalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::uint16_t port : node::free_ports(3)) {
      peers_.push_back({raft::NodeId(peers_.size() + 1), node::address_of(port)});
    }
    hosts_.resize(3);
  }
  void TearDown() override { hosts_.clear(); }

  void start(std::uint64_t id) {
    node::NodeOptions options;
    options.id = raft::NodeId(id);
    options.data_dir = folder_.path("node" + std::to_string(id));
    options.peers = peers_;
    hosts_[id - 1] = std::make_unique<Host>(std::move(options));
  }
  void start_all() {
    for (std::uint64_t id = 1; id <= 3; ++id) start(id);
  }
  Host& host(std::uint64_t id) { return *hosts_[id - 1]; }
  static void eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::yield();
    }
  }
  Host& leader() {
    Host* found = nullptr;
    eventually([&] {
      for (const auto& host : hosts_) {
        if (host && host->node->lease_view().readable_index(host->clock)) found = host.get();
      }
      return found != nullptr;
    });
    return *found;
  }
  Host& follower() { return &leader() == hosts_[0].get() ? host(2) : host(1); }
  static raft::Index last_of(Host& host) {
    std::promise<node::NodeStatus> answer;
    host.node->status([&answer](node::NodeStatus status) { answer.set_value(std::move(status)); });
    return answer.get_future().get().last;
  }
  static LeaseHolder::Options holding(const std::string& name, const std::string& holder) {
    LeaseHolder::Options options;
    options.name = name;
    options.holder = holder;
    options.wait = 30s;
    return options;
  }

  TemporaryFolder folder_;
  std::vector<node::Peer> peers_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

TEST_F(LocalTest, ALeaseIsGrantedFoundAndEndedAtAnyNode) {
  start_all();
  LocalLeases at_leader(leader().group());
  LocalLeases elsewhere(follower().group());
  const auto granted = elsewhere.grant({"printer", "me", 10s}, kTimeout);
  ASSERT_TRUE(granted.ok()) << granted.error().message;
  EXPECT_GT(granted.value().token.value(), 0U);
  const auto found = at_leader.find("printer", kTimeout);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found.value().id, granted.value().id);
  EXPECT_EQ(found.value().holder, "me");
  EXPECT_EQ(found.value().ttl, 10s);
  const auto taken = at_leader.grant({"printer", "another", 10s}, kTimeout);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::in_use);
  EXPECT_THAT(taken.error().message, HasSubstr("me"));
  EXPECT_TRUE(at_leader.revoke(granted.value().id, kTimeout).ok());
  EXPECT_EQ(elsewhere.revoke(granted.value().id, kTimeout).error().code, ErrorCode::not_found);
  EXPECT_EQ(elsewhere.find("printer", kTimeout).error().code, ErrorCode::not_found);
  EXPECT_EQ(at_leader.grant({"x", "me", 0s}, kTimeout).error().code, ErrorCode::invalid_argument);
}

TEST_F(LocalTest, ARenewalAtTheLeaderCostsNoEntry) {
  start_all();
  Host& first = leader();
  LocalLeases leases(first.group());
  const auto granted = leases.grant({"printer", "me", 1h}, kTimeout);
  ASSERT_TRUE(granted.ok());
  const raft::Index before = last_of(first);
  for (int i = 0; i < 100; ++i) {
    const auto renewed = leases.renew(granted.value().id, kTimeout);
    ASSERT_TRUE(renewed.ok()) << renewed.error().message;
    EXPECT_EQ(renewed.value(), 1h);
  }
  // A new leader writes an entry of its own.
  const bool led_on = &leader() == &first;
  EXPECT_TRUE(!led_on || last_of(first) == before);
  // Elsewhere it is a command.
  EXPECT_EQ(LocalLeases(follower().group()).renew(granted.value().id, kTimeout).value(), 1h);
  for (Host* at : {&leader(), &follower()}) {
    EXPECT_EQ(LocalLeases(at->group()).renew(grant::LeaseId(77), kTimeout).error().code,
              ErrorCode::not_found);
  }
}

TEST_F(LocalTest, WhatNobodyRenewsEndsWithItsKeys) {
  start_all();
  Host& at = follower();
  LocalLeases leases(at.group());
  LocalKeys keys(at.group());
  const auto granted = leases.grant({"printer", "me", 300ms}, kTimeout);
  ASSERT_TRUE(granted.ok());
  const auto put = keys.put("of it", "v", granted.value().id, kTimeout);
  EXPECT_TRUE(put.ok() || put.error().code == ErrorCode::not_found);
  eventually([&] { return !leases.find("printer", kTimeout).ok(); });
  EXPECT_THAT(keys.list("of", kTimeout).value().rows, IsEmpty());
  EXPECT_EQ(keys.put("of it", "v", granted.value().id, kTimeout).error().code,
            ErrorCode::not_found);
}

TEST_F(LocalTest, DuringALockDelayNobodyHoldsTheName) {
  start_all();
  LocalLeases leases(leader().group());
  grant::LeaseTerms terms;
  terms.delay = 1h;
  const auto granted = leases.grant({"printer", "me", 1ms, terms}, kTimeout);
  ASSERT_TRUE(granted.ok()) << granted.error().message;
  eventually([&] { return !leases.find("printer", kTimeout).ok(); });
  EXPECT_EQ(leases.find("printer", kTimeout).error().code, ErrorCode::not_found);
  const auto taken = leases.grant({"printer", "another", 1h}, kTimeout);
  EXPECT_EQ(taken.error().code, ErrorCode::in_use);
  EXPECT_THAT(taken.error().message, HasSubstr("lock delay of 3600000 ms"));
  EXPECT_EQ(leases.renew(granted.value().id, kTimeout).error().code, ErrorCode::not_found);
}

TEST_F(LocalTest, AKeyIsReplacedOnItsRevisionAndAToken) {
  start_all();
  LocalLeases leases(leader().group());
  LocalKeys keys(follower().group());
  const auto first = leases.grant({"printer", "a", 1h}, kTimeout).value();
  ASSERT_TRUE(leases.revoke(first.id, kTimeout).ok());
  const auto second = leases.grant({"printer", "b", 1h}, kTimeout).value();
  EXPECT_FALSE(keys.find("k", kTimeout).value());
  EXPECT_FALSE(keys.replace({"k", "too new", 99, second.token}, kTimeout).value());
  EXPECT_TRUE(keys.replace({"k", "1", 0, second.token}, kTimeout).value());
  EXPECT_FALSE(keys.replace({"k", "2", 0, second.token}, kTimeout).value());
  const auto row = keys.find("k", kTimeout).value();
  ASSERT_TRUE(row);
  EXPECT_EQ(row->value, "1");
  EXPECT_GT(row->mod_revision, second.token.value());
  EXPECT_EQ(row->mod_revision, keys.list("k", kTimeout).value().rows[0].mod_revision);
  EXPECT_EQ(keys.replace({"k", "late", row->mod_revision, first.token}, kTimeout).error().code,
            ErrorCode::in_use);
  EXPECT_TRUE(keys.replace({"k", "3", row->mod_revision, second.token}, kTimeout).value());
  // A key that only begins so is another one.
  EXPECT_TRUE(keys.replace({"key", "4", 0, second.token}, kTimeout).value());
  EXPECT_FALSE(keys.find("ke", kTimeout).value());
}

TEST_F(LocalTest, KeysAreListedAsTheyWereMade) {
  start_all();
  LocalLeases leases(leader().group());
  LocalKeys keys(follower().group());
  const grant::LeaseId id = leases.grant({"", "me", 1h}, kTimeout).value().id;
  ASSERT_TRUE(keys.put("q/b", "1", id, kTimeout).ok());
  ASSERT_TRUE(keys.put("q/a", "2", id, kTimeout).ok());
  ASSERT_TRUE(keys.put("q/b", "3", id, kTimeout).ok());
  const auto listed = keys.list("q/", kTimeout);
  ASSERT_TRUE(listed.ok()) << listed.error().message;
  ASSERT_THAT(listed.value().rows, SizeIs(2));
  const auto& rows = listed.value().rows;
  EXPECT_EQ(rows[0].key, "q/a");
  EXPECT_EQ(rows[1].value, "3");
  EXPECT_EQ(rows[1].lease, id);
  // Written again, it keeps its place.
  EXPECT_LT(rows[1].create_revision, rows[0].create_revision);
}

TEST_F(LocalTest, AChangeEndsTheWaitAndAnotherDoesNot) {
  start_all();
  Host& at = follower();
  LocalKeys keys(at.group());
  const grant::LeaseId id =
      LocalLeases(leader().group()).grant({"", "me", 1h}, kTimeout).value().id;
  const std::uint64_t revision = keys.list("", kTimeout).value().revision;
  for (const bool prefix : {false, true}) {
    auto waiting = std::async(std::launch::async, [&] {
      LocalKeys(at.group()).wait_change({prefix ? "q/" : "q/1", prefix}, revision, 1h);
    });
    if (!prefix) {
      ASSERT_TRUE(keys.put("other", "v", id, kTimeout).ok());
      EXPECT_EQ(waiting.wait_for(100ms), std::future_status::timeout);
      ASSERT_TRUE(keys.put("q/1", "v", id, kTimeout).ok());
    }
    EXPECT_EQ(waiting.wait_for(kPatience), std::future_status::ready);
  }
  const auto begun = std::chrono::steady_clock::now();
  keys.wait_change({"never", false}, revision, 50ms);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 50ms);
}

TEST_F(LocalTest, ALockGoesFromNodeToNode) {
  start_all();
  struct Side {
    explicit Side(Host& host) : leases(host.group()), keys(host.group()), clock(host.clock) {}
    LocalLeases leases;
    LocalKeys keys;
    const lease::Clock& clock;
  };
  leader();
  Side first(host(1));
  Side second(host(2));
  QueueLock::Options options;
  options.lease = holding("printer", "first");
  auto held = QueueLock::acquire(first.leases, first.keys, first.clock, options);
  ASSERT_TRUE(held.ok()) << held.error().message;
  auto next = std::async(std::launch::async, [&] {
    QueueLock::Options other = options;
    other.lease.holder = "second";
    return QueueLock::acquire(second.leases, second.keys, second.clock, other);
  });
  eventually([&] {
    const auto queue = QueueLock::queue(first.keys, "printer", kTimeout);
    return queue.ok() && queue.value().size() == 2;
  });
  const grant::FencingToken token = held.value()->token();
  EXPECT_TRUE(held.value()->lease().drain());
  const auto taken = next.get();
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_LT(token, taken.value()->token());
}

TEST_F(LocalTest, ARegistrationOutlivesTheLeader) {
  start_all();
  Host& at = follower();
  LocalLeases leases(at.group());
  LocalKeys keys(at.group());
  Registration::Options options;
  options.lease.holder = "web 7";
  options.key = "services/web/7";
  options.value = "here";
  const auto registration = Registration::begin(leases, keys, at.clock, options);
  ASSERT_TRUE(registration.ok());
  eventually([&] { return registration.value()->state() == Registration::State::registered; });
  for (auto& host : hosts_) {
    if (host.get() == &leader()) {
      host.reset();
      break;
    }
  }
  leader();
  EXPECT_EQ(registration.value()->state(), Registration::State::registered);
  EXPECT_THAT(keys.list("services/", kTimeout).value().rows, SizeIs(1));
}

TEST_F(LocalTest, WithoutAMajorityNothingIsDoneAndItSaysSo) {
  start(1);
  LocalLeases leases(host(1).group());
  EXPECT_EQ(leases.grant({"printer", "me", 10s}, 100ms).error().code, ErrorCode::unavailable);
  EXPECT_EQ(leases.find("printer", 100ms).error().code, ErrorCode::unavailable);
  EXPECT_EQ(leases.renew(grant::LeaseId(7), 100ms).error().code, ErrorCode::unavailable);
  EXPECT_EQ(LocalKeys(host(1).group()).list("", 100ms).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace leasehold::kv
