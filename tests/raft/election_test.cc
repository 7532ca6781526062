// Elections: one test per sentence of the Raft paper's section 5.2, and of what the promise adds to
// it.

#include "group.h"

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

TEST(Election, AGroupOfOneElectsItself) {
  Group group(1);
  EXPECT_EQ(group.elect(), 1);
  EXPECT_GT(group.core(1).lease_end(), group.now().holder);
}

TEST(Election, AGroupElectsOneLeaderThatAllNodesKnow) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Group group(5, {}, seed);
    const int leader = group.elect();
    group.run(ms(200));
    for (int id = 1; id <= 5; ++id) {
      EXPECT_EQ(group.core(id).leader().value(), static_cast<std::uint64_t>(leader));
      EXPECT_EQ(group.core(id).role() == Role::leader, id == leader);
    }
  }
}

TEST(Election, TheTimeoutIsDrawnAgainFromOneToTwoElectionTimeouts) {
  std::set<std::int64_t> waits;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Group group(3, {}, seed);
    const Duration wait = group.core(1).next_deadline() - group.now().promise;
    EXPECT_GE(wait, ms(300));
    EXPECT_LT(wait, ms(600));
    waits.insert(wait.count());
  }
  EXPECT_GT(waits.size(), 35U);
}

TEST(Election, APreVoteChangesNothingAtTheVoter) {
  Group group(3);
  const HardState before = group.core(2).hard_state();
  const PromiseInstant deadline = group.core(2).next_deadline();
  group.step(1, 2, PreVoteRequest{Term(7), LogId{}});
  EXPECT_EQ(group.core(2).hard_state(), before);
  EXPECT_EQ(group.core(2).next_deadline(), deadline);
  ASSERT_EQ(group.in_flight().size(), 1U);
  const auto& reply = std::get<PreVoteReply>(group.in_flight().front().message);
  EXPECT_TRUE(reply.granted);
}

TEST(Election, AVoterVotesOnceInATerm) {
  Group group(3);
  group.step(1, 3, VoteRequest{Term(2), LogId{}});
  group.step(2, 3, VoteRequest{Term(2), LogId{}});
  group.step(1, 3, VoteRequest{Term(2), LogId{}});
  ASSERT_EQ(group.in_flight().size(), 3U);
  EXPECT_TRUE(std::get<VoteReply>(group.in_flight()[0].message).granted);
  EXPECT_FALSE(std::get<VoteReply>(group.in_flight()[1].message).granted);
  EXPECT_TRUE(std::get<VoteReply>(group.in_flight()[2].message).granted);
}

TEST(Election, AVoterRefusesACandidateWhoseLogIsBehind) {
  Group group(3);
  const int leader = group.elect();
  const int voter = leader % 3 + 1;
  group.jump(ms(5000));
  group.step(leader, voter, VoteRequest{Term(50), LogId{Term(0), Index(9)}});
  const auto& reply = std::get<VoteReply>(group.in_flight().back().message);
  EXPECT_FALSE(reply.granted);
  EXPECT_EQ(events_of<VoteRefused>(group.replica(voter)).back().reason, VoteRefusal::log_behind);
}

TEST(Election, AGrantedVoteDelaysTheOwnCampaignByAnElectionTimeout) {
  Group group(3);
  group.jump(ms(250));
  group.step(1, 2, VoteRequest{Term(1), LogId{}});
  EXPECT_GE(group.core(2).next_deadline() - group.now().promise, ms(300));
}

TEST(Election, AVoteWaitsForItsDisk) {
  Group group(3);
  group.replica(2).auto_sync = false;
  group.step(1, 2, VoteRequest{Term(1), LogId{}});
  EXPECT_TRUE(group.in_flight().empty());
  group.sync(2);
  ASSERT_EQ(group.in_flight().size(), 1U);
  EXPECT_TRUE(std::get<VoteReply>(group.in_flight().front().message).granted);
}

TEST(Election, ACandidateAsksForVotesAndCountsItsOwnOnlyWhenItsVoteIsDurable) {
  Group group(1);
  group.replica(1).auto_sync = false;
  group.run(ms(1000));
  EXPECT_EQ(group.core(1).role(), Role::candidate);
  group.sync(1);
  EXPECT_EQ(group.core(1).role(), Role::leader);

  Group three(3);
  three.replica(1).auto_sync = false;
  bool asked = false;
  three.filter = [&asked](const Envelope& e) {
    if (std::holds_alternative<VoteRequest>(e.message) && e.from == NodeId(1)) asked = true;
    // No other node campaigns.
    return e.from == NodeId(1) || !std::holds_alternative<PreVoteRequest>(e.message);
  };
  for (int i = 0; i < 100 && three.core(1).role() != Role::candidate; ++i) three.run(ms(10));
  ASSERT_EQ(three.core(1).role(), Role::candidate);
  EXPECT_FALSE(asked);
  three.sync(1);
  three.settle();
  EXPECT_TRUE(asked);
}

TEST(Election, ANewLeaderCommitsAnEmptyEntryOfItsTerm) {
  Group group(3);
  const int leader = group.elect();
  ASSERT_EQ(group.replica(leader).log.size(), 1U);
  EXPECT_EQ(group.replica(leader).log[0].kind, EntryKind::empty);
  EXPECT_EQ(group.core(leader).commit_index(), Index(1));
}

TEST(Election, ANodeThatComesBackFromAPartitionDoesNotDeposeTheLeader) {
  Group group(3);
  const int leader = group.elect();
  const Term term = group.core(leader).term();
  const int lonely = leader % 3 + 1;
  group.isolate(lonely);
  group.run(ms(20000));
  group.heal();
  group.run(ms(2000));
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_EQ(group.core(leader).term(), term);
  EXPECT_EQ(group.core(lonely).leader().value(), static_cast<std::uint64_t>(leader));
}

// A node that is stranded in a higher term costs a few round trips, not a lease: the leader adopts
// the term, and the voters' promises let their own holder pass.
TEST(Election, AStrandedHigherTermCostsRoundTripsOnly) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(500));
  const int stranded = leader % 3 + 1;
  const Term high = group.core(leader).term() + 10;
  Replica& replica = group.replica(stranded);
  group.crash(stranded);
  replica.disk_hard_state = HardState{};
  replica.disk_hard_state.term = high;
  group.restart(stranded);
  const PromiseInstant before = group.now().promise;
  for (int i = 0; i < 100 && group.core(leader).term() <= high; ++i) group.run(ms(10));
  group.settle();
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_EQ(group.core(leader).term(), high.next());
  // One heartbeat to learn of it; the election itself takes no time here.
  EXPECT_LE(group.now().promise - before, ms(120));
}

TEST(Election, ALeaderWithoutAQuorumStepsDownAfterALease) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(300));
  group.isolate(leader);
  group.run(ms(850));
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  group.run(ms(160));
  EXPECT_NE(group.core(leader).role(), Role::leader);
  EXPECT_EQ(events_of<RoleChanged>(group.replica(leader))[4].reason, RoleChangeReason::quorum_lost);
}

TEST(Election, ALeaderWhoseDiskStallsLeadsOnWhileTheOthersStoreNothing) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(300));
  for (int id = 1; id <= 3; ++id) group.replica(id).auto_sync = false;
  group.propose(leader, "stuck");
  group.run(ms(3000));
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_GT(group.replica(leader).view.end, group.now().holder) << "its lease serves reads";
  EXPECT_GT(group.core(leader).next_deadline(), group.now().promise) << "it does not spin";
  // The others write again, and commit what this node has not stored.
  for (int id = 1; id <= 3; ++id) {
    if (id != leader) group.replica(id).auto_sync = true;
    if (id != leader) group.sync(id);
  }
  group.settle();
  group.run(ms(140));
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  group.run(ms(20));
  EXPECT_EQ(group.core(leader).role(), Role::follower);
  EXPECT_EQ(events_of<RoleChanged>(group.replica(leader)).back().reason,
            RoleChangeReason::disk_stalled);
}

TEST(Election, ALeaderWhoseDiskMovesAfterTheOthersLeadsOn) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(300));
  // What the others stored before all disks stalled does not show that they store.
  group.replica(leader).auto_sync = false;
  group.propose(leader, "stored by the others");
  group.settle();
  EXPECT_GT(group.core(leader).commit_index(), group.core(leader).durable_index());
  for (int id = 1; id <= 3; ++id) group.replica(id).auto_sync = false;
  group.propose(leader, "stuck");
  group.run(ms(3000));
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_GT(group.core(leader).next_deadline(), group.now().promise) << "it does not spin";
  for (int id = 1; id <= 3; ++id) {
    group.replica(id).auto_sync = true;
    if (id != leader) group.sync(id);
  }
  group.settle();
  group.run(ms(100));
  group.sync(leader);
  group.run(ms(1000));
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_EQ(events_of<RoleChanged>(group.replica(leader)).back().reason,
            RoleChangeReason::election_won);
}

TEST(Election, ALeaderWhoseDiskStallsGivesUpAndDoesNotCampaign) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(300));
  group.replica(leader).auto_sync = false;
  group.propose(leader, "stuck");
  group.run(ms(290));
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  group.run(ms(20));
  EXPECT_EQ(group.core(leader).role(), Role::follower);
  group.run(ms(3000));
  EXPECT_NE(group.core(leader).role(), Role::leader);
  EXPECT_NE(group.elect(), leader);
}

}  // namespace
}  // namespace leasehold::raft::test
