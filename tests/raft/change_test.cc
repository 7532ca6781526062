// Membership changes: a test for each rule of raft/core_membership.cc.

#include "group.h"

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

using Answer = std::variant<LogId, ChangeRefused>;

std::optional<ChangeObstacle> obstacle(const Answer& answer) {
  const auto* refused = std::get_if<ChangeRefused>(&answer);
  return refused != nullptr ? std::optional(refused->obstacle) : std::nullopt;
}

WantedMembers voters(std::initializer_list<std::uint64_t> ids) {
  WantedMembers wanted;
  for (const std::uint64_t id : ids) wanted.push_back(voter(id));
  return wanted;
}

WantedMembers with(WantedMembers wanted, const WantedMember& one_more) {
  wanted.push_back(one_more);
  return wanted;
}

std::vector<NodeId> ids(std::initializer_list<std::uint64_t> numbers) {
  std::vector<NodeId> ids;
  for (const std::uint64_t n : numbers) ids.emplace_back(n);
  return ids;
}

bool settled(const Core& core) {
  return !core.membership().joint() && core.log().membership_index() <= core.commit_index();
}

/// Changes the members to `wanted`, and waits until that is done.
void complete(Group& group, const WantedMembers& wanted) {
  const int leader = group.elect();
  ASSERT_EQ(obstacle(group.change(leader, wanted)), std::nullopt);
  group.run(ms(500));
}

/// Nodes 1 .. size vote, nodes up to `all` have learned everything.
void grow(Group& group, std::uint64_t size, std::uint64_t all) {
  WantedMembers wanted;
  for (std::uint64_t id = 1; id <= size; ++id) wanted.push_back(voter(id));
  for (std::uint64_t id = size + 1; id <= all; ++id) {
    group.add(static_cast<int>(id));
    wanted.push_back(learner(id));
  }
  complete(group, wanted);
}

bool is_append(const Envelope& e, bool with_entries) {
  const auto* append = std::get_if<AppendRequest>(&e.message);
  return append != nullptr && append->entries.empty() != with_entries;
}

// Only `id` campaigns.
void only(Group& group, int id) {
  group.filter = [id](const Envelope& e) {
    return !std::holds_alternative<PreVoteRequest>(e.message) ||
           e.from == NodeId(static_cast<std::uint64_t>(id));
  };
}

TEST(Change, ALearnerIsAddedByOneEntryAndReceivesTheLog) {
  Group group(3);
  const int leader = group.elect();
  group.propose(leader, "before");
  group.add(4);
  ASSERT_EQ(obstacle(group.change(leader, with(voters({1, 2, 3}), learner(4)))), std::nullopt);
  // Effective on append: nothing has been delivered yet.
  EXPECT_FALSE(group.core(leader).membership().joint());
  EXPECT_NE(group.core(leader).membership().find(NodeId(4)), nullptr);
  EXPECT_EQ(group.core(leader).progress().count(NodeId(4)), 1U);
  group.run(ms(300));
  EXPECT_TRUE(settled(group.core(leader)));
  EXPECT_EQ(group.replica(4).machine, group.replica(leader).machine);
  EXPECT_EQ(group.core(4).membership(), group.core(leader).membership());
  // It does not vote, so it does not campaign either, and the three need two.
  group.isolate(4);
  group.run(ms(5000));
  EXPECT_EQ(group.core(4).role(), Role::follower);
}

TEST(Change, APromotionTakesTwoEntriesAndTheSecondFollowsByItself) {
  Group group(3);
  const int leader = group.elect();
  grow(group, 3, 5);
  const Index before = group.core(leader).log().last_index();
  ASSERT_EQ(obstacle(group.change(leader, voters({1, 2, 3, 4, 5}))), std::nullopt);
  EXPECT_TRUE(group.core(leader).membership().joint());
  EXPECT_EQ(group.core(leader).membership().outgoing_voters, ids({1, 2, 3}));
  EXPECT_EQ(group.core(leader).membership().voters, ids({1, 2, 3, 4, 5}));
  group.run(ms(300));
  for (int id = 1; id <= 5; ++id) {
    EXPECT_TRUE(settled(group.core(id)));
    EXPECT_EQ(group.core(id).membership().voters, ids({1, 2, 3, 4, 5}));
  }
  EXPECT_EQ(group.core(leader).log().last_index(), before + 2);
  const auto told = events_of<MembershipChanged>(group.replica(leader));
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[1], (MembershipChanged{before + 1, 5, 3, 0}));
  EXPECT_EQ(told[2], (MembershipChanged{before + 2, 5, 0, 0}));
  EXPECT_EQ(events_of<MembershipCommitted>(group.replica(leader)).back().index, before + 2);
}

TEST(Change, AnyNumberOfMembersChangesAtOnce) {
  Group group(3);
  grow(group, 3, 6);
  complete(group, with(voters({4, 5, 6}), learner(1)));
  const int leader = group.elect();
  EXPECT_GE(leader, 4);
  EXPECT_EQ(group.core(leader).membership().voters, ids({4, 5, 6}));
  EXPECT_EQ(group.core(leader).membership().members.size(), 4U);
  ASSERT_TRUE(group.propose(leader, "after").has_value());
  group.run(ms(300));
  EXPECT_EQ(group.replica(1).machine, group.replica(leader).machine);
  EXPECT_LT(group.replica(2).machine.size(), group.replica(leader).machine.size());
}

TEST(Change, IsRefusedWithTheReasonAndAppendsNothing) {
  Group group(3);
  const int leader = group.elect();
  const Index last = group.core(leader).log().last_index();
  const int follower = leader % 3 + 1;
  group.run(ms(200));
  const Answer elsewhere = group.change(follower, voters({1, 2}));
  EXPECT_EQ(std::get<ChangeRefused>(elsewhere).obstacle, ChangeObstacle::not_leader);
  EXPECT_EQ(std::get<ChangeRefused>(elsewhere).member.value(), static_cast<std::uint64_t>(leader));
  EXPECT_EQ(obstacle(group.change(leader, voters({1, 2, 3}))), ChangeObstacle::already_so);
  EXPECT_EQ(obstacle(group.change(leader, {})), ChangeObstacle::no_voter);
  EXPECT_EQ(obstacle(group.change(leader, voters({1, 2, 3, 4}))), ChangeObstacle::not_a_learner);
  EXPECT_EQ(obstacle(group.change(leader, {voter(1), voter(2), voter(3, 9)})),
            ChangeObstacle::other_uuid);
  EXPECT_EQ(group.core(leader).log().last_index(), last);
}

// One at a time: quorums of a membership and of the one after the next need not share a voter.
TEST(Change, IsRefusedWhileTheNewestIsNotCommitted) {
  Group group(3);
  const int leader = group.elect();
  group.add(4);
  group.filter = [](const Envelope& e) { return !is_append(e, true); };
  ASSERT_EQ(obstacle(group.change(leader, with(voters({1, 2, 3}), learner(4)))), std::nullopt);
  group.run(ms(200));
  EXPECT_EQ(obstacle(group.change(leader, voters({1, 2, 3}))), ChangeObstacle::change_under_way);
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(200));
  EXPECT_EQ(obstacle(group.change(leader, voters({1, 2, 3}))), std::nullopt);
}

TEST(Change, IsRefusedInTheJointStateAndThatIsLeftOnlyWhenItIsCommitted) {
  Group group(3);
  const int leader = group.elect();
  grow(group, 3, 4);
  group.filter = [](const Envelope& e) { return !is_append(e, true); };
  ASSERT_EQ(obstacle(group.change(leader, voters({1, 2, 3, 4}))), std::nullopt);
  group.run(ms(200));
  EXPECT_TRUE(group.core(leader).membership().joint());
  EXPECT_EQ(obstacle(group.change(leader, voters({1, 2, 3}))), ChangeObstacle::change_under_way);
}

// The bug of the single-server change, published in 2015: a leader that builds on a membership of
// its own before it has committed anything in its term.
TEST(Change, IsRefusedBeforeAnEntryOfTheOwnTermIsCommitted) {
  Group group(3);
  const int first = group.elect();
  group.run(ms(300));
  const int second = first % 3 + 1;
  group.crash(first);
  only(group, second);
  const auto filter = group.filter;
  group.filter = [filter](const Envelope& e) { return filter(e) && !is_append(e, true); };
  for (int i = 0; i < 300 && group.core(second).role() != Role::leader; ++i) group.run(ms(10));
  ASSERT_EQ(group.core(second).role(), Role::leader);
  EXPECT_EQ(obstacle(group.change(second, voters({1, 2}))), ChangeObstacle::leader_is_new);
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(200));
  EXPECT_EQ(obstacle(group.change(second, voters({1, 2}))), std::nullopt);
}

TEST(Change, ALearnerThatLacksTooMuchIsNotPromoted) {
  Group group(3);
  const int leader = group.elect();
  grow(group, 3, 4);
  group.isolate(4);
  for (int i = 0; i < 1000; ++i) group.propose(leader, "x");
  group.settle();
  EXPECT_EQ(obstacle(group.change(leader, voters({1, 2, 3, 4}))), std::nullopt) << "at the bound";
  Group other(3);
  const int again = other.elect();
  grow(other, 3, 4);
  other.isolate(4);
  for (int i = 0; i < 1001; ++i) other.propose(again, "x");
  other.settle();
  const Answer answer = other.change(again, voters({1, 2, 3, 4}));
  EXPECT_EQ(obstacle(answer), ChangeObstacle::learner_behind);
  EXPECT_EQ(std::get<ChangeRefused>(answer).entries_behind, 1001U);
  EXPECT_NE(text_of(std::get<ChangeRefused>(answer)).find("node 4 lacks 1001 entries"),
            std::string::npos);
}

// However few entries it lacks: what was cut off comes as a snapshot, and the group would wait for
// it.
TEST(Change, ALearnerThatWaitsForASnapshotIsNotPromoted) {
  Group group(3);
  const int leader = group.elect();
  group.propose(leader, "x");
  group.run(ms(200));
  group.cut_log(leader, group.core(leader).commit_index());
  group.sends_snapshots = false;
  grow(group, 3, 4);
  group.run(ms(200));
  ASSERT_LT(group.core(leader).progress().at(NodeId(4)).match_index,
            group.core(leader).log().base().index);
  const Answer behind = group.change(leader, voters({1, 2, 3, 4}));
  EXPECT_EQ(obstacle(behind), ChangeObstacle::learner_behind);
  EXPECT_NE(text_of(std::get<ChangeRefused>(behind)).find("waits for a snapshot"),
            std::string::npos);
  group.send_snapshot(leader, group.replica(leader).intents.at(0));
  group.run(ms(200));
  EXPECT_EQ(obstacle(group.change(leader, voters({1, 2, 3, 4}))), std::nullopt);
}

TEST(Change, ALearnerThatDoesNotAnswerIsNotPromoted) {
  Group group(3);
  const int leader = group.elect();
  grow(group, 3, 4);
  group.isolate(4);
  group.run(ms(990));
  EXPECT_EQ(group.core(leader).progress().at(NodeId(4)).match_index,
            group.core(leader).log().last_index());
  group.run(ms(200));
  EXPECT_EQ(obstacle(group.change(leader, voters({1, 2, 3, 4}))), ChangeObstacle::learner_behind);
}

// H25: both halves, for the log, for the lease and for elections.
TEST(Change, TheJointStateNeedsAQuorumOfBothHalves) {
  Group group(3);
  grow(group, 3, 6);
  const int leader = group.elect();
  group.run(ms(200));
  WantedMembers wanted = voters({4, 5, 6});
  // Of the new half only node 4 is reached.
  group.cut(leader, 5);
  group.cut(leader, 6);
  ASSERT_EQ(obstacle(group.change(leader, wanted)), std::nullopt);
  const Index joint = group.core(leader).log().last_index();
  const HolderInstant lease = group.core(leader).lease_end();
  group.run(ms(500));
  EXPECT_LT(group.core(leader).commit_index(), joint);
  // The round that was under way may have counted; nothing after it.
  EXPECT_LE(group.core(leader).lease_end() - lease, ms(100));
  group.heal();
  group.run(ms(500));
  EXPECT_TRUE(settled(group.core(group.elect())));
}

TEST(Change, ANewLeaderLeavesTheJointState) {
  Group group(3);
  grow(group, 3, 4);
  const int leader = group.elect();
  // The joint entry is committed, and its leader is gone before the next one leaves it.
  bool joint = false;
  group.filter = [&](const Envelope& e) {
    const auto* append = std::get_if<AppendRequest>(&e.message);
    if (append == nullptr || append->entries.empty()) return true;
    const Entry& last = append->entries.back();
    if (last.kind != EntryKind::membership) return true;
    joint = decode_membership(last.payload.view()).value().joint();
    return joint;
  };
  ASSERT_EQ(obstacle(group.change(leader, voters({1, 2, 3, 4}))), std::nullopt);
  group.settle();
  ASSERT_FALSE(group.core(leader).membership().joint());
  group.crash(leader);
  group.filter = [](const Envelope&) { return true; };
  const int other = leader % 3 + 1;
  ASSERT_TRUE(group.core(other).membership().joint());
  group.run(ms(3000));
  const int next = group.elect();
  EXPECT_NE(next, leader);
  EXPECT_TRUE(settled(group.core(next)));
  EXPECT_EQ(group.core(next).membership().voters, ids({1, 2, 3, 4}));
  group.restart(leader);
  group.run(ms(1000));
  EXPECT_TRUE(settled(group.core(leader)));
}

TEST(Change, ATruncatedMembershipFallsBackToTheOneBefore) {
  Group group(3);
  grow(group, 3, 4);
  const int leader = group.elect();
  const Membership before = group.core(leader).membership();
  group.isolate(leader);
  ASSERT_EQ(obstacle(group.change(leader, voters({1, 2, 3, 4}))), std::nullopt);
  EXPECT_TRUE(group.core(leader).membership().joint());
  group.run(ms(3000));
  const int next = leader % 3 + 1;
  group.heal();
  group.run(ms(2000));
  EXPECT_EQ(group.core(leader).membership(), before);
  EXPECT_EQ(group.core(next).membership(), before);
  EXPECT_EQ(events_of<MembershipChanged>(group.replica(leader)).back().outgoing_voters, 0U);
}

TEST(Change, MembershipsComeBackAfterARestart) {
  Group group(3);
  grow(group, 3, 5);
  const int leader = group.elect();
  group.filter = [](const Envelope& e) { return !std::holds_alternative<AppendReply>(e.message); };
  ASSERT_EQ(obstacle(group.change(leader, voters({1, 2, 3, 4, 5}))), std::nullopt);
  group.settle();
  for (int id = 1; id <= 5; ++id) {
    ASSERT_TRUE(group.core(id).membership().joint());
    group.restart(id);
    EXPECT_TRUE(group.core(id).membership().joint());
  }
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(5000));
  EXPECT_TRUE(settled(group.core(group.elect())));
}

TEST(Change, ASnapshotCarriesTheMembershipAtItsIndex) {
  Group group(3);
  const int leader = group.elect();
  group.propose(leader, "one");
  group.settle();
  group.cut_log(leader, group.core(leader).commit_index());
  grow(group, 3, 4);
  EXPECT_EQ(group.replica(4).installed.size(), 1U);
  EXPECT_EQ(group.core(4).membership(), group.core(leader).membership());
  // Cut behind the change, so that only the base knows of it.
  for (const int id : {leader, 4}) group.cut_log(id, group.core(id).commit_index());
  EXPECT_EQ(group.core(4).log().memberships_above(group.core(4).log().base().index), 0U);
  group.restart(4);
  EXPECT_EQ(group.core(4).membership(), group.core(leader).membership());
  group.add(5);
  complete(group, with(with(voters({1, 2, 3}), learner(4)), learner(5)));
  EXPECT_EQ(group.core(5).membership(), group.core(leader).membership());
}

// ---- Who is removed ----

TEST(Change, ARemovedFollowerIsToldAndStaysQuiet) {
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
  EXPECT_EQ(group.core(leader).progress().count(NodeId(removed)), 0U);
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
  // Its lease stands on the two others alone.
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
  // It cannot know that nobody else has the entry, nor that the others have committed it.
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
  // Nor does it depose anybody.
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

// One that waits to be added: nobody has counted it in, so it has no voice.
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
  const Progress& anew = group.core(leader).progress().at(NodeId(4));
  EXPECT_FALSE(anew.acked_round.has_value());
  EXPECT_EQ(anew.match_index, Index(0));
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
