// An answer counts for what was asked, and says only what is durable.

#include "group.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::raft::test {
namespace {

const lease::Timing kTiming;

LogId at(std::uint64_t term, std::uint64_t index) {
  return {Term(term), Index(index)};
}

AppendRequest append(std::uint64_t term, LogId prev) {
  AppendRequest m;
  m.term = Term(term);
  m.prev = prev;
  m.round = Round(1);
  m.lease = kTiming.lease;
  return m;
}

SnapshotChunk chunk(Group& group, std::uint64_t term) {
  SnapshotChunk m;
  m.term = Term(term);
  m.round = Round(1);
  m.lease = kTiming.lease;
  m.id = {at(1, 9), 7};
  m.membership = group.membership();
  m.size = 2;
  m.data = Bytes("x");
  return m;
}

template <class M>
std::size_t count_of(const Group& group) {
  std::size_t count = 0;
  for (const Envelope& e : group.in_flight()) {
    if (std::holds_alternative<M>(e.message)) ++count;
  }
  return count;
}

/// Node 1, which asks for pre-votes and hears of no node.
struct PreCandidate {
  Group group{3};
  PreCandidate() {
    group.filter = [](const Envelope&) { return false; };
    while (group.core(1).role() != Role::pre_candidate) group.run(ms(10));
  }
  Role role() { return group.core(1).role(); }
  Term term() { return group.core(1).term(); }
};

// ---- Of a campaign ----

TEST(Answer, OfAnotherPreVoteIsNotCounted) {
  PreCandidate node;
  const Term asked = node.term().next();
  for (const Term other : {node.term(), asked.next(), asked + 5}) {
    for (const int voter : {2, 3}) {
      node.group.step(voter, 1, PreVoteReply{other, node.term(), true, kNobody});
    }
    EXPECT_EQ(node.role(), Role::pre_candidate) << "granted for term " << other.value();
    for (const int voter : {2, 3}) {
      node.group.step(voter, 1, PreVoteReply{other, node.term(), false, kNobody});
    }
    EXPECT_EQ(node.role(), Role::pre_candidate) << "refused for term " << other.value();
  }
  node.group.step(2, 1, PreVoteReply{asked, node.term(), true, kNobody});
  EXPECT_EQ(node.role(), Role::candidate);
}

TEST(Answer, OfAnotherCampaignIsNotCounted) {
  PreCandidate node;
  // A campaign that came to nothing, and the next one.
  for (int campaign = 0; campaign < 2; ++campaign) {
    while (node.role() != Role::pre_candidate) node.group.run(ms(10));
    node.group.step(2, 1, PreVoteReply{node.term().next(), node.term(), true, kNobody});
    ASSERT_EQ(node.role(), Role::candidate);
  }
  const Term term = node.term();
  for (const int voter : {2, 3}) {
    node.group.step(voter, 1, VoteReply{term.prev(), term.prev(), true, kNobody});
    node.group.step(voter, 1, VoteReply{term.prev(), term, true, kNobody});
  }
  EXPECT_EQ(node.role(), Role::candidate) << "votes for the campaign before";
  for (const int voter : {2, 3}) {
    node.group.step(voter, 1, VoteReply{term.prev(), term, false, kNobody});
  }
  EXPECT_EQ(node.role(), Role::candidate) << "refusals of the campaign before";
  node.group.step(2, 1, VoteReply{term, term, true, kNobody});
  EXPECT_EQ(node.role(), Role::leader);
}

TEST(Answer, APreVoteForTheVotersOwnTermIsRefused) {
  for (const std::uint64_t own : {1U, 3U, 7U}) {
    Group group(3);
    group.step(1, 2, VoteRequest{Term(own), {}});
    ASSERT_EQ(group.core(2).term(), Term(own));
    for (const std::uint64_t asked : {own - 1, own, own + 1}) {
      group.in_flight().clear();
      group.step(3, 2, PreVoteRequest{Term(asked), {}});
      EXPECT_EQ(std::get<PreVoteReply>(group.in_flight().back().message).granted, asked > own)
          << "in term " << own << ", for term " << asked;
    }
  }
}

// ---- A message names durable terms only ----

// After a crash the node would not know a term that it has already sent.
TEST(Answer, LeavesWhenTheTermThatItNamesIsDurable) {
  Group group(3);
  struct Case {
    const char* name;
    int from;
    Message request;
  };
  const std::vector<Case> cases = {
      {"a pre-vote", 1, PreVoteRequest{Term(4), at(3, 3)}},
      {"a pre-vote in a later term", 1, PreVoteRequest{Term(9), at(8, 8)}},
      {"a vote in an old term", 1, VoteRequest{Term(4), at(3, 3)}},
      {"a vote in a later term", 1, VoteRequest{Term(9), at(8, 8)}},
      {"an append of an old term", 1, append(4, {})},
      {"an append that is refused", 3, append(5, at(4, 4))},
      {"an append", 3, append(5, {})},
      {"a chunk of an old term", 1, chunk(group, 4)},
      {"a chunk", 3, chunk(group, 5)},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    Group fresh(3);
    fresh.replica(2).auto_sync = false;
    fresh.step(3, 2, append(5, {}));
    ASSERT_EQ(fresh.core(2).term(), Term(5));
    fresh.step(one.from, 2, one.request);
    EXPECT_TRUE(fresh.in_flight().empty());
    fresh.crash(2);
    EXPECT_EQ(fresh.replica(2).disk_hard_state.term, Term(0)) << "it would be forgotten";
  }
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    Group fresh(3);
    fresh.replica(2).auto_sync = false;
    fresh.step(3, 2, append(5, {}));
    fresh.step(one.from, 2, one.request);
    fresh.sync(2);
    EXPECT_EQ(fresh.in_flight().size(), 2U);
    EXPECT_EQ(fresh.replica(2).disk_hard_state.term, Term(5));
  }
}

// A refusal counts as an acknowledgement of its round, so its promise is no less durable.
TEST(Answer, ARefusedAppendIsAnsweredWhenThePromiseIsDurable) {
  Group group(3);
  group.step(1, 2, append(5, {}));  // an earlier promise is durable
  group.jump(ms(5000));
  group.replica(2).auto_sync = false;
  group.in_flight().clear();
  group.step(3, 2, append(6, at(4, 4)));
  EXPECT_TRUE(group.in_flight().empty());
  group.sync(2);
  ASSERT_EQ(count_of<AppendReply>(group), 1U);
  const auto& reply = std::get<AppendReply>(group.in_flight().back().message);
  EXPECT_TRUE(reply.promised);
  EXPECT_FALSE(reply.matched);
  EXPECT_EQ(group.replica(2).disk_hard_state.promise.holder, NodeId(3));
}

// The candidate whose vote came first may not know of the leader: the node that heard it does, also
// after a restart.
TEST(Answer, AVoteBecomesCommittedWhenItsCandidateIsHeardAsTheLeader) {
  Group group(3);
  group.step(1, 2, VoteRequest{Term(3), {}});
  EXPECT_FALSE(group.core(2).hard_state().vote_committed);
  group.step(1, 2, append(3, {}));
  EXPECT_TRUE(group.core(2).hard_state().vote_committed);
  EXPECT_TRUE(group.replica(2).disk_hard_state.vote_committed);
  group.restart(2);
  group.replica(2).events.clear();
  group.step(3, 2, append(3, {}));
  const auto told = events_of<ProtocolViolation>(group.replica(2));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told.front().what, Violation::second_leader);
}

// ---- Of a leader that leads no more ----

// It led the term, in its life before: there is no promise that says so.
TEST(Answer, ANodeThatLedATermHearsNoOtherLeaderOfItAfterARestart) {
  for (const int away : {1, 2}) {
    Group group(3);
    const int leader = group.elect();
    const Term term = group.core(leader).term();
    group.isolate(leader);
    group.restart(leader);
    group.replica(leader).events.clear();
    const int other = (leader + away - 1) % 3 + 1;
    group.step(other, leader, append(term.value(), {}));
    const auto told = events_of<ProtocolViolation>(group.replica(leader));
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told.front().what, Violation::second_leader);
    EXPECT_EQ(group.core(leader).leader(), kNobody);
    EXPECT_EQ(group.core(leader).hard_state().promise, StoredPromise{});
  }
}

// Otherwise it would take the votes from the candidate that it has just voted for.
TEST(Answer, ADeposedLeaderThatGrantsItsVoteDoesNotCampaign) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Group group(3, {}, seed);
    const int leader = group.elect();
    group.run(ms(500));
    group.jump(ms(850));  // past the usable lease, before the step-down
    ASSERT_EQ(group.core(leader).role(), Role::leader);
    const LogId last = group.core(leader).log().last();
    group.in_flight().clear();
    group.step(leader % 3 + 1, leader, VoteRequest{group.core(leader).term().next(), last});
    ASSERT_EQ(count_of<VoteReply>(group), 1U);
    EXPECT_TRUE(std::get<VoteReply>(group.in_flight().back().message).granted);
    EXPECT_EQ(count_of<PreVoteRequest>(group), 0U);
    EXPECT_EQ(group.core(leader).role(), Role::follower);
    EXPECT_GE(group.core(leader).next_deadline() - group.now().promise, kTiming.election_timeout);
  }
  // One that refuses campaigns at once: its log may be the only one that can win.
  Group group(3);
  const int leader = group.elect();
  group.run(ms(500));
  group.jump(ms(850));
  group.in_flight().clear();
  group.step(leader % 3 + 1, leader, VoteRequest{group.core(leader).term().next(), LogId{}});
  EXPECT_EQ(count_of<PreVoteRequest>(group), 2U);
}

// It has just been cut off or lost its quorum: another node is better placed.
TEST(Answer, ALeaderThatStepsDownWaitsAnElectionTimeout) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Group group(3, {}, seed);
    const int leader = group.elect();
    group.run(ms(300));
    group.isolate(leader);
    while (group.core(leader).role() == Role::leader) group.run(ms(1));
    EXPECT_EQ(group.core(leader).role(), Role::follower);
    EXPECT_GE(group.core(leader).next_deadline() - group.now().promise,
              kTiming.election_timeout - ms(1));
  }
}

// What a new leader had promised to others has ended, or they gave it up.
TEST(Answer, ANewLeaderIsBoundByNoPromise) {
  Group group(3);
  const int first = group.elect();
  group.run(ms(300));
  group.isolate(first);
  group.run(ms(3000));
  group.heal();
  group.run(ms(1000));
  const int next = group.elect();
  ASSERT_NE(next, first);
  EXPECT_EQ(group.core(next).hard_state().promise, StoredPromise{});
  EXPECT_EQ(group.replica(next).disk_hard_state.promise, StoredPromise{});
  EXPECT_EQ(group.core(first).hard_state().promise.holder.value(),
            static_cast<std::uint64_t>(next));
}

// ---- Of reads, when the term's first entry is committed ----

// Nothing else may come: the leader is alone, and its own disk completes the commit.
TEST(Answer, ToAReadComesWithTheCommitThatItWaitsFor) {
  for (const ReadMode mode : {ReadMode::lease, ReadMode::quorum}) {
    Group group(1);
    group.replica(1).auto_sync = false;
    group.run(ms(1000));
    ASSERT_EQ(group.core(1).role(), Role::candidate);
    group.sync_one(1);
    group.drain(1);
    ASSERT_EQ(group.core(1).role(), Role::leader);
    group.ask(1, 7, mode);
    EXPECT_TRUE(group.replica(1).reads.empty());
    while (group.replica(1).reads.empty() && !group.replica(1).unsynced.empty()) group.sync(1);
    ASSERT_EQ(group.replica(1).reads.size(), 1U);
    EXPECT_EQ(group.replica(1).reads.back().index, Index(1));
  }
}

}  // namespace
}  // namespace leasehold::raft::test
