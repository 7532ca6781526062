// Membership changes: a test for each rule of raft/core_membership.cc.

#include "change_support.h"

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

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
  EXPECT_TRUE(group.core(leader).progress().contains(NodeId(4)));
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

// The last entry that it took may be that of an earlier removal, after which its node has deleted
// it. With many groups the process of that node answers the leader all the same.
TEST(Change, ALearnerThatHasNotTakenItsMembershipIsNotPromoted) {
  Group group(3);
  const int leader = group.elect();
  group.add(4);
  group.filter = [](const Envelope& e) { return e.to != NodeId(4) || !is_append(e, true); };
  ASSERT_EQ(obstacle(group.change(leader, with(voters({1, 2, 3}), learner(4)))), std::nullopt);
  group.run(ms(300));
  EXPECT_TRUE(group.core(leader).last_heard(NodeId(4)).has_value());
  EXPECT_EQ(obstacle(group.change(leader, voters({1, 2, 3, 4}))), ChangeObstacle::learner_behind);
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(300));
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

}  // namespace
}  // namespace leasehold::raft::test
