// Two may end the wait for a command: the applier and the driver. One of them does.
#include "driver_cluster.h"

#include <leasehold/replica/callers.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::replica::testing {
namespace {

constexpr lease::Duration kShort = milliseconds(20);

Event propose(Cluster& cluster, Answer<ProposeResult>& answer, lease::Duration timeout = kLong) {
  return Propose{Bytes(std::string("x")), cluster.in(timeout), answer.completion()};
}

/// Moves disks and links, and no state machine, until `node` has something to apply.
void commit_without_applying(Cluster& cluster, Rig& node) {
  for (int round = 0; round < 10 && node.applies_waiting() == 0; ++round) {
    for (std::uint64_t id = 1; id <= 3; ++id) {
      Rig& rig = cluster.node(id);
      if (rig.writes_waiting() > 0) rig.finish_writes(cluster.now(), rig.writes_waiting());
      for (const Rig::Sent& sent : rig.take_sent()) {
        cluster.node(sent.to.value())
            .handle(cluster.now(), PeerMessageReceived{rig.peer(), sent.message});
      }
    }
  }
  ASSERT_EQ(node.applies_waiting(), 1U);
}

std::unique_ptr<Proposal> waiting(std::uint64_t sequence, ProposeCompletion done) {
  auto proposal = std::make_unique<Proposal>();
  proposal->sequence = sequence;
  proposal->done = std::move(done);
  return proposal;
}

TEST(Callers, EachIsTakenOnce) {
  Callers callers;
  int calls = 0;
  Proposal& proposal = callers.add(waiting(7, [&calls](const ProposeResult&) { ++calls; }));
  EXPECT_FALSE(callers.take(8));
  const ProposeCompletion done = callers.take(7);
  ASSERT_TRUE(done);
  done({});
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(callers.take(7));
  EXPECT_FALSE(callers.remove(proposal)->done);
  EXPECT_TRUE(callers.table().empty());
}

TEST(Callers, TheThreadThatRemovesACommandHasItsCompletion) {
  Callers callers;
  int calls = 0;
  Proposal& proposal = callers.add(waiting(7, [&calls](const ProposeResult&) { ++calls; }));
  callers.renumber(proposal, 8);
  EXPECT_FALSE(callers.take(7));
  callers.remove(proposal)->done({});
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(callers.take(8));
}

TEST(Callers, OfTwoThreadsOneGetsEach) {
  constexpr std::uint64_t kCallers = 20'000;
  Callers callers;
  std::vector<int> calls(kCallers);
  for (std::uint64_t i = 0; i < kCallers; ++i) {
    callers.add(waiting(i, [&calls, i](const ProposeResult&) { ++calls[i]; }));
  }
  std::atomic<bool> go{false};
  const auto take_all = [&] {
    while (!go.load()) std::this_thread::yield();
    for (std::uint64_t i = 0; i < kCallers; ++i) {
      if (const ProposeCompletion done = callers.take(i)) done({});
    }
  };
  std::thread one(take_all);
  std::thread other(take_all);
  go.store(true);
  one.join();
  other.join();
  EXPECT_EQ(calls, std::vector<int>(kCallers, 1));
}

TEST(Callers, ACommandThatWasAppliedNeedsNoTurnOfTheDriver) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  Answer<ProposeResult> answer;
  leader.handle(cluster.now(), propose(cluster, answer));
  commit_without_applying(cluster, leader);
  EXPECT_EQ(answer.calls, 0);
  EXPECT_FALSE(leader.driver().awaits_applied()) << "it costs the node's thread no wake-up";
  Applied news = leader.apply_next();
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::committed);
  EXPECT_EQ(answer.value.id.index, news.last);
  EXPECT_EQ(leader.view().applied(), news.last) << "a caller with a result may read it";
  EXPECT_EQ(leader.driver().pending(), 1U) << "the driver has not heard";
  leader.handle(cluster.now(), std::move(news));
  EXPECT_EQ(leader.driver().pending(), 0U);
  EXPECT_EQ(answer.calls, 1);
}

TEST(Callers, ADeadlineThatPassesBeforeTheDriverHearsTellsNobodyAgain) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  Answer<ProposeResult> answer;
  leader.handle(cluster.now(), propose(cluster, answer, kShort));
  commit_without_applying(cluster, leader);
  Applied news = leader.apply_next();
  cluster.advance(2 * kShort);
  EXPECT_EQ(leader.driver().pending(), 0U);
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::committed);
  leader.handle(cluster.now(), std::move(news));
  EXPECT_EQ(answer.calls, 1);
}

TEST(Callers, WhomTheDriverGaveUpTheApplierDoesNotTell) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  Answer<ProposeResult> answer;
  leader.handle(cluster.now(), propose(cluster, answer));
  commit_without_applying(cluster, leader);
  leader.handle(cluster.now(), Stop{});
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::unknown);
  leader.apply_next();
  EXPECT_EQ(answer.calls, 1);
  EXPECT_EQ(leader.callers().table().size(), 0U);
}

TEST(Callers, ACommandOfADeposedLeaderWaitsForNewsOfTheNewTerm) {
  Cluster cluster(3);
  Rig& old_leader = cluster.await_leader();
  cluster.settle();
  cluster.cut(old_leader.id().value());
  Answer<ProposeResult> answer;
  old_leader.handle(cluster.now(), propose(cluster, answer));
  EXPECT_FALSE(old_leader.driver().awaits_applied());
  const raft::Term term = old_leader.driver().core().term();
  EXPECT_NE(&cluster.await_leader(), &old_leader);
  bool awaited = false;
  cluster.lose = [&](raft::NodeId, const Rig::Sent&) {
    const Driver& driver = old_leader.driver();
    awaited |= driver.pending() > 0 && driver.core().term() > term && driver.awaits_applied();
    return false;
  };
  cluster.heal();
  EXPECT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
  EXPECT_EQ(answer.value.status, ProposeStatus::committed);
  EXPECT_TRUE(awaited) << "else it is sent anew a heartbeat later";
}

TEST(Callers, AReadThroughTheLogCountsAsAnsweredWhoeverNoticesFirst) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  Answer<ReadResult> answer;
  leader.handle(cluster.now(), Read{raft::ReadMode::log, cluster.in(kShort), answer.completion()});
  commit_without_applying(cluster, leader);
  Applied news = leader.apply_next();
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.index, news.last);
  cluster.advance(2 * kShort);
  leader.handle(cluster.now(), std::move(news));
  EXPECT_EQ(leader.driver().counters().reads_log, 1U);
  EXPECT_EQ(leader.driver().counters().reads_refused, 0U);
}

}  // namespace
}  // namespace leasehold::replica::testing
