// How long a quorum took to acknowledge a round: Observer::on_round().
#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

namespace leasehold::replica {
namespace {

using testing::Cluster;
using testing::milliseconds;
using testing::Rig;

lease::Now later(lease::Now now, lease::Duration by) {
  return {now.holder + by, now.promise + by};
}

/// The messages of `from` to `to` arrive, and its disk is done with them.
void deliver(const std::vector<Rig::Sent>& sent, const Rig& from, Rig& to, lease::Now now) {
  for (const Rig::Sent& one : sent) {
    if (one.to == to.id()) to.handle(now, PeerMessageReceived{from.peer(), one.message});
  }
  if (to.writes_waiting() > 0) to.finish_writes(now, to.writes_waiting());
}

TEST(RoundTrip, ARoundCountsFromItsBeginning) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& first = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  Rig& second = cluster.node(6 - leader.id().value() - first.id().value());
  const std::size_t before = leader.rounds().size();
  EXPECT_GT(before, 0U);
  EXPECT_TRUE(first.rounds().empty());

  const lease::Duration pause = leader.driver().next_deadline() - cluster.now().promise;
  const lease::Now began = later(cluster.now(), pause);
  leader.handle(began, Tick{});
  const std::vector<Rig::Sent> round = leader.take_sent();
  ASSERT_EQ(round.size(), 2U);
  EXPECT_EQ(leader.rounds().size(), before) << "nobody has acknowledged it";

  deliver(round, leader, first, later(began, milliseconds(4)));
  deliver(first.take_sent(), first, leader, later(began, milliseconds(10)));
  ASSERT_EQ(leader.rounds().size(), before + 1);
  EXPECT_EQ(leader.rounds().back(), milliseconds(10));

  // The other one acknowledges the same round.
  deliver(round, leader, second, later(began, milliseconds(12)));
  deliver(second.take_sent(), second, leader, later(began, milliseconds(15)));
  EXPECT_EQ(leader.rounds().size(), before + 1);
}

}  // namespace
}  // namespace leasehold::replica
