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
using testing::peer_of;
using testing::propose;
using testing::read;
using testing::Rig;

TEST(Driver, SingleNodeCommitsItsOwnCommands) {
  Cluster cluster(1);
  Rig& node = cluster.await_leader();
  Answer<ProposeResult> answer;
  node.handle(cluster.now(), propose(cluster, "a", answer));
  EXPECT_EQ(answer.calls, 0);
  EXPECT_EQ(node.applies_waiting(), 0U) << "not durable yet, so not committed";
  node.finish_writes(cluster.now(), node.writes_waiting());
  ASSERT_EQ(node.applies_waiting(), 1U);
  EXPECT_EQ(answer.calls, 0) << "answered from the state machine, not from the log";
  node.finish_apply(cluster.now());
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::committed);
  EXPECT_EQ(answer.value.result.view(), "done:a");
  EXPECT_EQ(answer.value.id.index, node.driver().applied());
  EXPECT_EQ(node.driver().pending(), 0U);
}

TEST(Driver, AWitnessSendsItsCallersToAFullMemberAtOnce) {
  raft::Membership membership = testing::members(3);
  membership.witnesses = {raft::NodeId(1)};
  DriverOptions options;
  options.core.group = raft::GroupId(1);
  options.core.id = raft::NodeId(1);
  options.core.uuid = raft::Uuid{1, 1};
  options.core.incarnation = raft::Incarnation(1);
  options.core.witness = true;
  const lease::Now now{lease::HolderInstant(kLong), lease::PromiseInstant(kLong)};
  Rig witness(options, membership, now);
  Answer<ProposeResult> written;
  witness.handle(now, Propose{Bytes("x"), now.promise + kLong, written.completion()});
  ASSERT_EQ(written.calls, 1);
  EXPECT_EQ(written.value.status, ProposeStatus::dropped);
  EXPECT_EQ(written.value.leader, raft::NodeId(2));
  for (const raft::ReadMode mode :
       {raft::ReadMode::lease, raft::ReadMode::quorum, raft::ReadMode::log}) {
    Answer<ReadResult> answer;
    witness.handle(now, Read{mode, now.promise + kLong, answer.completion()});
    ASSERT_EQ(answer.calls, 1);
    EXPECT_FALSE(answer.value.index);
    EXPECT_EQ(answer.value.leader, raft::NodeId(2));
  }
  Answer<ReadResult> waits;
  witness.handle(now, WaitApplied{raft::Index(0), now.promise + kLong, waits.completion()});
  EXPECT_FALSE(waits.value.index);
  Error refused;
  witness.handle(now, ReadLog{{raft::Index(1)}, now.promise + kLong, [&](Result<LogPart> part) {
                                refused = part.ok() ? Error{} : part.error();
                              }});
  EXPECT_EQ(refused.code, ErrorCode::unavailable) << "the leader may not show it yet";
}

TEST(Driver, CompletionsNeverRunInsideHandle) {
  Cluster cluster(1);
  Rig& node = cluster.await_leader();
  Answer<ReadResult> answer;
  node.driver().handle(cluster.now(), read(cluster, raft::ReadMode::lease, answer));
  EXPECT_EQ(answer.calls, 0);
  for (auto& completion : node.driver().take_completions()) completion();
  EXPECT_EQ(answer.calls, 1);
  EXPECT_TRUE(node.driver().take_completions().empty()) << "each exactly once";
}

TEST(Driver, CommandsOfOneBatchShareOneAppendAndOneWrite) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  std::vector<Answer<ProposeResult>> answers(10);
  std::vector<Event> events;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    events.push_back(propose(cluster, std::to_string(i), answers[i]));
  }
  leader.driver().handle_batch(cluster.now(), events);
  EXPECT_TRUE(events.empty());
  ASSERT_EQ(leader.writes_waiting(), 1U);
  EXPECT_EQ(leader.writes().front().entries.size(), 10U);
  EXPECT_EQ(leader.sent().size(), 2U) << "one append to each peer";
  cluster.settle();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].value.result.view(), "done:" + std::to_string(i));
  }
}

TEST(Driver, AppendsOvertakeTheLeadersOwnDisk) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  std::vector<std::string> trace;
  leader.on_effect = [&trace](const char* name) { trace.emplace_back(name); };
  Answer<ProposeResult> answer;
  leader.handle(cluster.now(), propose(cluster, "a", answer));
  EXPECT_EQ(trace, (std::vector<std::string>{"send", "send", "persist"}));
  leader.on_effect = nullptr;
}

TEST(Driver, WhatClaimsAMatchWaitsForTheDisk) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  Answer<ProposeResult> answer;
  leader.handle(cluster.now(), propose(cluster, "a", answer));
  for (Rig::Sent& sent : leader.take_sent()) {
    if (sent.to != follower.id()) continue;
    follower.handle(cluster.now(), PeerMessageReceived{leader.peer(), sent.message});
  }
  EXPECT_TRUE(follower.sent().empty());
  follower.finish_writes(cluster.now(), follower.writes_waiting());
  ASSERT_EQ(follower.sent().size(), 1U);
  EXPECT_EQ(follower.sent()[0].to, leader.id());
}

TEST(Driver, TheLossOfALeaseIsShownBeforeAnyMessageLeaves) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  ASSERT_TRUE(leader.view().load().end > cluster.now().holder);
  // A follower that was cut off comes back with a higher term.
  bool sent_anything = false;
  leader.on_effect = [&](const char*) {
    if (leader.leads()) return;
    sent_anything = true;
    EXPECT_EQ(leader.view().load().end, raft::HolderInstant::earliest());
  };
  raft::AppendReply reply;
  reply.request_term = leader.driver().core().term();
  reply.term = reply.request_term + 5;
  leader.handle(cluster.now(),
                PeerMessageReceived{peer_of(raft::NodeId(leader.id() == raft::NodeId(1) ? 2 : 1)),
                                    {raft::GroupId(1), raft::Message(reply)}});
  EXPECT_FALSE(leader.leads());
  EXPECT_TRUE(sent_anything) << "it campaigns at once";
  leader.on_effect = nullptr;
}

TEST(Driver, WithoutALeaderACommandWaitsAndIsDroppedAtItsDeadline) {
  Cluster cluster(3);
  cluster.cut(1);
  Answer<ProposeResult> answer;
  Rig& node = cluster.node(1);
  node.handle(cluster.now(), propose(cluster, "a", answer, milliseconds(2000)));
  cluster.advance(milliseconds(1990));
  EXPECT_EQ(answer.calls, 0);
  cluster.advance(milliseconds(10));
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::dropped);
  EXPECT_FALSE(answer.value.overloaded);
}

TEST(Driver, WithoutALeaderACommandGoesOutOnceOneIsKnown) {
  Cluster cluster(3);
  std::vector<Answer<ProposeResult>> answers(3);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    cluster.node(id).handle(cluster.now(),
                            propose(cluster, "from " + std::to_string(id), answers[id - 1]));
  }
  EXPECT_TRUE(cluster.advance_until(
      [&] { return answers[0].calls == 1 && answers[1].calls == 1 && answers[2].calls == 1; }));
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.value.status, ProposeStatus::committed);
  }
}

TEST(Driver, AppendedButNotCommittedIsUnknownAtTheDeadline) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.cut(leader.id().value());
  Answer<ProposeResult> answer;
  leader.handle(cluster.now(), propose(cluster, "a", answer, milliseconds(100)));
  cluster.advance(milliseconds(150));
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::unknown);
}

TEST(Driver, ACommandThatLostItsPlaceIsSentAnew) {
  Cluster cluster(3);
  Rig& old_leader = cluster.await_leader();
  cluster.cut(old_leader.id().value());
  Answer<ProposeResult> lost;
  old_leader.handle(cluster.now(), propose(cluster, "lost", lost));
  cluster.settle();
  Rig& new_leader = cluster.await_leader();
  ASSERT_NE(new_leader.id(), old_leader.id());
  Answer<ProposeResult> kept;
  new_leader.handle(cluster.now(), propose(cluster, "kept", kept));
  cluster.settle();
  EXPECT_EQ(kept.calls, 1);
  EXPECT_EQ(lost.calls, 0) << "its fate is open while the old leader hears nothing";
  cluster.heal();
  EXPECT_TRUE(cluster.advance_until([&] { return lost.calls > 0; }));
  EXPECT_EQ(lost.value.status, ProposeStatus::committed);
  EXPECT_EQ(old_leader.machine().commands(), (std::vector<std::string>{"kept", "lost"}));
}

TEST(Driver, PastItsLimitsAProposalIsRefusedAtOnce) {
  DriverOptions options;
  options.proposals_max = 2;
  options.reads_max = 1;
  Cluster cluster(3, options);
  Rig& node = cluster.node(1);  // knows no leader yet, so everything waits
  std::vector<Answer<ProposeResult>> answers(3);
  for (auto& answer : answers) node.handle(cluster.now(), propose(cluster, "x", answer));
  EXPECT_EQ(answers[0].calls + answers[1].calls, 0);
  ASSERT_EQ(answers[2].calls, 1);
  EXPECT_EQ(answers[2].value.status, ProposeStatus::dropped);
  EXPECT_TRUE(answers[2].value.overloaded);
  std::vector<Answer<ReadResult>> reads(2);
  for (auto& answer : reads)
    node.handle(cluster.now(), read(cluster, raft::ReadMode::lease, answer));
  EXPECT_EQ(reads[0].calls, 0);
  ASSERT_EQ(reads[1].calls, 1);
  EXPECT_TRUE(reads[1].value.overloaded);
  EXPECT_FALSE(reads[1].value.index.has_value());
}

TEST(Driver, ALeaderThatCannotCommitRefusesMoreThanItsLimit) {
  DriverOptions options;
  options.uncommitted_bytes_max = 1000;
  Cluster cluster(3, options);
  Rig& leader = cluster.await_leader();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  cluster.advance(milliseconds(200));
  Answer<ProposeResult> first;
  leader.handle(cluster.now(), propose(cluster, std::string(2000, 'x'), first));
  Answer<ProposeResult> own;
  leader.handle(cluster.now(), propose(cluster, "own", own));
  ASSERT_EQ(own.calls, 1);
  EXPECT_EQ(own.value.status, ProposeStatus::dropped);
  EXPECT_TRUE(own.value.overloaded);
  Answer<ProposeResult> forwarded;
  follower.handle(cluster.now(), propose(cluster, "forwarded", forwarded));
  const std::vector<Rig::Sent> sent = follower.take_sent();
  ASSERT_EQ(sent.size(), 1U);
  leader.handle(cluster.now(), PeerMessageReceived{follower.peer(), sent[0].message});
  cluster.settle();
  ASSERT_EQ(forwarded.calls, 1);
  EXPECT_TRUE(forwarded.value.overloaded);
  EXPECT_EQ(first.calls, 1);
  Answer<ProposeResult> later;
  leader.handle(cluster.now(), propose(cluster, "later", later));
  cluster.settle();
  EXPECT_EQ(later.value.status, ProposeStatus::committed) << "room again once it has committed";
}

TEST(Driver, ReadsByEachMode) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  const raft::Index last = leader.driver().core().log().last_index();
  Answer<ReadResult> by_lease, by_quorum, by_log;
  leader.handle(cluster.now(), read(cluster, raft::ReadMode::lease, by_lease));
  ASSERT_EQ(by_lease.calls, 1) << "no message, no disk";
  EXPECT_EQ(by_lease.value.basis, raft::ReadBasis::lease);
  leader.handle(cluster.now(), read(cluster, raft::ReadMode::quorum, by_quorum));
  EXPECT_EQ(by_quorum.calls, 0) << "needs a round that began after it arrived";
  cluster.settle();
  ASSERT_EQ(by_quorum.calls, 1);
  EXPECT_EQ(by_quorum.value.basis, raft::ReadBasis::quorum);
  EXPECT_EQ(leader.driver().core().log().last_index(), last);
  leader.handle(cluster.now(), read(cluster, raft::ReadMode::log, by_log));
  cluster.settle();
  ASSERT_EQ(by_log.calls, 1);
  EXPECT_EQ(by_log.value.index, last.next());
  EXPECT_TRUE(leader.machine().commands().empty()) << "the state machine does not see it";
  EXPECT_EQ(leader.driver().counters().reads_lease, 1U);
  EXPECT_EQ(leader.driver().counters().reads_quorum, 1U);
  EXPECT_EQ(leader.driver().counters().reads_log, 1U);
}

TEST(Driver, AReadWaitsUntilItsIndexIsApplied) {
  Cluster cluster(1);
  Rig& node = cluster.await_leader();
  Answer<ProposeResult> written;
  node.handle(cluster.now(), propose(cluster, "a", written));
  node.finish_writes(cluster.now(), node.writes_waiting());
  Answer<ReadResult> answer;
  node.handle(cluster.now(), read(cluster, raft::ReadMode::lease, answer));
  EXPECT_EQ(answer.calls, 0) << "committed, but the state machine does not show it yet";
  node.finish_apply(cluster.now());
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.index, node.driver().applied());
}

TEST(Driver, FollowerReadsThroughItsLeader) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  cluster.advance(milliseconds(200));
  for (const raft::ReadMode mode :
       {raft::ReadMode::lease, raft::ReadMode::quorum, raft::ReadMode::log}) {
    Answer<ReadResult> answer;
    follower.handle(cluster.now(), read(cluster, mode, answer));
    EXPECT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
    EXPECT_TRUE(answer.value.index.has_value());
    EXPECT_EQ(answer.value.leader, mode == raft::ReadMode::log ? raft::kNobody : leader.id());
  }
  EXPECT_EQ(follower.driver().counters().reads_leader, 2U);
  EXPECT_EQ(follower.driver().counters().reads_log, 1U);
}

TEST(Driver, AReadOutlivesAChangeOfLeader) {
  Cluster cluster(3);
  Rig& old_leader = cluster.await_leader();
  Rig& follower = cluster.node(old_leader.id() == raft::NodeId(1) ? 2 : 1);
  cluster.advance(milliseconds(200));
  cluster.cut(old_leader.id().value());
  Answer<ReadResult> answer;
  follower.handle(cluster.now(), read(cluster, raft::ReadMode::lease, answer));
  EXPECT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
  EXPECT_TRUE(answer.value.index.has_value()) << "refusals are retried until the deadline";
  EXPECT_NE(answer.value.leader, old_leader.id());
}

TEST(Driver, AReadIsRefusedAtItsDeadline) {
  Cluster cluster(3);
  cluster.cut(1);
  Answer<ReadResult> answer;
  cluster.node(1).handle(cluster.now(),
                         read(cluster, raft::ReadMode::lease, answer, milliseconds(700)));
  cluster.advance(milliseconds(695));
  EXPECT_EQ(answer.calls, 0);
  cluster.advance(milliseconds(5));
  ASSERT_EQ(answer.calls, 1);
  EXPECT_FALSE(answer.value.index.has_value());
  EXPECT_EQ(cluster.node(1).driver().counters().reads_refused, 1U);
}

TEST(Driver, WaitAppliedCompletesAtItsIndexOrItsDeadline) {
  Cluster cluster(1);
  Rig& node = cluster.await_leader();
  cluster.settle();
  const raft::Index next = node.driver().applied().next();
  Answer<ReadResult> reached, missed;
  node.handle(cluster.now(), WaitApplied{next, cluster.in(kLong), reached.completion()});
  node.handle(cluster.now(),
              WaitApplied{next + 10, cluster.in(milliseconds(50)), missed.completion()});
  EXPECT_EQ(reached.calls, 0);
  Answer<ProposeResult> written;
  node.handle(cluster.now(), propose(cluster, "a", written));
  cluster.settle();
  EXPECT_EQ(reached.calls, 1);
  EXPECT_EQ(reached.value.index, next);
  cluster.advance(milliseconds(60));
  EXPECT_EQ(missed.calls, 1);
  EXPECT_FALSE(missed.value.index.has_value());
}

TEST(Driver, ApplyCallsAreBoundedAndTheRestIsJoined) {
  DriverOptions options;
  options.applies_max = 2;
  Cluster cluster(1, options);
  Rig& node = cluster.await_leader();
  cluster.settle();
  std::vector<Answer<ProposeResult>> answers(6);
  for (auto& answer : answers) {
    node.handle(cluster.now(), propose(cluster, "x", answer));
    node.finish_writes(cluster.now(), node.writes_waiting());
  }
  ASSERT_EQ(node.applies_waiting(), 2U);
  node.finish_apply(cluster.now());
  ASSERT_EQ(node.applies_waiting(), 2U);
  EXPECT_EQ(node.entries_of_apply(node.applies_waiting() - 1).size(), 4U);
  cluster.settle();
  for (const auto& answer : answers) EXPECT_EQ(answer.calls, 1);
}

TEST(Driver, ARestartedNodeAppliesItsLogFromTheDisk) {
  DriverOptions options;
  options.apply_bytes_max = 60;  // two of the entries below
  Cluster cluster(1, options);
  Rig& before = cluster.await_leader();
  std::vector<std::string> commands;
  for (int i = 0; i < 7; ++i) {
    Answer<ProposeResult> answer;
    commands.push_back("c" + std::to_string(i));
    before.handle(cluster.now(), propose(cluster, commands.back(), answer));
    cluster.settle();
    ASSERT_EQ(answer.value.status, ProposeStatus::committed);
  }
  cluster.restart(1);
  Rig& after = cluster.await_leader();
  cluster.settle();
  EXPECT_EQ(after.machine().commands(), commands);
  Answer<ProposeResult> answer;
  after.handle(cluster.now(), propose(cluster, "new", answer));
  cluster.settle();
  EXPECT_EQ(answer.value.status, ProposeStatus::committed)
      << "results of the process before this one are not mistaken for its own";
  EXPECT_EQ(answer.value.result.view(), "done:new");
}

TEST(Driver, AFollowerFarBehindIsServedFromTheDisk) {
  DriverOptions options;
  options.cache_bytes_max = 500;
  options.append_bytes_max = 400;
  Cluster cluster(3, options);
  Rig& leader = cluster.await_leader();
  const std::uint64_t slow = leader.id() == raft::NodeId(1) ? 2 : 1;
  cluster.advance(milliseconds(200));
  cluster.cut(slow);
  for (int i = 0; i < 50; ++i) {
    Answer<ProposeResult> answer;
    leader.handle(cluster.now(), propose(cluster, "c" + std::to_string(i), answer));
    cluster.settle();
  }
  cluster.heal();
  EXPECT_TRUE(
      cluster.advance_until([&] { return cluster.node(slow).machine().commands().size() == 50; }));
  EXPECT_EQ(cluster.node(slow).machine().commands(), leader.machine().commands());
  EXPECT_GT(leader.reads_finished(), 2U);
}

TEST(Driver, ALogThatContradictsTheCoreStopsTheNode) {
  Cluster cluster(1);
  Rig& before = cluster.await_leader();
  Answer<ProposeResult> answer;
  before.handle(cluster.now(), propose(cluster, "a", answer));
  cluster.settle();
  cluster.restart(1);
  Rig& node = cluster.node(1);
  lease::Now when = cluster.now();
  while (node.reads().empty()) {
    when.promise = node.driver().next_deadline();
    node.handle(when, Tick{});
    while (node.writes_waiting() > 0) node.finish_writes(when, node.writes_waiting());
  }
  std::vector<raft::Entry> wrong = {{{raft::Term(77), raft::Index(1)}, {}, {}}};
  node.handle(when, EntriesRead{node.reads()[0].token, wrong});
  ASSERT_TRUE(node.driver().failure().has_value());
  EXPECT_EQ(node.driver().failure()->code, ErrorCode::corrupted);
}

TEST(Driver, StorageFailureCompletesEverybodyAndSilencesTheNode) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Answer<ProposeResult> appended;
  Answer<ReadResult> asked;
  leader.handle(cluster.now(), propose(cluster, "a", appended));
  leader.handle(cluster.now(), read(cluster, raft::ReadMode::quorum, asked));
  leader.take_sent();
  leader.handle(cluster.now(), StorageFailed{{ErrorCode::io, "sync failed"}});
  ASSERT_TRUE(leader.driver().failure().has_value());
  EXPECT_EQ(leader.driver().failure()->message, "sync failed");
  EXPECT_EQ(appended.calls, 1);
  EXPECT_EQ(appended.value.status, ProposeStatus::unknown);
  EXPECT_EQ(asked.calls, 1);
  EXPECT_FALSE(asked.value.index.has_value());
  EXPECT_EQ(leader.view().load().end, raft::HolderInstant::earliest());
  leader.handle(cluster.now(), Tick{});
  Answer<ProposeResult> late;
  leader.handle(cluster.now(), propose(cluster, "late", late));
  EXPECT_EQ(late.calls, 1);
  EXPECT_EQ(late.value.status, ProposeStatus::dropped);
  EXPECT_TRUE(leader.sent().empty());
  EXPECT_EQ(leader.driver().next_deadline(), raft::PromiseInstant::never());
}

TEST(Driver, StopCompletesEverybodyExactlyOnce) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Answer<ProposeResult> appended;
  Answer<ReadResult> waiting;
  leader.handle(cluster.now(), propose(cluster, "a", appended));
  leader.handle(cluster.now(), read(cluster, raft::ReadMode::quorum, waiting));
  Answer<ProposeResult> held;
  cluster.cut(2);
  leader.handle(cluster.now(), Stop{});
  EXPECT_EQ(appended.value.status, ProposeStatus::unknown);
  EXPECT_EQ(appended.calls, 1);
  EXPECT_EQ(waiting.calls, 1);
  EXPECT_EQ(leader.driver().pending(), 0U);
  EXPECT_FALSE(leader.driver().failure().has_value());
  cluster.settle();
  EXPECT_EQ(appended.calls, 1) << "even though it is applied later";
}

}  // namespace
}  // namespace leasehold::replica
