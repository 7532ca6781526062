// Changes of the members and transfers, as a Driver offers them.

#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::replica {
namespace {

using testing::Answer;
using testing::Cluster;
using testing::kLong;
using testing::milliseconds;
using testing::Rig;

raft::WantedMember wanted(std::uint64_t id, raft::Suffrage suffrage = raft::Suffrage::voter) {
  return {raft::NodeId(id), raft::Uuid{id, id}, "127.0.0.1:" + std::to_string(7000 + id), suffrage};
}
raft::WantedMember learner(std::uint64_t id) {
  return wanted(id, raft::Suffrage::learner);
}

ChangeMembers change(Cluster& cluster, raft::WantedMembers members, Answer<ChangeResult>& answer,
                     lease::Duration timeout = kLong) {
  return {std::move(members), cluster.in(timeout), answer.completion()};
}
TransferLeadership transfer_leadership(Cluster& cluster, std::uint64_t to,
                                       Answer<TransferResult>& answer,
                                       lease::Duration timeout = kLong) {
  return {raft::NodeId(to), cluster.in(timeout), answer.completion()};
}

TEST(GroupCalls, ANodeIsAddedThenPromotedAndEachIsAnsweredWhenItIsComplete) {
  Cluster cluster(1, {}, 1);
  Rig& leader = cluster.await_leader();
  Answer<ChangeResult> added;
  leader.handle(cluster.now(), change(cluster, {wanted(1), learner(2)}, added));
  EXPECT_EQ(added.calls, 0) << "not durable yet";
  cluster.settle();
  ASSERT_EQ(added.calls, 1);
  EXPECT_EQ(added.value.status, GroupCallStatus::done);
  cluster.advance(milliseconds(300));
  Answer<ChangeResult> promoted;
  leader.handle(cluster.now(), change(cluster, {wanted(1), wanted(2)}, promoted));
  EXPECT_TRUE(leader.driver().core().membership().joint());
  cluster.settle();
  ASSERT_EQ(promoted.calls, 1);
  EXPECT_EQ(promoted.value.status, GroupCallStatus::done);
  EXPECT_FALSE(leader.driver().core().membership().joint());
  EXPECT_EQ(leader.driver().core().membership().voters.size(), 2U);
  // Asked again, it is so.
  Answer<ChangeResult> again;
  leader.handle(cluster.now(), change(cluster, {wanted(1), wanted(2)}, again));
  ASSERT_EQ(again.calls, 1);
  EXPECT_EQ(again.value.status, GroupCallStatus::done);
  EXPECT_EQ(leader.driver().pending(), 0U);
}

// Its command would be behind what it still gets of the log, so it could tell nobody what came of
// it.
TEST(GroupCalls, WhatANodeForwardsWhileItIsRemovedWasNotExecuted) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.advance(milliseconds(200));
  Rig& leaver = cluster.node(leader.id().value() % 3 + 1);
  const std::uint64_t stayer = leaver.id().value() % 3 + 1;
  Answer<ProposeResult> answer;
  leaver.handle(cluster.now(), Propose{Bytes("late"), cluster.in(kLong), answer.completion()});
  const std::vector<Rig::Sent> forwarded = leaver.take_sent();
  ASSERT_EQ(forwarded.size(), 1U);
  Answer<ChangeResult> removed;
  leader.handle(cluster.now(),
                change(cluster, {wanted(leader.id().value()), wanted(stayer)}, removed));
  ASSERT_TRUE(leader.driver().core().membership().joint());
  leader.handle(cluster.now(), PeerMessageReceived{leaver.peer(), forwarded[0].message});
  EXPECT_EQ(leader.driver().counters().forwards_refused, 1U);
  cluster.settle();
  ASSERT_EQ(answer.calls, 1) << "at once, and not when the node ends";
  EXPECT_EQ(answer.value.status, ProposeStatus::dropped);
  EXPECT_EQ(removed.calls, 1);
  cluster.advance(milliseconds(500));
  EXPECT_TRUE(leader.machine().commands().empty());
  // Who stays is not refused.
  Answer<ProposeResult> other;
  cluster.node(stayer).handle(cluster.now(),
                              Propose{Bytes("on"), cluster.in(kLong), other.completion()});
  cluster.advance(milliseconds(100));
  ASSERT_EQ(other.calls, 1);
  EXPECT_EQ(other.value.status, ProposeStatus::committed);
}

// The leader has seen the commands of the directory before it, under the same id, incarnation and
// term, and the log holds them.
TEST(GroupCalls, ADirectoryThatTakesThePlaceOfALostOneHasItsOwnCommandsExecuted) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.advance(milliseconds(200));
  const std::uint64_t lost = leader.id().value() % 3 + 1;
  const std::uint64_t other = lost % 3 + 1;
  const raft::WantedMembers rest = {wanted(leader.id().value()), wanted(other)};
  Answer<ProposeResult> before;
  cluster.node(lost).handle(cluster.now(),
                            Propose{Bytes("old"), cluster.in(kLong), before.completion()});
  cluster.advance(milliseconds(100));
  ASSERT_EQ(before.value.status, ProposeStatus::committed);
  Answer<ChangeResult> removed;
  leader.handle(cluster.now(), change(cluster, rest, removed));
  cluster.advance(milliseconds(100));
  ASSERT_EQ(removed.value.status, GroupCallStatus::done);

  const raft::Uuid uuid{lost, 100 + lost};
  Rig& fresh = cluster.replace(lost, uuid);
  Answer<ChangeResult> added;
  raft::WantedMembers all = rest;
  all.push_back(learner(lost));
  all.back().uuid = uuid;
  leader.handle(cluster.now(), change(cluster, all, added));
  cluster.advance(milliseconds(300));
  ASSERT_EQ(added.value.status, GroupCallStatus::done);
  Answer<ProposeResult> after;
  fresh.handle(cluster.now(), Propose{Bytes("new"), cluster.in(kLong), after.completion()});
  cluster.advance(milliseconds(100));
  ASSERT_EQ(after.calls, 1);
  EXPECT_EQ(after.value.status, ProposeStatus::committed);
  EXPECT_EQ(fresh.machine().commands(), (std::vector<std::string>{"old", "new"}));
  EXPECT_EQ(leader.machine().commands(), (std::vector<std::string>{"old", "new"}));
}

TEST(GroupCalls, AChangeWhoseTimeIsOverIsNotBegun) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.advance(milliseconds(200));
  Answer<ChangeResult> late;
  leader.handle(cluster.now(), change(cluster, {wanted(1), wanted(2)}, late, lease::Duration(0)));
  ASSERT_EQ(late.calls, 1);
  EXPECT_EQ(late.value.status, GroupCallStatus::refused);
  EXPECT_EQ(late.value.refused->obstacle, raft::ChangeObstacle::too_late);
  EXPECT_EQ(leader.driver().core().membership().voters.size(), 3U);
}

TEST(GroupCalls, ARefusalSaysWhyAndWhomToAsk) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.advance(milliseconds(200));
  Rig& follower = cluster.node(leader.id().value() % 3 + 1);
  Answer<ChangeResult> elsewhere;
  follower.handle(cluster.now(), change(cluster, {wanted(1)}, elsewhere));
  ASSERT_EQ(elsewhere.calls, 1);
  EXPECT_EQ(elsewhere.value.status, GroupCallStatus::refused);
  EXPECT_EQ(elsewhere.value.refused->obstacle, raft::ChangeObstacle::not_leader);
  EXPECT_EQ(elsewhere.value.leader, leader.id());
  Answer<ChangeResult> unknown;
  leader.handle(cluster.now(),
                change(cluster, {wanted(1), wanted(2), wanted(3), wanted(4)}, unknown));
  ASSERT_EQ(unknown.calls, 1);
  EXPECT_EQ(unknown.value.refused->obstacle, raft::ChangeObstacle::not_a_learner);
  Answer<TransferResult> nobody;
  leader.handle(cluster.now(), transfer_leadership(cluster, 9, nobody));
  ASSERT_EQ(nobody.calls, 1);
  EXPECT_EQ(nobody.value.refused->obstacle, raft::TransferObstacle::not_a_voter);
}

TEST(GroupCalls, AChangeThatIsNotSeenToEndIsUnknown) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.cut(leader.id().value());
  Answer<ChangeResult> late;
  leader.handle(cluster.now(),
                change(cluster, {wanted(leader.id().value())}, late, milliseconds(50)));
  cluster.advance(milliseconds(60));
  ASSERT_EQ(late.calls, 1);
  EXPECT_EQ(late.value.status, GroupCallStatus::unknown);
  Answer<ChangeResult> second;
  leader.handle(cluster.now(), change(cluster, {wanted(leader.id().value())}, second));
  ASSERT_EQ(second.calls, 1);
  EXPECT_EQ(second.value.refused->obstacle, raft::ChangeObstacle::change_under_way);
}

TEST(GroupCalls, ALeaderThatLosesItsRoleKnowsNothingOfItsChange) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.cut(leader.id().value());
  Answer<ChangeResult> lost;
  leader.handle(cluster.now(), change(cluster, {wanted(leader.id().value())}, lost));
  EXPECT_TRUE(cluster.advance_until([&] { return lost.calls > 0; }));
  EXPECT_EQ(lost.value.status, GroupCallStatus::unknown);
  EXPECT_FALSE(leader.leads());
}

TEST(GroupCalls, ANewSettingIsAnsweredWhenItIsCommitted) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Answer<SettingsResult> changed;
  raft::SettingsEdit edit;
  edit.lease = milliseconds(1500);
  leader.handle(cluster.now(), ChangeSettings{edit, cluster.in(kLong), changed.completion()});
  EXPECT_TRUE(leader.driver().core().membership().settings.has_value()) << "in effect";
  EXPECT_EQ(leader.view().level(), raft::kOldestLevel) << "but it may still be lost";
  EXPECT_EQ(changed.calls, 0) << "not committed yet";
  cluster.settle();
  ASSERT_EQ(changed.calls, 1);
  EXPECT_EQ(changed.value.status, GroupCallStatus::done);
  const auto settings = leader.driver().core().membership().settings;
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->timing.lease, milliseconds(1500));
  // What was not named is what the leader was started with.
  EXPECT_EQ(settings->timing.heartbeat, leader.driver().core().options().timing.heartbeat);
  Answer<SettingsResult> again;
  leader.handle(cluster.now(), ChangeSettings{edit, cluster.in(kLong), again.completion()});
  ASSERT_EQ(again.calls, 1);
  EXPECT_EQ(again.value.status, GroupCallStatus::done) << "it is so already";
  EXPECT_EQ(leader.driver().pending(), 0U);
}

TEST(GroupCalls, SettingsAreRefusedLateElsewhereAndWhenTheyAreUnsafe) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  raft::SettingsEdit edit;
  edit.margin = std::chrono::seconds(5);
  Answer<SettingsResult> unsafe;
  leader.handle(cluster.now(), ChangeSettings{edit, cluster.in(kLong), unsafe.completion()});
  ASSERT_EQ(unsafe.calls, 1);
  EXPECT_EQ(unsafe.value.refused->obstacle, raft::SettingsObstacle::invalid);
  Answer<SettingsResult> late;
  leader.handle(cluster.now(),
                ChangeSettings{edit, cluster.in(milliseconds(0)), late.completion()});
  ASSERT_EQ(late.calls, 1);
  EXPECT_EQ(late.value.refused->obstacle, raft::SettingsObstacle::too_late);
  Rig& follower = cluster.node(leader.id().value() % 3 + 1);
  Answer<SettingsResult> elsewhere;
  follower.handle(cluster.now(), ChangeSettings{edit, cluster.in(kLong), elsewhere.completion()});
  ASSERT_EQ(elsewhere.calls, 1);
  EXPECT_EQ(elsewhere.value.refused->obstacle, raft::SettingsObstacle::not_leader);
  EXPECT_EQ(elsewhere.value.leader, leader.id());
}

TEST(GroupCalls, ALeaderRemovesItselfAndIsAnswered) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.advance(milliseconds(200));
  const std::uint64_t one = leader.id().value() % 3 + 1;
  const std::uint64_t two = one % 3 + 1;
  Answer<ChangeResult> removed;
  leader.handle(cluster.now(), change(cluster, {wanted(one), wanted(two)}, removed));
  cluster.settle();
  ASSERT_EQ(removed.calls, 1);
  EXPECT_EQ(removed.value.status, GroupCallStatus::done);
  EXPECT_FALSE(leader.leads());
  EXPECT_TRUE(cluster.node(one).leads() || cluster.node(two).leads()) << "transferred";
}

TEST(GroupCalls, AHandOverIsAnsweredWithTheNextLeaderAndProposalsWaitForIt) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.advance(milliseconds(200));
  const std::uint64_t target = leader.id().value() % 3 + 1;
  Answer<TransferResult> handed;
  leader.handle(cluster.now(), transfer_leadership(cluster, target, handed));
  Answer<ProposeResult> command;
  leader.handle(cluster.now(),
                Propose{Bytes(std::string("x")), cluster.in(kLong), command.completion()});
  EXPECT_EQ(handed.calls, 0);
  cluster.settle();
  EXPECT_TRUE(cluster.node(target).leads());
  EXPECT_TRUE(cluster.advance_until([&] { return handed.calls > 0 && command.calls > 0; }));
  EXPECT_EQ(handed.value.status, GroupCallStatus::done);
  EXPECT_EQ(handed.value.leader, raft::NodeId(target));
  EXPECT_EQ(command.value.status, ProposeStatus::committed);
}

TEST(GroupCalls, ACommandThatTheOldLeaderRefusesLateGoesToTheNextOneAtOnce) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.advance(milliseconds(200));
  const std::uint64_t target = leader.id().value() % 3 + 1;
  Rig& third = cluster.node(target % 3 + 1);
  Answer<ProposeResult> command;
  third.handle(cluster.now(),
               Propose{Bytes(std::string("x")), cluster.in(kLong), command.completion()});
  const std::vector<Rig::Sent> forwarded = third.take_sent();
  ASSERT_EQ(forwarded.size(), 1U);
  Answer<TransferResult> handed;
  leader.handle(cluster.now(), transfer_leadership(cluster, target, handed));
  // An entry of the new term that is applied would prove that the command was lost.
  cluster.lose = [&third](raft::NodeId, const Rig::Sent& sent) {
    const auto* message = std::get_if<raft::Message>(&sent.message.payload);
    const auto* append = message ? std::get_if<raft::AppendRequest>(message) : nullptr;
    return append != nullptr && sent.to == third.id() && !append->entries.empty();
  };
  cluster.settle();
  ASSERT_EQ(third.driver().core().leader(), raft::NodeId(target));
  EXPECT_EQ(third.driver().counters().proposals_forwarded, 1U);
  leader.handle(cluster.now(), PeerMessageReceived{third.peer(), forwarded[0].message});
  cluster.settle();
  EXPECT_EQ(third.driver().counters().proposals_forwarded, 2U);
  cluster.lose = nullptr;
  EXPECT_TRUE(cluster.advance_until([&] { return command.calls > 0; }));
  EXPECT_EQ(command.value.status, ProposeStatus::committed);
  EXPECT_EQ(cluster.node(target).machine().commands(), (std::vector<std::string>{"x"}));
}

TEST(GroupCalls, AHandOverWhoseDeadlineHasPassedIsNotBegun) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.advance(milliseconds(200));
  Answer<TransferResult> late;
  leader.handle(cluster.now(), transfer_leadership(cluster, 0, late, milliseconds(0)));
  ASSERT_EQ(late.calls, 1);
  EXPECT_EQ(late.value.status, GroupCallStatus::refused);
  EXPECT_EQ(late.value.refused->obstacle, raft::TransferObstacle::too_late);
  cluster.settle();
  EXPECT_TRUE(leader.leads());
}

TEST(GroupCalls, AHandOverToANodeThatIsAwayFails) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.advance(milliseconds(200));
  const std::uint64_t target = leader.id().value() % 3 + 1;
  cluster.cut(target);
  Answer<ProposeResult> command;
  leader.handle(cluster.now(),
                Propose{Bytes(std::string("x")), cluster.in(kLong), command.completion()});
  cluster.settle();
  Answer<TransferResult> handed;
  leader.handle(cluster.now(), transfer_leadership(cluster, target, handed));
  EXPECT_TRUE(cluster.advance_until([&] { return handed.calls > 0; }));
  EXPECT_EQ(handed.value.status, GroupCallStatus::failed);
  EXPECT_EQ(handed.value.leader, leader.id());
  EXPECT_TRUE(leader.leads());
}

TEST(GroupCalls, ALeaderThatIsElectedAgainHasNotHandedOver) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.advance(milliseconds(200));
  const std::uint64_t one = leader.id().value() % 3 + 1;
  const std::uint64_t two = one % 3 + 1;
  cluster.cut(one);
  cluster.cut(two);
  // Nobody else has it, so nobody else can be elected.
  Answer<ProposeResult> command;
  leader.handle(cluster.now(),
                Propose{Bytes(std::string("x")), cluster.in(kLong), command.completion()});
  Answer<TransferResult> handed;
  leader.handle(cluster.now(), transfer_leadership(cluster, one, handed));
  raft::AppendReply newer;
  newer.request_term = leader.driver().core().term();
  newer.term = newer.request_term.next();
  leader.handle(cluster.now(), PeerMessageReceived{cluster.node(one).peer(),
                                                   {raft::GroupId(1), raft::Message(newer)}});
  EXPECT_FALSE(leader.leads());
  EXPECT_EQ(handed.calls, 0) << "nobody is known to lead";
  cluster.heal();
  EXPECT_TRUE(cluster.advance_until([&] { return handed.calls > 0; }));
  EXPECT_TRUE(leader.leads());
  EXPECT_EQ(handed.value.status, GroupCallStatus::failed);
}

TEST(GroupCalls, NobodyWaitsForANodeThatHasStopped) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.cut(leader.id().value());
  Answer<ChangeResult> changed;
  leader.handle(cluster.now(), change(cluster, {wanted(leader.id().value())}, changed));
  leader.handle(cluster.now(), Stop{});
  ASSERT_EQ(changed.calls, 1);
  EXPECT_EQ(changed.value.status, GroupCallStatus::unknown);
  Answer<TransferResult> handed;
  leader.handle(cluster.now(), transfer_leadership(cluster, 0, handed));
  ASSERT_EQ(handed.calls, 1);
  EXPECT_EQ(handed.value.status, GroupCallStatus::refused);
}

}  // namespace
}  // namespace leasehold::replica
