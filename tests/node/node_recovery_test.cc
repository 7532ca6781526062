// A lost majority of a group whose state machine is a host's own: its log, and the group that goes
// on from it. And the mark of the directories that are given up.
#include <leasehold/node/node_recovery.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/node/node_retired.h>
#include <leasehold/tests/node/node_fixture.h>

#include <fstream>

namespace leasehold::node {
namespace {

using NodeRecoveryTest = NodeTest;

/// A ListMachine that is durable where a restoration has left it.
class KeptList final : public ListMachine {
 public:
  raft::Index durable_index() const override { return raft::Index(kept_.load()); }
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override {
    auto results = ListMachine::apply(commands, last);
    kept_ = last.value();
    return results;
  }

 private:
  std::atomic<std::uint64_t> kept_{0};
};

TEST_F(NodeRecoveryTest, AGroupOfAnyMachineGoesOnFromOneMember) {
  start_all();
  const std::uint64_t leader = await_leader();
  std::vector<std::string> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back("command " + std::to_string(i));
    ASSERT_EQ(replica(leader).propose(all.back()).status, replica::ProposeStatus::committed);
  }
  EXPECT_EQ(StoppedLog::open(dir(leader)).error().code, ErrorCode::in_use) << "its node runs";
  for (std::uint64_t id = 1; id <= 3; ++id) stop(id);

  auto log = std::move(StoppedLog::open(dir(leader))).value();
  Survivor survivor = log->survivor();
  EXPECT_EQ(survivor.id, raft::NodeId(leader));
  EXPECT_EQ(survivor.membership.members.size(), 3U);
  EXPECT_GT(survivor.last.index, raft::Index(20));
  survivor.applied = raft::Index(0);  // this machine keeps nothing
  const auto plan = plan_recovery({survivor}).value();
  EXPECT_EQ(plan.lost.size(), 2U);

  KeptList machine;
  EXPECT_EQ(log->apply_rest(machine, survivor.last.index.next()).error().code,
            ErrorCode::invalid_argument);
  ASSERT_TRUE(log->apply_rest(machine, machine.durable_index()));
  EXPECT_EQ(machine.list(), all);
  EXPECT_EQ(machine.durable_index(), survivor.last.index);
  EXPECT_TRUE(log->apply_rest(machine, machine.durable_index())) << "there is nothing left";
  log.reset();
  EXPECT_TRUE(machine.apply({}, plan.base).empty());

  // The new group has one member, in the place of the old one; others may be added.
  ASSERT_TRUE(retire(dir(leader), {survivor.cluster_id, plan.number, "why"}));
  ListMachine unused;
  StoppableClock clock;
  RecordingObserver observer;
  const auto refused = Node::open(options(leader), unused, clock, observer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::wrong_cluster);
  EXPECT_NE(refused.error().message.find("is retired"), std::string::npos);
  Restored restored{plan.number, plan.base};
  restored.recovered = Recovered{survivor.cluster_id, survivor.last, 1};
  NodeOptions fresh = options(leader);
  fresh.data_dir = folder_.path("fresh");
  fresh.peers = {peers_.at(leader - 1)};
  ASSERT_TRUE(begin_restoration(fresh.data_dir));
  ASSERT_TRUE(finish_restoration(fresh.data_dir, restored));
  const auto node = std::move(Node::open(fresh, machine, clock, observer)).value();
  const auto result = node->propose_and_wait(Bytes("more"), kLong);
  ASSERT_EQ(result.status, replica::ProposeStatus::committed);
  EXPECT_GT(result.id.index, plan.base);

  // A lost member that was not lost is refused, and stops.
  const std::uint64_t lost = follower_of(leader);
  Replica& back = start(lost);
  ASSERT_EQ(back.failure.wait_for(kPatience), std::future_status::ready);
  const Error why = back.failure.get();
  EXPECT_EQ(why.code, ErrorCode::wrong_cluster);
  EXPECT_NE(why.message.find("was given up"), std::string::npos) << why.message;
  EXPECT_EQ(node->propose_and_wait(Bytes("still"), kLong).status,
            replica::ProposeStatus::committed);
}

TEST_F(NodeRecoveryTest, WhatIsNoLogIsRefused) {
  EXPECT_EQ(StoppedLog::open(folder_.path("none")).error().code, ErrorCode::not_found);
  start_all();
  await_leader();
  for (std::uint64_t id = 1; id <= 3; ++id) stop(id);
  std::ofstream(dir(1) + "/log/LEASEHOLD") << "damaged";
  EXPECT_EQ(StoppedLog::open(dir(1)).error().code, ErrorCode::corrupted);
}

TEST(Retired, IsKeptWithItsReport) {
  const TemporaryFolder folder;
  const std::string dir = folder.path("d");
  EXPECT_EQ(load_retired(dir).value(), std::nullopt);
  EXPECT_TRUE(check_not_retired(dir));
  std::filesystem::create_directories(dir);
  const Retired retired{0xdeadbeefU, 7, "lost:\n\n  all of it\n"};
  ASSERT_TRUE(retire(dir, retired));
  EXPECT_EQ(load_retired(dir).value(), retired);
  EXPECT_EQ(check_not_retired(dir).error().code, ErrorCode::wrong_cluster);
  ASSERT_TRUE(retire(dir, retired)) << "again";
  std::ofstream(dir + "/RETIRED") << "x";
  EXPECT_EQ(check_not_retired(dir).error().code, ErrorCode::corrupted);
}

TEST(Retired, OnlyTheExactTextIsAccepted) {
  const Retired retired{0xdeadbeefU, 0x1234U, "a\n\nb\n"};
  const std::string good = encode_retired(retired);
  EXPECT_EQ(good.substr(0, good.find("check")),
            "leasehold-retired 1\ncluster 00000000deadbeef\nplan 0000000000001234\n");
  EXPECT_EQ(decode_retired(good).value(), retired);
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(decode_retired(good.substr(0, length))) << length;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string text = good;
      text[at] = static_cast<char>(text[at] ^ (1U << bit));
      EXPECT_FALSE(decode_retired(text)) << at << " " << bit;
    }
  }
  const auto later = decode_retired("leasehold-retired 2\n");
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::unsupported_format);
}

}  // namespace
}  // namespace leasehold::node
