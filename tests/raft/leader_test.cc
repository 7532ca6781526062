// The state of the role leader, without a core: what its voters have reached, and the queue of
// reads.
#include <leasehold/raft/leader.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::raft {
namespace {

using std::chrono::milliseconds;

Membership voters(std::uint64_t count) {
  Membership membership;
  for (std::uint64_t id = 1; id <= count; ++id) {
    membership.members.push_back({NodeId(id), Uuid{id, id}, "node" + std::to_string(id)});
    membership.voters.push_back(NodeId(id));
  }
  return membership;
}

Now at(int ms) {
  return Now{HolderInstant(milliseconds(ms)), PromiseInstant(milliseconds(ms))};
}

/// Node 1 leads three voters. Each millisecond a round begins.
struct Three {
  Membership membership = voters(3);
  lease::Timing timing;
  Leader leader{NodeId(1), at(0), Index(1), membership};

  void begin_rounds(int count) {
    for (int i = 1; i <= count; ++i) leader.begin_round(at(i), timing);
  }
  void acknowledge(std::uint64_t peer, std::uint64_t round) {
    leader.acknowledge(*leader.find(NodeId(peer)), Round(round));
  }
  std::optional<Index> matched() const { return leader.matched(membership, Index(7)); }
  QuorumAcknowledged acknowledged() const { return leader.acknowledged(membership, true); }
};

TEST(Leader, NothingIsReachedBeforeAnAcknowledgement) {
  Three three;
  three.begin_rounds(1);
  const QuorumAcknowledged acknowledged = three.acknowledged();
  EXPECT_EQ(three.matched(), Index(0));
  EXPECT_EQ(acknowledged.round, std::nullopt);
  EXPECT_EQ(acknowledged.began, std::nullopt);
  EXPECT_EQ(acknowledged.lease_end, std::nullopt);
}

TEST(Leader, TheLeaderAndOnePeerAreAQuorumOfThree) {
  Three three;
  three.begin_rounds(5);
  three.acknowledge(2, 3);
  three.leader.find(NodeId(3))->match_index = Index(4);
  const QuorumAcknowledged acknowledged = three.acknowledged();
  EXPECT_EQ(three.matched(), Index(4));
  EXPECT_EQ(acknowledged.round, Round(3));
  EXPECT_EQ(acknowledged.began, at(3).holder);
  EXPECT_EQ(acknowledged.lease_end, at(3).holder + three.timing.usable(three.timing.lease));
}

TEST(Leader, ThatDoesNotVoteDoesNotCount) {
  Three three;
  three.begin_rounds(5);
  three.acknowledge(2, 3);
  const Leader& leader = three.leader;
  EXPECT_EQ(leader.acknowledged(three.membership, false).round, std::nullopt);
  EXPECT_EQ(leader.matched(three.membership, std::nullopt), Index(0));
}

TEST(Leader, AnOlderOrUnknownRoundChangesNothing) {
  Three three;
  three.begin_rounds(5);
  three.acknowledge(2, 3);
  three.leader.due = {};
  three.acknowledge(2, 2);
  three.acknowledge(2, 6);
  EXPECT_FALSE(three.leader.due.rounds);
  EXPECT_EQ(three.leader.find(NodeId(2))->acked_round->round, Round(3));
}

// ---- Reads ----

LeaderRead read(std::uint64_t number, ReadMode mode, std::uint64_t round) {
  return {number, kNobody, Incarnation(), mode, Round(round)};
}

/// The numbers of what is answered, those by the lease as `L<number>`.
std::vector<std::string> answered(Leader& leader, bool lease_valid) {
  std::vector<std::string> numbers;
  leader.take_answered_reads(lease_valid, [&numbers](const LeaderRead& read, bool by_lease) {
    numbers.push_back((by_lease ? "L" : "") + std::to_string(read.read));
  });
  return numbers;
}

using Numbers = std::vector<std::string>;

TEST(LeaderReads, AQuorumConfirmsAPrefix) {
  Three three;
  Leader& leader = three.leader;
  three.begin_rounds(1);
  leader.add_read(read(1, ReadMode::quorum, 2));
  leader.add_read(read(2, ReadMode::lease, 2));
  three.begin_rounds(1);
  leader.add_read(read(3, ReadMode::quorum, 3));
  EXPECT_EQ(answered(leader, false), Numbers());
  leader.confirmed = Round(2);
  EXPECT_EQ(answered(leader, false), (Numbers{"1", "2"}));
  EXPECT_EQ(leader.reads.size(), 1U);
  EXPECT_EQ(leader.lease_reads, 0U);
}

TEST(LeaderReads, ALeaseAnswersTheReadsThatAcceptIt) {
  Three three;
  Leader& leader = three.leader;
  three.begin_rounds(1);
  leader.add_read(read(1, ReadMode::quorum, 2));
  leader.add_read(read(2, ReadMode::lease, 2));
  leader.add_read(read(3, ReadMode::quorum, 2));
  leader.add_read(read(4, ReadMode::lease, 2));
  EXPECT_EQ(answered(leader, true), (Numbers{"L2", "L4"}));
  EXPECT_EQ(answered(leader, true), Numbers());
  leader.confirmed = Round(2);
  EXPECT_EQ(answered(leader, true), (Numbers{"1", "3"}));
  EXPECT_TRUE(leader.reads.empty());
}

TEST(LeaderReads, AreAnsweredInTheOrderOfTheirArrival) {
  Three three;
  Leader& leader = three.leader;
  three.begin_rounds(1);
  leader.add_read(read(1, ReadMode::lease, 2));
  leader.add_read(read(2, ReadMode::quorum, 2));
  three.begin_rounds(1);
  leader.add_read(read(3, ReadMode::quorum, 3));
  leader.add_read(read(4, ReadMode::lease, 3));
  leader.confirmed = Round(2);
  EXPECT_EQ(answered(leader, true), (Numbers{"L1", "2", "L4"}));
}

TEST(LeaderReads, WantARoundOnceTheNewestIsConfirmed) {
  Three three;
  Leader& leader = three.leader;
  three.begin_rounds(1);
  EXPECT_FALSE(leader.wants_round());
  leader.add_read(read(1, ReadMode::quorum, 2));
  EXPECT_FALSE(leader.wants_round());
  leader.confirmed = Round(1);
  EXPECT_TRUE(leader.wants_round());
  three.begin_rounds(1);
  EXPECT_FALSE(leader.wants_round());
}

TEST(LeaderReads, AllAreTakenWhenTheRoleIsLost) {
  Three three;
  Leader& leader = three.leader;
  three.begin_rounds(1);
  leader.add_read(read(1, ReadMode::lease, 2));
  leader.add_read({2, NodeId(3), Incarnation(1), ReadMode::quorum, Round(2)});
  EXPECT_EQ(leader.remote_reads, 1U);
  std::size_t taken = 0;
  leader.take_reads([&taken](const LeaderRead&) { ++taken; });
  EXPECT_EQ(taken, 2U);
  EXPECT_TRUE(leader.reads.empty());
  EXPECT_EQ(leader.remote_reads, 0U);
  EXPECT_EQ(leader.lease_reads, 0U);
}

}  // namespace
}  // namespace leasehold::raft
