// A node whose disk has no space left for the log, or does not keep up.
#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::replica {
namespace {

using testing::Answer;
using testing::Cluster;
using testing::milliseconds;
using testing::propose;
using testing::Rig;

Rig& follower_of(Cluster& cluster, const Rig& leader) {
  return cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
}

void expect_it_takes_commands(Cluster& cluster, Rig& leader) {
  Answer<ProposeResult> taken;
  leader.handle(cluster.now(), propose(cluster, "taken", taken));
  cluster.settle();
  EXPECT_EQ(taken.value.status, ProposeStatus::committed);
}

TEST(FullDisk, LeaderRefusesCommandsAndServesReadsByItsLease) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  leader.handle(cluster.now(), StorageSpace{true});
  EXPECT_TRUE(leader.driver().disk_full());
  Answer<ProposeResult> refused;
  leader.handle(cluster.now(), propose(cluster, "a", refused));
  ASSERT_EQ(refused.calls, 1);
  EXPECT_EQ(refused.value.status, ProposeStatus::dropped);
  EXPECT_EQ(refused.value.disk_full_at, leader.id());
  EXPECT_FALSE(refused.value.overloaded);
  EXPECT_EQ(leader.writes_waiting(), 0U);

  cluster.advance(std::chrono::seconds(5));
  ASSERT_TRUE(leader.leads());
  Answer<ReadResult> read;
  leader.handle(cluster.now(),
                Read{raft::ReadMode::lease, cluster.in(milliseconds(100)), read.completion()});
  ASSERT_EQ(read.calls, 1);
  ASSERT_TRUE(read.value.index.has_value());
  EXPECT_EQ(read.value.basis, raft::ReadBasis::lease);

  leader.handle(cluster.now(), StorageSpace{false});
  expect_it_takes_commands(cluster, leader);
}

TEST(FullDisk, TheStateMachinesDiskCountsAsTheLogs) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  leader.handle(cluster.now(), MachineSpace{true});
  Answer<ProposeResult> refused;
  leader.handle(cluster.now(), propose(cluster, "a", refused));
  ASSERT_EQ(refused.calls, 1);
  EXPECT_EQ(refused.value.disk_full_at, leader.id());
  leader.handle(cluster.now(), StorageSpace{true});
  leader.handle(cluster.now(), StorageSpace{false});
  EXPECT_TRUE(leader.driver().disk_full()) << "one of the two is still full";
  leader.handle(cluster.now(), MachineSpace{false});
  EXPECT_FALSE(leader.driver().disk_full());
  expect_it_takes_commands(cluster, leader);
}

TEST(FullDisk, LeaderTellsAFollowerWhyItRefuses) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = follower_of(cluster, leader);
  cluster.advance(milliseconds(200));
  leader.handle(cluster.now(), StorageSpace{true});
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose(cluster, "a", answer));
  cluster.settle();
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::dropped);
  EXPECT_EQ(answer.value.disk_full_at, leader.id());
}

TEST(FullDisk, FollowerKeepsItsPromisesAndItsLogAsItIs) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = follower_of(cluster, leader);
  Rig& other = cluster.node(6 - leader.id().value() - follower.id().value());
  cluster.advance(milliseconds(200));
  const raft::Index last = follower.driver().core().log().last_index();
  follower.handle(cluster.now(), StorageSpace{true});
  Answer<ProposeResult> own;
  follower.handle(cluster.now(), propose(cluster, "its own", own));
  EXPECT_EQ(own.value.disk_full_at, follower.id());

  const std::uint64_t sent_before = leader.driver().counters().appends_sent;
  for (int i = 0; i < 200; ++i) {
    Answer<ProposeResult> answer;
    leader.handle(cluster.now(), propose(cluster, std::string(1000, 'x'), answer));
    cluster.advance(milliseconds(10));
    ASSERT_EQ(answer.value.status, ProposeStatus::committed) << "the other two are a quorum";
  }
  EXPECT_EQ(follower.driver().core().log().last_index(), last);
  EXPECT_EQ(follower.driver().core().leader(), leader.id());
  EXPECT_TRUE(leader.leads());
  EXPECT_LT(leader.driver().counters().appends_sent - sent_before, 300U)
      << "200 to the one that has space; the leader does not look for the place again and again";

  // Its promises count: with the other one gone the lease stands.
  cluster.cut(other.id().value());
  cluster.advance(std::chrono::seconds(5));
  EXPECT_TRUE(leader.leads());
  EXPECT_GT(leader.driver().core().lease_end(), cluster.now().holder);
  cluster.heal();

  follower.handle(cluster.now(), StorageSpace{false});
  const raft::Index end = leader.driver().core().log().last_index();
  EXPECT_TRUE(cluster.advance_until([&] { return follower.driver().applied() == end; }));
  EXPECT_EQ(follower.machine().commands(), leader.machine().commands());
}

TEST(SlowDisk, ALeaderWhoseLogIsBehindTakesNoCommandsOfAnybody) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = follower_of(cluster, leader);
  cluster.settle();
  leader.set_behind(true);
  Answer<ProposeResult> own;
  leader.handle(cluster.now(), propose(cluster, "a", own));
  ASSERT_EQ(own.calls, 1);
  EXPECT_EQ(own.value.status, ProposeStatus::dropped);
  EXPECT_TRUE(own.value.overloaded);
  EXPECT_EQ(own.value.disk_full_at, raft::kNobody);
  Answer<ProposeResult> forwarded;
  follower.handle(cluster.now(), propose(cluster, "b", forwarded));
  cluster.settle();
  ASSERT_EQ(forwarded.calls, 1);
  EXPECT_TRUE(forwarded.value.overloaded);
  EXPECT_TRUE(leader.leads());

  leader.set_behind(false);
  expect_it_takes_commands(cluster, leader);
}

TEST(SlowDisk, AFollowerWhoseLogIsBehindTakesNoEntriesAndKeepsItsPromises) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = follower_of(cluster, leader);
  cluster.advance(milliseconds(200));
  const raft::Index last = follower.driver().core().log().last_index();
  follower.set_behind(true);
  for (int i = 0; i < 50; ++i) {
    Answer<ProposeResult> answer;
    leader.handle(cluster.now(), propose(cluster, "x", answer));
    cluster.advance(milliseconds(100));
    ASSERT_EQ(answer.value.status, ProposeStatus::committed) << "the other two are a quorum";
  }
  EXPECT_EQ(follower.driver().core().log().last_index(), last);
  EXPECT_EQ(follower.driver().core().leader(), leader.id());
  follower.set_behind(false);
  const raft::Index end = leader.driver().core().log().last_index();
  EXPECT_TRUE(cluster.advance_until([&] { return follower.driver().applied() == end; }));
}

}  // namespace
}  // namespace leasehold::replica
