// Calls that are given up before their time, in every place where one may wait.
#include "driver_cluster.h"

#include <gtest/gtest.h>

namespace leasehold::replica::testing {
namespace {

constexpr CallGroup kMine{7};
constexpr CallGroup kOther{8};

Event propose(Cluster& cluster, Answer<ProposeResult>& answer, CallGroup group) {
  return Propose{Bytes(std::string("x")), cluster.in(kLong), answer.completion(), group};
}

Event read(Cluster& cluster, raft::ReadMode mode, Answer<ReadResult>& answer, CallGroup group) {
  return Read{mode, cluster.in(kLong), answer.completion(), group};
}

TEST(Cancel, AProposalWithoutALeaderIsDropped) {
  Cluster cluster(3);
  cluster.cut(1);
  Rig& node = cluster.node(1);
  Answer<ProposeResult> mine, other, alone;
  node.handle(cluster.now(), propose(cluster, mine, kMine));
  node.handle(cluster.now(), propose(cluster, other, kOther));
  node.handle(cluster.now(), propose(cluster, alone, CallGroup(0)));
  node.handle(cluster.now(), Cancel{kMine});
  ASSERT_EQ(mine.calls, 1);
  EXPECT_EQ(mine.value.status, ProposeStatus::dropped);
  EXPECT_EQ(other.calls + alone.calls, 0);
  node.handle(cluster.now(), Cancel{CallGroup(0)});
  EXPECT_EQ(other.calls + alone.calls, 0) << "group 0 has no calls";
}

TEST(Cancel, AnAppendedProposalIsUnknownAndMayYetBeExecuted) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  Answer<ProposeResult> answer;
  leader.handle(cluster.now(), propose(cluster, answer, kMine));
  leader.handle(cluster.now(), Cancel{kMine});
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::unknown);
  cluster.settle();
  EXPECT_EQ(leader.machine().commands(), (std::vector<std::string>{"x"}));
  EXPECT_EQ(answer.calls, 1) << "once is enough";
}

TEST(Cancel, AForwardedProposalIsUnknown) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.advance(std::chrono::milliseconds(200));
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose(cluster, answer, kMine));
  follower.handle(cluster.now(), Cancel{kMine});
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::unknown);
}

TEST(Cancel, ReadsOfEveryKindEndWithoutAnIndex) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  Answer<ReadResult> quorum, log, other, wait;
  leader.handle(cluster.now(), read(cluster, raft::ReadMode::quorum, quorum, kMine));
  leader.handle(cluster.now(), read(cluster, raft::ReadMode::log, log, kMine));
  leader.handle(cluster.now(), read(cluster, raft::ReadMode::quorum, other, kOther));
  leader.handle(cluster.now(), WaitApplied{leader.driver().applied() + 100, cluster.in(kLong),
                                           wait.completion(), kMine});
  leader.handle(cluster.now(), Cancel{kMine});
  for (const Answer<ReadResult>* answer : {&quorum, &log, &wait}) {
    ASSERT_EQ(answer->calls, 1);
    EXPECT_FALSE(answer->value.index.has_value());
  }
  cluster.settle();
  EXPECT_EQ(other.calls, 1);
  EXPECT_TRUE(other.value.index.has_value());
  EXPECT_EQ(leader.driver().pending(), 0U);
}

TEST(Cancel, WhatCameAfterItIsNotMeant) {
  Cluster cluster(1);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  Answer<ProposeResult> answer;
  leader.handle(cluster.now(), Cancel{kMine});
  leader.handle(cluster.now(), propose(cluster, answer, kMine));
  cluster.settle();
  EXPECT_EQ(answer.value.status, ProposeStatus::committed);
}

}  // namespace
}  // namespace leasehold::replica::testing
