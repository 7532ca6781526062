// A node whose state machine ends no call.
#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

#include <chrono>

namespace leasehold::replica {
namespace {

using testing::Answer;
using testing::Cluster;
using testing::milliseconds;
using testing::propose;
using testing::Rig;

const lease::Duration kPatience = Limits().apply_patience;

/// The leader is given a command, and its state machine stands still.
class MachineStall : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.settle();
    cluster_.hold_applies = [this](const Rig& rig) { return holds_ && rig.id() == leader_.id(); };
    leader_.handle(cluster_.now(), propose(cluster_, "a", taken_));
    cluster_.settle();
    ASSERT_EQ(leader_.applies_waiting(), 1U);
  }
  bool another_leads() {
    return cluster_.advance_until([this] {
      for (std::uint64_t id = 1; id <= 3; ++id) {
        if (cluster_.node(id).leads() && cluster_.node(id).id() != leader_.id()) return true;
      }
      return false;
    });
  }

  Cluster cluster_{3};
  Rig& leader_ = cluster_.await_leader();
  bool holds_ = true;
  Answer<ProposeResult> taken_;
};

TEST_F(MachineStall, TheLeaderLeavesItsRoleAndAnotherLeads) {
  cluster_.advance(kPatience - milliseconds(10));
  EXPECT_TRUE(leader_.leads());
  cluster_.advance(milliseconds(20));
  EXPECT_FALSE(leader_.leads());
  EXPECT_TRUE(another_leads());
}

TEST_F(MachineStall, TheNodeLeadsAgainWhenItsStateMachineGoesOn) {
  cluster_.cut(leader_.id() == raft::NodeId(1) ? 2 : 1);
  cluster_.cut(leader_.id() == raft::NodeId(3) ? 2 : 3);
  cluster_.advance(2 * kPatience);
  ASSERT_FALSE(leader_.leads());
  EXPECT_EQ(leader_.driver().core().next_deadline(), raft::PromiseInstant::never());
  // Nothing else would tell it that it may lead again.
  EXPECT_TRUE(leader_.driver().awaits_applied());
  holds_ = false;
  cluster_.settle();
  EXPECT_EQ(taken_.calls, 1);
  EXPECT_LT(leader_.driver().core().next_deadline(), raft::PromiseInstant::never());
}

// A group at rest has no timer of its own.
TEST(MachineStallAlone, TheEndOfTheTimeIsADeadlineOfItsOwn) {
  DriverOptions options;
  options.apply_patience = milliseconds(3);  // before the next heartbeat
  Cluster cluster(3, options);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  ASSERT_GT(leader.driver().next_deadline(), cluster.in(milliseconds(3)));
  cluster.hold_applies = [&](const Rig& rig) { return rig.id() == leader.id(); };
  Answer<ProposeResult> taken;
  leader.handle(cluster.now(), propose(cluster, "a", taken));
  cluster.settle();
  ASSERT_EQ(leader.applies_waiting(), 1U);
  EXPECT_LE(leader.driver().next_deadline(), cluster.in(milliseconds(3)));
}

TEST_F(MachineStall, EachCallThatEndsIsProgress) {
  for (int i = 0; i < 4; ++i) {
    Answer<ProposeResult> next;
    leader_.handle(cluster_.now(), propose(cluster_, "b", next));
    cluster_.advance(kPatience - milliseconds(20));
    leader_.finish_apply(cluster_.now());
    EXPECT_TRUE(leader_.leads());
  }
}

}  // namespace
}  // namespace leasehold::replica
