// Membership changes: what happens to a member that is removed, and whose votes and answers count.

#include "change_support.h"

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

// ---- Removed members ----

TEST(Change, ARemovedFollowerLearnsItAndStaysQuiet) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(200));
  const auto removed = static_cast<std::uint64_t>(leader % 3 + 1);
  WantedMembers wanted;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (id != removed) wanted.push_back(voter(id));
  }
  complete(group, wanted);
  const Core& core = group.core(static_cast<int>(removed));
  EXPECT_EQ(core.membership().find(NodeId(removed)), nullptr);
  EXPECT_TRUE(settled(core));
  EXPECT_FALSE(group.core(leader).progress().contains(NodeId(removed)));
  group.run(ms(10000));
  EXPECT_EQ(core.role(), Role::follower);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
}

// H27: it stops counting itself when the entry is appended, and leads until it is committed.
TEST(Change, ARemovedLeaderStopsCountingItselfAndLeavesWhenThatIsCommitted) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(200));
  WantedMembers wanted;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (id != static_cast<std::uint64_t>(leader)) wanted.push_back(voter(id));
  }
  const int one = leader % 3 + 1;
  const int two = one % 3 + 1;
  bool last_entry_lost = false;
  group.filter = [&](const Envelope& e) {
    const auto* append = std::get_if<AppendRequest>(&e.message);
    if (append == nullptr || append->entries.empty()) return true;
    const Entry& last = append->entries.back();
    if (last.kind != EntryKind::membership) return true;
    if (decode_membership(last.payload.view()).value().joint()) return true;
    last_entry_lost = true;
    // One of the two that are left gets it: with the leader itself that would be two of three.
    return e.to.value() == static_cast<std::uint64_t>(one);
  };
  ASSERT_EQ(obstacle(group.change(leader, wanted)), std::nullopt);
  group.run(ms(300));
  ASSERT_TRUE(last_entry_lost);
  const Index removal = group.core(leader).log().membership_index();
  EXPECT_FALSE(group.core(leader).membership().joint());
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_LT(group.core(leader).commit_index(), removal);
  EXPECT_FALSE(group.core(leader).takes_proposals());
  EXPECT_FALSE(group.propose(leader, "not by me").has_value());
  // Its lease rests on the two others alone.
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder);
  group.isolate(two);
  group.run(ms(900));
  EXPECT_LE(group.core(leader).lease_end(), group.now().holder);
  group.heal();
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(3000));
  EXPECT_EQ(group.core(leader).role(), Role::follower);
  const auto roles = events_of<RoleChanged>(group.replica(leader));
  EXPECT_EQ(roles.back().from, Role::leader);
  const int next = group.elect();
  EXPECT_NE(next, leader);
  EXPECT_TRUE(settled(group.core(next)));
  group.run(ms(5000));
  EXPECT_EQ(group.core(leader).role(), Role::follower);
}

TEST(Change, ANodeMayCampaignWhileItsRemovalIsNotKnownToBeCommitted) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(200));
  const int removed = leader % 3 + 1;
  WantedMembers wanted;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (id != static_cast<std::uint64_t>(removed)) wanted.push_back(voter(id));
  }
  // Only the removed one ever gets the entry that removes it.
  group.filter = [&](const Envelope& e) {
    const auto* append = std::get_if<AppendRequest>(&e.message);
    if (append == nullptr || append->entries.empty()) return true;
    const Entry& last = append->entries.back();
    if (last.kind != EntryKind::membership) return true;
    return decode_membership(last.payload.view()).value().joint() ||
           e.to.value() == static_cast<std::uint64_t>(removed);
  };
  ASSERT_EQ(obstacle(group.change(leader, wanted)), std::nullopt);
  group.run(ms(200));
  ASSERT_FALSE(
      group.core(removed).membership().is_voter(NodeId(static_cast<std::uint64_t>(removed))));
  // It cannot know whether another node has the entry, or whether the others have committed it.
  group.isolate(removed);
  group.run(ms(4000));
  bool tried = false;
  for (const RoleChanged& role : events_of<RoleChanged>(group.replica(removed))) {
    tried = tried || role.to == Role::pre_candidate;
  }
  EXPECT_TRUE(tried);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  group.heal();
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(1000));
  EXPECT_TRUE(settled(group.core(leader)));
}

// ---- Who counts ----

TEST(Change, AVoterUnderAnotherUuidDoesNotCount) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(200));
  const int one = leader % 3 + 1;
  group.isolate(leader);
  group.in_flight().clear();
  group.propose(leader, "x");
  const Core& core = group.core(leader);
  const HolderInstant lease = core.lease_end();
  AppendReply reply;
  reply.request_term = reply.term = core.term();
  reply.promised = true;
  reply.matched = true;
  group.run(ms(100));
  group.in_flight().clear();
  reply.round = lease::Round(4);
  reply.index = core.log().last_index();
  const auto id = static_cast<std::uint64_t>(one);
  group.step(Peer{NodeId(id), Uuid{77, 77}}, leader, reply);
  EXPECT_LT(core.commit_index(), core.log().last_index());
  EXPECT_EQ(core.lease_end(), lease);
  // Nor does it depose the leader.
  reply.term = core.term().next();
  group.step(Peer{NodeId(id), Uuid{77, 77}}, leader, reply);
  EXPECT_EQ(core.role(), Role::leader);
  reply.term = core.term();
  group.step(one, leader, reply);
  EXPECT_EQ(core.commit_index(), core.log().last_index());
}

TEST(Change, AVoteUnderAnotherUuidDoesNotCount) {
  Group group(3);
  group.filter = [](const Envelope&) { return false; };
  while (group.core(1).role() != Role::pre_candidate) group.run(ms(10));
  const Term term = group.core(1).term();
  group.step(Peer{NodeId(2), Uuid{77, 77}}, 1, PreVoteReply{term.next(), term, true, kNobody});
  EXPECT_EQ(group.core(1).role(), Role::pre_candidate);
  group.step(2, 1, PreVoteReply{term.next(), term, true, kNobody});
  ASSERT_EQ(group.core(1).role(), Role::candidate);
  group.step(Peer{NodeId(2), Uuid{77, 77}}, 1, VoteReply{term.next(), term.next(), true, kNobody});
  EXPECT_EQ(group.core(1).role(), Role::candidate);
  group.step(2, 1, VoteReply{term.next(), term.next(), true, kNobody});
  EXPECT_EQ(group.core(1).role(), Role::leader);
}

// An answer to a chunk counts for the lease as one to an append does, and only from the directory
// that the membership names: a wiped one has forgotten its promise.
TEST(Change, NoAnswerUnderAnotherUuidCountsForTheLeaseOrDeposes) {
  for (const bool to_a_chunk : {false, true}) {
    Group group(3);
    const int leader = group.elect();
    group.run(ms(200));
    group.isolate(leader);
    group.run(ms(150));  // a round begins, and no node hears of it
    const Core& core = group.core(leader);
    const NodeId id(static_cast<std::uint64_t>(leader % 3 + 1));
    const lease::Round acked = core.progress().at(id).acked_round->round;
    const auto answer = [&core, acked, to_a_chunk](Term term) -> Message {
      AppendReply append;
      SnapshotReply chunk;
      append.request_term = chunk.request_term = core.term();
      append.term = chunk.term = term;
      append.promised = chunk.promised = true;
      append.round = chunk.round = acked.next();
      if (to_a_chunk) return chunk;
      return append;
    };
    const HolderInstant end = core.lease_end();
    const Term term = core.term();
    const Peer wiped{id, Uuid{77, 77}};
    group.step(wiped, leader, answer(term));
    EXPECT_EQ(core.lease_end(), end);
    EXPECT_EQ(core.progress().at(id).acked_round->round, acked);
    group.step(wiped, leader, answer(term.next()));
    EXPECT_EQ(core.role(), Role::leader);
    EXPECT_EQ(core.term(), term);
    group.step(peer(id), leader, answer(term));
    EXPECT_GT(core.lease_end(), end);
  }
}

TEST(Change, ANodeWhoseOwnDirectoryIsNotTheMembersDoesNotCampaign) {
  Group group(3);
  Replica& replica = group.replica(1);
  replica.options.uuid = Uuid{77, 77};
  group.restart(1);
  EXPECT_EQ(group.core(1).next_deadline(), PromiseInstant::never());
  group.isolate(1);
  group.run(ms(5000));
  EXPECT_EQ(group.core(1).role(), Role::follower);
}

// A promoted learner may not know yet that it votes.
TEST(Change, AVoteIsJudgedWhateverTheVotersOwnMembershipSays) {
  Group group(3);
  group.add(4);
  AppendRequest heard;
  heard.term = Term(2);
  heard.prev = LogId{Term(1), Index(5)};
  heard.round = lease::Round(1);
  heard.lease = group.core(4).options().timing.lease;
  group.step(1, 4, heard);
  group.jump(ms(5000));
  ASSERT_TRUE(group.core(4).membership().voters.empty());
  group.step(1, 4, VoteRequest{Term(3), LogId{Term(1), Index(5)}});
  EXPECT_TRUE(std::get<VoteReply>(group.in_flight().back().message).granted);
  EXPECT_EQ(group.core(4).hard_state().voted_for, NodeId(1));
}

// A node that waits to be added: no leader has it as a member, so its vote does not count.
TEST(Change, ANewcomerVotesOnlyWhenALeaderHasSpokenToIt) {
  Group group(3);
  group.add(4);
  group.step(1, 4, PreVoteRequest{Term(3), LogId{Term(1), Index(5)}});
  EXPECT_FALSE(std::get<PreVoteReply>(group.in_flight().back().message).granted);
  group.step(1, 4, VoteRequest{Term(3), LogId{Term(1), Index(5)}});
  EXPECT_FALSE(std::get<VoteReply>(group.in_flight().back().message).granted);
  EXPECT_EQ(events_of<VoteRefused>(group.replica(4)).back().reason, VoteRefusal::no_member);
  EXPECT_EQ(group.core(4).hard_state(), HardState{});
}

// H6, H26: what a member acknowledged before it was removed and added again says nothing.
TEST(Change, ANewMemberHasAcknowledgedNothing) {
  Group group(3);
  grow(group, 3, 4);
  const int leader = group.elect();
  EXPECT_TRUE(group.core(leader).progress().at(NodeId(4)).acked_round.has_value());
  complete(group, voters({1, 2, 3}));
  group.isolate(4);
  ASSERT_EQ(obstacle(group.change(leader, with(voters({1, 2, 3}), learner(4)))), std::nullopt);
  const Progress& again = group.core(leader).progress().at(NodeId(4));
  EXPECT_FALSE(again.acked_round.has_value());
  EXPECT_EQ(again.match_index, Index(0));
}

// H26: it promised as a learner, so what it acknowledged counts when it votes.
TEST(Change, APromotedLearnerIsBoundByWhatItPromisedAsOne) {
  Group group(3);
  grow(group, 3, 4);
  const int leader = group.elect();
  const NodeId candidate(static_cast<std::uint64_t>(leader % 3 + 1));
  group.isolate(4);
  group.step(static_cast<int>(candidate.value()), 4,
             VoteRequest{Term(50), LogId{Term(40), Index(90)}});
  EXPECT_FALSE(std::get<VoteReply>(group.in_flight().back().message).granted);
  EXPECT_EQ(events_of<VoteRefused>(group.replica(4)).back().reason, VoteRefusal::promised);
}

TEST(Change, AGroupShrinksToOneAndGrowsAgain) {
  Group group(3);
  const int leader = group.elect();
  const auto id = static_cast<std::uint64_t>(leader);
  group.run(ms(200));
  complete(group, {voter(id)});
  EXPECT_EQ(group.core(leader).membership().voters, ids({id}));
  ASSERT_TRUE(group.propose(leader, "alone").has_value());
  group.run(ms(300));
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder);
  const std::uint64_t other = id % 3 + 1;
  complete(group, {voter(id), learner(other)});
  complete(group, {voter(id), voter(other)});
  EXPECT_TRUE(settled(group.core(static_cast<int>(other))));
  // Of two both are needed (H8).
  group.isolate(static_cast<int>(other));
  group.run(ms(900));
  EXPECT_LE(group.core(leader).lease_end(), group.now().holder);
}

}  // namespace
}  // namespace leasehold::raft::test
