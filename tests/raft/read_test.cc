// Linearizable reads: by lease, by quorum, through the leader.

#include "group.h"

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

TEST(Read, UnderTheLeaseNoMessageLeaves) {
  Group group(3);
  const int leader = group.elect();
  group.settle();
  group.ask(leader, 900, ReadMode::lease);
  EXPECT_TRUE(group.in_flight().empty());
  const ReadAnswer& answer = group.replica(leader).reads.back();
  EXPECT_EQ(answer.read, 900U);
  EXPECT_EQ(answer.basis, ReadBasis::lease);
  EXPECT_EQ(answer.index, group.core(leader).commit_index());
}

TEST(Read, WithoutALeaseAQuorumConfirmsIt) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(500));
  group.jump(ms(900));  // past the usable lease, before the step-down
  const auto answer = group.read(leader, ReadMode::lease);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->index, group.core(leader).commit_index());
}

TEST(Read, AQuorumReadNeedsARoundThatBeganAfterIt) {
  Group group(3);
  const int leader = group.elect();
  group.settle();
  // A round is out when the read arrives. Its answers do not confirm the read; they let the next
  // round begin.
  group.jump(group.core(leader).next_deadline() - group.now().promise);
  group.tick(leader);
  group.ask(leader, 901, ReadMode::quorum);
  std::deque<Envelope> appends;
  appends.swap(group.in_flight());
  ASSERT_EQ(appends.size(), 2U);
  for (const Envelope& e : appends) {
    group.step(static_cast<int>(e.from.value()), static_cast<int>(e.to.value()), e.message);
  }
  std::deque<Envelope> replies;
  replies.swap(group.in_flight());
  ASSERT_EQ(replies.size(), 2U);
  for (const Envelope& e : replies) {
    group.step(static_cast<int>(e.from.value()), static_cast<int>(e.to.value()), e.message);
  }
  EXPECT_TRUE(group.replica(leader).reads.empty());
  group.settle();
  ASSERT_EQ(group.replica(leader).reads.size(), 1U);
  EXPECT_EQ(group.replica(leader).reads.back().basis, ReadBasis::quorum);
}

TEST(Read, OneRoundServesEverythingThatWaits) {
  Group group(3);
  const int leader = group.elect();
  group.settle();
  for (std::uint64_t i = 0; i < 100; ++i) {
    group.core(leader).read_index(group.now(), 1000 + i, ReadMode::quorum);
  }
  group.drain(leader);
  EXPECT_EQ(group.in_flight().size(), 2U);
  group.settle();
  EXPECT_EQ(group.replica(leader).reads.size(), 100U);
}

TEST(Read, AFollowerAsksItsLeader) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(200));
  const int follower = leader % 3 + 1;
  group.propose(leader, "x");
  group.settle();
  const auto answer = group.read(follower, ReadMode::lease);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->basis, ReadBasis::leader);
  EXPECT_EQ(answer->index, Index(2));
}

// The core proposes nothing for a read: the driver does that.
TEST(Read, ModeLogIsAnsweredByAQuorum) {
  Group group(3);
  const int leader = group.elect();
  group.settle();
  group.ask(leader, 7, ReadMode::log);
  EXPECT_TRUE(group.replica(leader).reads.empty()) << "it does not rely on the lease";
  group.settle();
  ASSERT_EQ(group.replica(leader).reads.size(), 1U);
  EXPECT_EQ(group.replica(leader).reads.back().basis, ReadBasis::quorum);

  const int follower = leader % 3 + 1;
  group.ask(follower, 8, ReadMode::log);
  ASSERT_EQ(group.in_flight().size(), 1U);
  EXPECT_TRUE(std::get<ReadIndexRequest>(group.in_flight().front().message).quorum);
  group.settle();
  ASSERT_EQ(group.replica(follower).reads.size(), 1U);
  EXPECT_EQ(group.replica(follower).reads.back().index, group.core(leader).commit_index());
}

TEST(Read, AnAnswerToAnEarlierProcessMatchesNothing) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(200));
  const int follower = leader % 3 + 1;
  std::optional<Envelope> kept;
  group.filter = [&kept](const Envelope& e) {
    if (!std::holds_alternative<ReadIndexReply>(e.message)) return true;
    kept = e;
    return false;
  };
  group.read(follower, ReadMode::lease);
  ASSERT_TRUE(kept.has_value());
  group.restart(follower);
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(200));
  // The new process asks with the same number; the old answer must not pass for the new one.
  group.ask(follower, 5, ReadMode::lease);
  group.in_flight().clear();
  group.step(leader, follower, kept->message);
  EXPECT_TRUE(group.replica(follower).reads.empty() ||
              group.replica(follower).reads.back().read != 5U);
}

TEST(Read, ALostRequestIsSentAgain) {
  for (const ReadMode mode : {ReadMode::lease, ReadMode::quorum}) {
    Group group(3);
    const int leader = group.elect();
    group.run(ms(200));
    const int follower = leader % 3 + 1;
    int lost = 0;
    group.filter = [&lost](const Envelope& e) {
      return !std::holds_alternative<ReadIndexRequest>(e.message) || ++lost > 1;
    };
    group.ask(follower, 7, mode);
    group.run(ms(400));
    ASSERT_FALSE(group.replica(follower).reads.empty());
    EXPECT_EQ(group.replica(follower).reads.back().read, 7U);
    EXPECT_TRUE(group.replica(follower).reads.back().index.has_value());
  }
}

// H36: no read waits forever.
TEST(Read, EveryPendingReadCompletesWhenLeadershipIsLost) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(200));
  group.isolate(leader);
  group.ask(leader, 8, ReadMode::quorum);
  group.ask(leader % 3 + 1, 9, ReadMode::lease);
  group.in_flight().clear();
  group.run(ms(5000));
  EXPECT_EQ(group.core(leader).pending_reads(), 0U);
  EXPECT_EQ(group.replica(leader).reads.back().read, 8U);
  EXPECT_FALSE(group.replica(leader).reads.back().index.has_value());
  EXPECT_EQ(group.core(leader % 3 + 1).pending_reads(), 0U);
}

TEST(Read, ANodeWithoutALeaderRefusesAtOnce) {
  Group group(3);
  const auto answer = group.read(1, ReadMode::lease);
  ASSERT_TRUE(answer.has_value());
  EXPECT_FALSE(answer->index.has_value());
}

// H28: a new leader's commit index may be too low until an entry of its own term is committed.
TEST(Read, WaitsForTheTermsFirstCommit) {
  Group group(3);
  group.filter = [](const Envelope& e) {
    const auto* append = std::get_if<AppendRequest>(&e.message);
    return append == nullptr || append->entries.empty();
  };
  group.run(ms(900));
  int leader = 0;
  for (int id = 1; id <= 3; ++id) {
    if (group.core(id).role() == Role::leader) leader = id;
  }
  ASSERT_NE(leader, 0);
  group.ask(leader, 10, ReadMode::quorum);
  group.run(ms(200));
  EXPECT_TRUE(group.replica(leader).reads.empty());
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(300));
  ASSERT_FALSE(group.replica(leader).reads.empty());
  EXPECT_GE(group.replica(leader).reads.back().index->value(), 1U);
}

}  // namespace
}  // namespace leasehold::raft::test
