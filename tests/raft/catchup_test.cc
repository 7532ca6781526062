// A leader whose log is cut, and a peer that needs what is gone: it gets a snapshot.

#include "group.h"

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

/// A group whose leader has cut off what its follower `behind` lacks.
struct Behind {
  explicit Behind(bool sends_snapshots) : group(3) {
    group.sends_snapshots = sends_snapshots;
    leader = group.elect();
    group.run(ms(200));
    behind = leader % 3 + 1;
    group.isolate(behind);
    for (int i = 0; i < 5; ++i) group.propose(leader, std::to_string(i));
    group.settle();
    group.cut_log(leader, group.core(leader).commit_index());
    base = group.core(leader).log().base().index;
  }
  const Progress& progress() {
    return group.core(leader).progress().at(NodeId(static_cast<std::uint64_t>(behind)));
  }
  /// The leader finds out; the peer is away again.
  SnapshotIntent find_out() {
    group.heal();
    while (group.replica(leader).intents.empty()) group.run(ms(10));
    group.isolate(behind);
    return group.replica(leader).intents.at(0);
  }
  Group group;
  int leader = 0;
  int behind = 0;
  Index base;
};

TEST(Catchup, APeerThatNeedsWhatIsCutOffGetsASnapshot) {
  Behind b(true);
  b.group.heal();
  b.group.run(ms(500));
  EXPECT_EQ(b.group.replica(b.behind).installed.size(), 1U);
  EXPECT_EQ(b.group.replica(b.behind).machine, b.group.replica(b.leader).machine);
  EXPECT_EQ(b.progress().state, ProgressState::replicate);
  EXPECT_EQ(b.progress().match_index, b.base);
  EXPECT_EQ(events_of<SnapshotSending>(b.group.replica(b.leader)).size(), 1U);
  b.group.propose(b.leader, "after");
  b.group.run(ms(200));
  EXPECT_EQ(b.group.replica(b.behind).machine, b.group.replica(b.leader).machine);
}

TEST(Catchup, HeartbeatsGoOnAndCarryTheLease) {
  Behind b(false);
  b.group.heal();
  const int other = 6 - b.leader - b.behind;
  b.group.cut(b.leader, other);
  b.group.run(ms(3000));
  // The lease rests on the peer that has almost no log.
  EXPECT_EQ(b.group.core(b.leader).role(), Role::leader);
  EXPECT_GT(b.group.core(b.leader).lease_end(), b.group.now().holder);
  EXPECT_EQ(b.progress().state, ProgressState::snapshot);
  EXPECT_EQ(b.progress().next_index, b.base.next());
}

TEST(Catchup, OneIntentIsOpenAndTheNextWaitsForARound) {
  Behind b(false);
  b.group.heal();
  b.group.run(ms(1000));
  std::vector<SnapshotIntent>& intents = b.group.replica(b.leader).intents;
  ASSERT_EQ(intents.size(), 1U);
  const SnapshotIntent first = intents[0];
  Core& core = b.group.core(b.leader);
  EXPECT_TRUE(core.current(first));
  core.snapshot_ended(b.group.now(), first);
  b.group.drain(b.leader);
  b.group.settle();
  EXPECT_FALSE(core.current(first));
  EXPECT_EQ(intents.size(), 1U);
  b.group.run(ms(250));
  ASSERT_EQ(intents.size(), 2U);
  SnapshotChunk chunk;
  EXPECT_FALSE(core.stamp(first, chunk));
  EXPECT_TRUE(core.stamp(intents[1], chunk));
  EXPECT_EQ(chunk.term, core.term());
  EXPECT_GT(chunk.round, Round(0));
  EXPECT_EQ(chunk.lease, ms(1000));
}

TEST(Catchup, APeerThatIsAwayGetsNoSnapshot) {
  Behind b(false);
  std::vector<SnapshotIntent>& intents = b.group.replica(b.leader).intents;
  b.group.core(b.leader).snapshot_ended(b.group.now(), b.find_out());
  b.group.drain(b.leader);
  b.group.run(ms(2000));
  EXPECT_EQ(intents.size(), 1U);
}

TEST(Catchup, GoesOnWhenTheBaseMovesOn) {
  Behind b(false);
  const SnapshotIntent intent = b.find_out();
  b.group.propose(b.leader, "more");
  b.group.settle();
  b.group.cut_log(b.leader, b.group.core(b.leader).commit_index());
  EXPECT_GT(b.group.core(b.leader).log().base().index, b.base);
  EXPECT_TRUE(b.group.core(b.leader).current(intent));
  EXPECT_EQ(b.progress().next_index.prev(), b.group.core(b.leader).log().base().index);
  // What was promised with the first base is served with what is there now.
  b.group.heal();
  b.group.send_snapshot(b.leader, intent);
  b.group.run(ms(500));
  EXPECT_EQ(b.group.replica(b.behind).machine, b.group.replica(b.leader).machine);
}

TEST(Catchup, ALaggingPeerIsProbedAtTheBaseFirst) {
  Group group(3);
  group.sends_snapshots = false;
  const int leader = group.elect();
  group.run(ms(200));
  // What is sent is acknowledged late, and cut off before.
  group.filter = [](const Envelope& e) { return !std::holds_alternative<AppendReply>(e.message); };
  const int slow = leader % 3 + 1;
  group.propose(leader, "a");
  group.settle();
  group.filter = [&](const Envelope& e) {
    return e.from != NodeId(static_cast<std::uint64_t>(slow)) ||
           !std::holds_alternative<AppendReply>(e.message);
  };
  group.run(ms(200));
  group.cut_log(leader, group.core(leader).commit_index());
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(300));
  EXPECT_TRUE(group.replica(leader).intents.empty());
  EXPECT_EQ(group.core(slow).commit_index(), group.core(leader).commit_index());
}

// A new leader looks for the place where the logs differ, but has cut it off.
TEST(Catchup, AProbeThatEndsBelowTheBaseEndsInASnapshot) {
  Group group(3);
  const int first = group.elect();
  group.run(ms(200));
  const int behind = first % 3 + 1;
  const int next = 6 - first - behind;
  group.isolate(behind);
  for (int i = 0; i < 5; ++i) group.propose(first, std::to_string(i));
  group.settle();
  group.run(ms(200));
  group.cut_log(next, group.core(next).commit_index());
  group.isolate(first);
  group.heal();
  group.isolate(first);
  group.run(ms(5000));
  ASSERT_EQ(group.core(next).role(), Role::leader);
  EXPECT_EQ(group.replica(behind).installed.size(), 1U);
  EXPECT_EQ(group.replica(behind).machine, group.replica(next).machine);
}

TEST(Catchup, ACutBelowAProbeEndsInASnapshot) {
  Group group(3);
  group.sends_snapshots = false;
  const int leader = group.elect();
  group.run(ms(200));
  const int behind = leader % 3 + 1;
  const NodeId peer(static_cast<std::uint64_t>(behind));
  group.isolate(behind);
  for (int i = 0; i < 5; ++i) group.propose(leader, std::to_string(i));
  group.settle();
  // The refusal comes, the probe that follows is lost.
  group.heal();
  int refusals = 0;
  group.filter = [&](const Envelope& e) {
    if (e.from == peer) refusals += std::holds_alternative<AppendReply>(e.message) ? 1 : 0;
    return e.to != peer || refusals == 0;
  };
  while (group.core(leader).progress().at(peer).state != ProgressState::probe) group.run(ms(20));
  const Index probe = group.core(leader).progress().at(peer).next_index;
  ASSERT_LT(probe, group.core(leader).commit_index());
  group.cut_log(leader, group.core(leader).commit_index());
  EXPECT_EQ(group.core(leader).progress().at(peer).state, ProgressState::snapshot);
  EXPECT_EQ(group.replica(leader).intents.size(), 1U);
}

TEST(Catchup, ALeaderThatIsReplacedSendsNoMore) {
  Behind b(false);
  const SnapshotIntent intent = b.find_out();
  AppendReply reply;
  reply.request_term = b.group.core(b.leader).term();
  reply.term = Term(reply.request_term.value() + 1);
  b.group.step(6 - b.leader - b.behind, b.leader, reply);
  ASSERT_NE(b.group.core(b.leader).role(), Role::leader);
  SnapshotChunk chunk;
  EXPECT_FALSE(b.group.core(b.leader).current(intent));
  EXPECT_FALSE(b.group.core(b.leader).stamp(intent, chunk));
  b.group.core(b.leader).snapshot_ended(b.group.now(), intent);
  // The next leader brings the peer up to date.
  b.group.sends_snapshots = true;
  b.group.heal();
  b.group.run(ms(6000));
  const int next = b.group.elect();
  EXPECT_EQ(b.group.replica(b.behind).machine, b.group.replica(next).machine);
}

}  // namespace
}  // namespace leasehold::raft::test
