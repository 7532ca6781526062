// Replication and commitment: sections 5.3 and 5.4 of the Raft paper.

#include "group.h"

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

AppendRequest append(std::uint64_t term, LogId prev, std::vector<std::uint64_t> entry_terms,
                     std::uint64_t commit = 0) {
  AppendRequest m;
  m.term = Term(term);
  m.prev = prev;
  m.commit = Index(commit);
  m.round = Round(1);
  m.lease = ms(1000);
  m.drift_ppm = lease::Timing().max_clock_drift_ppm;
  Index index = prev.index;
  for (const std::uint64_t t : entry_terms) {
    index = index.next();
    m.entries.push_back({{Term(t), index}, EntryKind::command, Bytes(std::string("x"))});
  }
  return m;
}

LogId at(std::uint64_t term, std::uint64_t index) {
  return {Term(term), Index(index)};
}

const AppendReply& last_reply(Group& group) {
  return std::get<AppendReply>(group.in_flight().back().message);
}

TEST(Replication, AWriteReachesAllNodesAndIsAppliedEverywhere) {
  Group group(3);
  const int leader = group.elect();
  group.settle();
  ASSERT_EQ(group.propose(leader, "hello"), at(group.core(leader).term().value(), 2));
  group.settle();
  for (int id = 1; id <= 3; ++id) {
    EXPECT_EQ(group.core(id).commit_index(), Index(2)) << id;
    EXPECT_EQ(group.replica(id).applied, Index(2)) << id;
    EXPECT_EQ(group.replica(id).disk_log[1].payload.view(), "hello");
  }
}

TEST(Replication, NewsOfACommitWaitsForTheNextAppend) {
  Group group(3, {}, 1, ms(5));
  const int leader = group.elect();
  const int follower = leader % 3 + 1;
  group.run(ms(20));
  int messages = 0;
  group.filter = [&messages, leader](const Envelope& envelope) {
    messages += envelope.from == NodeId(static_cast<std::uint64_t>(leader)) ? 1 : 0;
    return true;
  };
  group.propose(leader, "first");
  group.settle();
  EXPECT_EQ(group.core(leader).commit_index(), Index(2));
  EXPECT_EQ(group.core(follower).commit_index(), Index(1));
  group.propose(leader, "second");
  group.settle();
  EXPECT_EQ(group.core(follower).commit_index(), Index(2));
  EXPECT_EQ(messages, 4);  // one append a write and peer, and nothing else
}

TEST(Replication, NewsOfACommitWaitsNoLongerThanItMay) {
  Group group(3, {}, 1, ms(5));
  const int leader = group.elect();
  const int follower = leader % 3 + 1;
  group.run(ms(20));
  group.propose(leader, "alone");
  group.settle();
  group.run(ms(4));
  EXPECT_EQ(group.core(follower).commit_index(), Index(1));
  group.run(ms(2));
  EXPECT_EQ(group.core(follower).commit_index(), Index(2));
  // And then there is nothing due before the next heartbeat.
  EXPECT_GT(group.core(leader).next_deadline(), group.now().promise);
}

TEST(Replication, APeerWhoseCallersWaitHearsOfACommitAtOnce) {
  Group group(3, {}, 1, ms(5));
  const int leader = group.elect();
  const int listener = leader % 3 + 1;
  const int other = listener % 3 + 1;
  group.run(ms(20));
  group.core(leader).listens(group.now(), NodeId(static_cast<std::uint64_t>(listener)));
  group.propose(leader, "forwarded");
  group.settle();
  EXPECT_EQ(group.core(listener).commit_index(), Index(2));
  EXPECT_EQ(group.core(other).commit_index(), Index(1));
}

TEST(Replication, TheFirstCommitOfATermIsAnnouncedAtOnce) {
  Group group(3, {}, 1, ms(5));
  const int old_leader = group.elect();
  group.run(ms(20));
  const int next = old_leader % 3 + 1;
  ASSERT_FALSE(group.core(old_leader)
                   .transfer(group.now(), NodeId(static_cast<std::uint64_t>(next)))
                   .has_value());
  group.drain(old_leader);
  group.settle();
  ASSERT_EQ(group.core(next).role(), Role::leader);
  for (int id = 1; id <= 3; ++id) EXPECT_EQ(group.core(id).commit_index(), Index(2)) << id;
}

TEST(Replication, AFollowerTakesNoProposal) {
  Group group(3);
  const int leader = group.elect();
  EXPECT_FALSE(group.propose(leader % 3 + 1, "no").has_value());
}

TEST(Replication, AMinorityCommitsNothing) {
  Group group(5);
  const int leader = group.elect();
  group.settle();
  const Index before = group.core(leader).commit_index();
  group.isolate(leader);
  group.propose(leader, "lost");
  group.run(ms(500));
  EXPECT_EQ(group.core(leader).commit_index(), before);
}

TEST(Replication, TheOwnEntryCountsOnlyWhenItIsDurable) {
  Group group(1);
  group.elect();
  group.replica(1).auto_sync = false;
  group.propose(1, "a");
  EXPECT_EQ(group.core(1).commit_index(), Index(1));
  group.sync(1);
  EXPECT_EQ(group.core(1).commit_index(), Index(2));
}

TEST(Replication, AQuorumOfOthersCommitsWithoutTheLeadersDisk) {
  Group group(3);
  const int leader = group.elect();
  group.settle();
  group.replica(leader).auto_sync = false;
  group.propose(leader, "a");
  group.settle();
  EXPECT_EQ(group.core(leader).commit_index(), Index(2));
  // Its own state machine still waits.
  EXPECT_EQ(group.replica(leader).applied, Index(1));
  group.sync(leader);
  EXPECT_EQ(group.replica(leader).applied, Index(2));
}

TEST(Replication, AFollowerRefusesEntriesWithoutTheirPredecessor) {
  Group group(3);
  group.step(1, 2, append(3, at(2, 5), {3}));
  EXPECT_FALSE(last_reply(group).matched);
  EXPECT_EQ(last_reply(group).index, Index(0));
  EXPECT_TRUE(group.replica(2).disk_log.empty());
}

TEST(Replication, AConflictRemovesTheEntryAndAllAfterIt) {
  Group group(3);
  group.step(1, 2, append(1, {}, {1, 1, 1}));
  group.jump(ms(2000));
  group.step(3, 2, append(2, at(1, 1), {2}));
  ASSERT_EQ(group.replica(2).disk_log.size(), 2U);
  EXPECT_EQ(group.replica(2).disk_log[1].id, at(2, 2));
  EXPECT_EQ(last_reply(group).index, Index(2));
}

TEST(Replication, AnOldAppendRemovesNothingThatMatches) {
  Group group(3);
  group.step(1, 2, append(1, {}, {1, 1, 1}));
  group.step(1, 2, append(1, {}, {1}));
  EXPECT_EQ(group.replica(2).disk_log.size(), 3U);
  EXPECT_EQ(last_reply(group).index, Index(1));
}

TEST(Replication, TheCommitIndexStopsAtTheLastEntryThatWasCompared) {
  Group group(3);
  group.step(1, 2, append(1, {}, {1, 1, 1}));
  group.step(1, 2, append(1, at(1, 1), {}, 3));
  EXPECT_EQ(group.core(2).commit_index(), Index(1));
  group.step(1, 2, append(1, at(1, 3), {}, 9));
  EXPECT_EQ(group.core(2).commit_index(), Index(3));
}

TEST(Replication, AnAcknowledgementOfEntriesWaitsForTheDiskAHeartbeatDoesNot) {
  Group group(3);
  group.step(1, 2, append(1, {}, {}));
  group.in_flight().clear();
  group.replica(2).auto_sync = false;
  group.step(1, 2, append(1, {}, {1}));
  EXPECT_TRUE(group.in_flight().empty());
  AppendRequest heartbeat = append(1, at(1, 1), {});
  heartbeat.round = Round(2);
  group.step(1, 2, heartbeat);
  ASSERT_EQ(group.in_flight().size(), 1U);
  EXPECT_TRUE(last_reply(group).promised);
  EXPECT_EQ(last_reply(group).round, Round(2));
  EXPECT_EQ(last_reply(group).index, Index(0));
  group.sync(2);
  EXPECT_EQ(last_reply(group).index, Index(1));
}

// Figure 7 of the paper: a leader of term 8 repairs every follower's log.
TEST(Replication, Figure7LogsAreRepaired) {
  const std::vector<std::uint64_t> leader_terms = {1, 1, 1, 4, 4, 5, 5, 6, 6, 6};
  const std::vector<std::vector<std::uint64_t>> others = {
      {1, 1, 1, 4, 4, 5, 5, 6, 6},
      {1, 1, 1, 4},
      {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6},
      {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7},
      {1, 1, 1, 4, 4, 4, 4},
      {1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3},
  };
  for (const auto& other : others) {
    Group group(3);
    const auto write = [&group](int id, const std::vector<std::uint64_t>& terms) {
      group.crash(id);
      Replica& replica = group.replica(id);
      std::uint64_t index = 0;
      for (const std::uint64_t term : terms) {
        replica.disk_log.push_back(
            {at(term, ++index), EntryKind::command, Bytes(std::to_string(term))});
      }
      replica.disk_hard_state.term = Term(7);
      group.restart(id);
    };
    write(1, leader_terms);
    write(2, leader_terms);
    write(3, other);
    // Node 3 never wins here, so that the logs of the figure's leader decide.
    group.filter = [](const Envelope& e) {
      return !(e.from == NodeId(3) && (std::holds_alternative<PreVoteRequest>(e.message) ||
                                       std::holds_alternative<VoteRequest>(e.message)));
    };
    const int leader = group.elect();
    group.run(ms(1000));
    ASSERT_EQ(group.replica(3).disk_log.size(), 11U);
    EXPECT_EQ(group.replica(3).disk_log, group.replica(leader).disk_log);
  }
}

// Figure 8: an entry of an earlier term is not committed by counting replicas.
TEST(Replication, Figure8OldEntriesAreNotCommittedByCounting) {
  Group group(3);
  for (int id = 1; id <= 3; ++id) {
    group.crash(id);
    group.replica(id).disk_hard_state.term = Term(2);
    group.replica(id).disk_log.push_back({at(2, 1), EntryKind::command, Bytes()});
    group.restart(id);
  }
  // The term's own entry does not get through: all nodes hold entry 1, and none commits it.
  group.filter = [](const Envelope& e) {
    const auto* m = std::get_if<AppendRequest>(&e.message);
    return m == nullptr || m->entries.empty();
  };
  group.run(ms(900));
  for (int id = 1; id <= 3; ++id) EXPECT_EQ(group.core(id).commit_index(), Index(0));
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(2000));
  for (int id = 1; id <= 3; ++id) EXPECT_GE(group.core(id).commit_index(), Index(2));
}

TEST(Replication, EntriesThatWereLostAreSentAgain) {
  Group group(3);
  const int leader = group.elect();
  group.settle();
  int dropped = 0;
  group.filter = [&dropped](const Envelope& e) {
    const auto* m = std::get_if<AppendRequest>(&e.message);
    if (m == nullptr || m->entries.empty() || dropped >= 20) return true;
    ++dropped;
    return false;
  };
  for (int i = 0; i < 5; ++i) group.propose(leader, std::to_string(i));
  group.run(ms(1500));
  EXPECT_GT(dropped, 0);
  for (int id = 1; id <= 3; ++id) EXPECT_EQ(group.replica(id).applied, Index(6)) << id;
}

// A reply that was sent before the leader's present knowledge, and comes late or twice. With many
// of them under way each would make the leader send everything once more, and a message that
// overtakes another is refused.
TEST(Replication, ALateCopyOfAnAnswerDoesNotEndAProbe) {
  Group group(3);
  const int leader = group.elect();
  const int follower = leader % 3 + 1;
  group.propose(leader, "known");
  group.settle();
  group.run(ms(200));
  int sent = 0;
  group.filter = [&sent, follower](const Envelope& envelope) {
    const bool to_it = envelope.to == NodeId(static_cast<std::uint64_t>(follower));
    sent += to_it ? 1 : 0;
    return !to_it;
  };
  group.propose(leader, "lost");
  group.propose(leader, "refused");
  group.settle();
  AppendReply reply;
  reply.request_term = reply.term = group.core(leader).term();
  reply.promised = true;
  reply.rejected_prev = Index(3);
  reply.index = Index(2);
  reply.hint_term = reply.term;
  const auto answer = [&](bool matched, std::uint64_t index) {
    reply.matched = matched;
    reply.index = Index(index);
    sent = 0;
    group.step(follower, leader, reply);
    group.settle();
    group.propose(leader, "more");
    group.settle();
    return sent;
  };
  EXPECT_EQ(answer(false, 2), 1) << "the probe, and nothing behind it";
  EXPECT_EQ(answer(true, 1), 0) << "older than what it has acknowledged";
  EXPECT_GT(answer(true, 2), 0);
}

TEST(Replication, InFlightMessagesAreBounded) {
  Group group(3);
  const int leader = group.elect();
  group.settle();
  group.filter = [](const Envelope& e) { return !std::holds_alternative<AppendReply>(e.message); };
  for (int i = 0; i < 200; ++i) group.propose(leader, std::to_string(i));
  for (const auto& [id, progress] : group.core(leader).progress()) {
    EXPECT_LE(progress.inflights.size(), 64U);
  }
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(500));
  for (int id = 1; id <= 3; ++id) EXPECT_EQ(group.replica(id).applied, Index(201)) << id;
}

TEST(Replication, InFlightBytesAreBounded) {
  for (const std::size_t payload : {std::size_t{1} << 19U, std::size_t{1} << 20U}) {
    Group group(3);
    const int leader = group.elect();
    group.settle();
    group.filter = [](const Envelope& e) {
      return !std::holds_alternative<AppendReply>(e.message);
    };
    const std::size_t most = group.core(leader).options().inflight_bytes_max;
    for (int i = 0; i < 30; ++i) {
      group.propose(leader, std::string(payload, 'x'));
      group.settle();
    }
    for (const auto& [id, progress] : group.core(leader).progress()) {
      EXPECT_LT(progress.inflight_bytes, most + payload);
      EXPECT_GE(progress.inflight_bytes, most) << "used";
    }
    group.filter = [](const Envelope&) { return true; };
    group.run(ms(1000));
    for (int id = 1; id <= 3; ++id) EXPECT_EQ(group.replica(id).applied, Index(31)) << id;
    for (const auto& [id, progress] : group.core(leader).progress()) {
      EXPECT_EQ(progress.inflight_bytes, 0U);
    }
  }
}

// An earlier transmission may be acknowledged while the driver still reads the entries for an
// intent.
TEST(Replication, AFillThatComesAfterItsAcknowledgementMovesNothingBack) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(200));
  Core core = group.core(leader);
  std::vector<Bytes> payloads(3, Bytes(std::string("x")));
  core.propose(group.now(), payloads);
  Ready ready;
  ASSERT_TRUE(core.take_ready(ready));
  ASSERT_FALSE(ready.intents.empty());
  const AppendIntent intent = ready.intents.front();
  AppendReply reply;
  reply.request_term = reply.term = core.term();
  reply.promised = reply.matched = true;
  reply.index = core.log().last_index();
  core.step(group.now(), peer(intent.to), reply);
  ASSERT_TRUE(core.current(intent));
  core.filled(group.now(), intent, intent.prev.index.next(), 1);
  const Progress& progress = core.progress().at(intent.to);
  EXPECT_EQ(progress.match_index, core.log().last_index());
  EXPECT_EQ(progress.next_index, core.log().last_index().next());
}

// Leaders of two terms replace different parts of the log before storage gets anything of it.
TEST(Replication, OfTwoTruncationsInATurnStorageGetsTheDeeper) {
  for (const std::uint64_t second : {2U, 3U, 4U, 5U}) {
    Group group(3);
    group.step(1, 2, append(1, {}, {1, 1, 1, 1, 1, 1}));
    Core& core = group.core(2);
    // The turn: entry 5 and 6 are replaced, and then all from `second` on.
    core.step(group.now(), peer(NodeId(3)), append(2, at(1, 4), {2, 2, 2}));
    core.step(group.now(), peer(NodeId(1)), append(3, at(1, second - 1), {3}));
    group.drain(2);
    const Replica& replica = group.replica(2);
    ASSERT_EQ(replica.disk_log.size(), second);
    ASSERT_EQ(replica.disk_log.back().id, at(3, second));
    group.restart(2);
    EXPECT_EQ(group.core(2).log().last(), at(3, second));
    EXPECT_TRUE(group.core(2).log().matches(at(1, second - 1)));
  }
}

// The A-B-A race: a completion of a batch whose entries were replaced meanwhile says nothing of the
// new ones.
TEST(Replication, ACompletionOfReplacedEntriesMovesNoMatch) {
  Group group(3);
  group.step(1, 2, append(1, {}, {1}));
  group.replica(2).auto_sync = false;
  group.step(1, 2, append(1, at(1, 1), {1, 1, 1}));
  ASSERT_EQ(group.replica(2).unsynced.size(), 1U);
  const ReadyId old_batch = group.replica(2).unsynced.front().id;
  group.step(3, 2, append(2, at(1, 1), {2, 2}));
  group.core(2).persisted(group.now(), old_batch);
  EXPECT_EQ(group.core(2).durable_index(), Index(1));
  group.sync(2);
  EXPECT_EQ(group.core(2).durable_index(), Index(3));
}

}  // namespace
}  // namespace leasehold::raft::test
