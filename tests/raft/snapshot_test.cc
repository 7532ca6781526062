// A log that is cut, and snapshots in its place: a test for each sentence of the Raft paper's
// section 7 that concerns a core, and for each odd case.

#include "group.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace leasehold::raft::test {
namespace {

LogId at(std::uint64_t term, std::uint64_t index) {
  return {Term(term), Index(index)};
}

AppendRequest append(std::uint64_t term, LogId prev, std::initializer_list<std::uint64_t> terms,
                     std::uint64_t commit = 0) {
  AppendRequest m;
  m.term = Term(term);
  m.prev = prev;
  m.commit = Index(commit);
  m.round = Round(1);
  m.lease = ms(1000);
  m.drift_ppm = lease::Timing().max_clock_drift_ppm;
  Index index = prev.index;
  for (const std::uint64_t entry_term : terms) {
    index = index.next();
    m.entries.push_back({{Term(entry_term), index}, EntryKind::command, Bytes("x")});
  }
  return m;
}

SnapshotChunk chunk(const Group& group, std::uint64_t term, SnapshotId id, std::uint64_t offset) {
  SnapshotChunk m;
  m.term = Term(term);
  m.round = Round(7);
  m.lease = ms(1000);
  m.drift_ppm = lease::Timing().max_clock_drift_ppm;
  m.id = id;
  m.membership = group.membership();
  m.size = Group::kSnapshotBytes;
  m.offset = offset;
  m.data = Bytes("x");
  return m;
}

SnapshotReply chunk_reply(const Group& group) {
  return std::get<SnapshotReply>(group.in_flight().back().message);
}

AppendReply append_reply(const Group& group) {
  return std::get<AppendReply>(group.in_flight().back().message);
}

/// A snapshot of entries 1 .. last, all of last's term.
SnapshotId snapshot_of(Group& group, LogId last) {
  Machine machine;
  for (Index i(1); i <= last.index; i = i.next()) {
    machine.push_back({{last.term, i}, EntryKind::command, Bytes("s")});
  }
  return group.add_snapshot(std::move(machine));
}

/// Node 2 gets all of it from node 1, leader of `term`.
void send_all(Group& group, std::uint64_t term, SnapshotId id) {
  for (std::uint64_t offset = 0; offset < Group::kSnapshotBytes; ++offset) {
    group.step(1, 2, chunk(group, term, id, offset));
  }
}

// ---- The chunk and the promise ----

TEST(SnapshotChunks, RenewThePromiseAndMakeTheLeaderKnown) {
  Group group(3);
  group.step(1, 2, chunk(group, 3, snapshot_of(group, at(2, 5)), 0));
  const Core& core = group.core(2);
  EXPECT_EQ(core.term(), Term(3));
  EXPECT_EQ(core.leader(), NodeId(1));
  EXPECT_EQ(core.hard_state().voted_for, NodeId(1));
  EXPECT_TRUE(core.hard_state().vote_committed);
  EXPECT_EQ(core.promise().until(), group.now().promise + ms(1000));
  const SnapshotReply reply = chunk_reply(group);
  EXPECT_TRUE(reply.promised);
  EXPECT_EQ(reply.request_term, Term(3));
  EXPECT_EQ(reply.term, Term(3));
  EXPECT_EQ(reply.round, Round(7));
  EXPECT_EQ(reply.offset, 1U);

  // A vote request meets the promise, and a later chunk renews it.
  group.jump(ms(900));
  group.step(3, 2, VoteRequest{Term(4), at(3, 9)});
  EXPECT_FALSE(std::get<VoteReply>(group.in_flight().back().message).granted);
  group.step(1, 2, chunk(group, 3, reply.id, 1));
  group.jump(ms(900));
  group.step(3, 2, VoteRequest{Term(4), at(3, 9)});
  EXPECT_FALSE(std::get<VoteReply>(group.in_flight().back().message).granted);
  EXPECT_EQ(core.term(), Term(3));
}

TEST(SnapshotChunks, OfAnOldTermAreAnsweredWithTheOwn) {
  Group group(3);
  group.step(3, 2, append(5, {}, {}));
  const PromiseInstant until = group.core(2).promise().until();
  group.jump(ms(10));
  group.step(1, 2, chunk(group, 4, snapshot_of(group, at(2, 5)), 0));
  const SnapshotReply reply = chunk_reply(group);
  EXPECT_EQ(reply.term, Term(5));
  EXPECT_EQ(reply.request_term, Term(4));
  EXPECT_FALSE(reply.promised);
  EXPECT_FALSE(group.replica(2).arriving.has_value());
  EXPECT_EQ(group.core(2).promise().until(), until);
}

TEST(SnapshotChunks, TurnACandidateIntoAFollowerOfTheirTerm) {
  Group group(3);
  group.isolate(2);
  group.jump(ms(2000));
  group.tick(2);
  group.step(1, 2, PreVoteReply{Term(1), Term(0), true, kNobody});
  ASSERT_EQ(group.core(2).role(), Role::candidate);
  group.step(1, 2, chunk(group, 4, snapshot_of(group, at(2, 5)), 0));
  EXPECT_EQ(group.core(2).role(), Role::follower);
  EXPECT_EQ(group.core(2).term(), Term(4));
  EXPECT_EQ(group.core(2).leader(), NodeId(1));
}

TEST(SnapshotChunks, AreAnsweredWhenThePromiseIsDurable) {
  Group group(3);
  group.replica(2).auto_sync = false;
  group.step(1, 2, chunk(group, 3, snapshot_of(group, at(2, 5)), 0));
  EXPECT_TRUE(group.in_flight().empty());
  group.sync(2);
  EXPECT_TRUE(chunk_reply(group).promised);
}

// H7: storing takes long, and meanwhile the promise went to another.
TEST(SnapshotChunks, EchoNoRoundOnceALaterLeaderWasHeard) {
  Group group(3);
  Core& core = group.core(2);
  const SnapshotId id = snapshot_of(group, at(2, 5));
  core.step(group.now(), peer(NodeId(1)), chunk(group, 3, id, 0));
  core.step(group.now(), peer(NodeId(3)), append(4, {}, {}));
  core.chunk_stored(group.now(), {NodeId(1), Term(3), Round(7), id, false, 1});
  Ready ready;
  ASSERT_TRUE(core.take_ready(ready));
  ASSERT_EQ(ready.chunks.size(), 1U);
  EXPECT_EQ(ready.chunks[0].chunk, chunk(group, 3, id, 0));
  const auto reply = std::get<SnapshotReply>(ready.held.back().message);
  EXPECT_FALSE(reply.promised);
  EXPECT_EQ(reply.term, Term(4));
  EXPECT_EQ(reply.round, Round(7));
}

TEST(SnapshotReplies, CountForTheLeaseLikeThoseOfAppends) {
  Group group(3);
  const int leader = group.elect();
  group.filter = [](const Envelope& e) { return !std::holds_alternative<AppendReply>(e.message); };
  const HolderInstant end = group.core(leader).lease_end();
  group.jump(ms(100));
  group.tick(leader);
  const HolderInstant began = group.now().holder;
  group.settle();
  ASSERT_EQ(group.core(leader).lease_end(), end);
  const auto append_sent = [&group, leader] {
    SnapshotReply reply;
    reply.request_term = reply.term = group.core(leader).term();
    for (const auto& [id, progress] : group.core(leader).progress()) {
      if (progress.acked_round) reply.round = progress.acked_round->round.next();
    }
    return reply;
  };
  SnapshotReply reply = append_sent();
  group.step(leader % 3 + 1, leader, reply);  // without a promise
  EXPECT_EQ(group.core(leader).lease_end(), end);
  reply.promised = true;
  reply.request_term = Term(reply.term.value() - 1);  // to an earlier leadership
  group.step(leader % 3 + 1, leader, reply);
  EXPECT_EQ(group.core(leader).lease_end(), end);
  reply.request_term = reply.term;
  group.step(leader % 3 + 1, leader, reply);
  EXPECT_EQ(group.core(leader).lease_end(), began + lease::Timing{}.usable(ms(1000)));
}

TEST(SnapshotReplies, TeachALeaderAHigherTerm) {
  Group group(3);
  const int leader = group.elect();
  SnapshotReply reply;
  reply.request_term = group.core(leader).term();
  reply.term = Term(reply.request_term.value() + 3);
  group.step(leader % 3 + 1, leader, reply);
  EXPECT_GE(group.core(leader).term(), reply.term);
  EXPECT_NE(group.core(leader).role(), Role::leader);
}

// ---- The follower's log ----

// "Discards its entire log; it is all superseded by the snapshot" (section 7).
TEST(Snapshot, TakesThePlaceOfALogThatLacksItsLastEntry) {
  Group group(3);
  group.step(1, 2, append(1, {}, {1, 1, 1}, 1));
  const SnapshotId id = snapshot_of(group, at(2, 5));
  send_all(group, 3, id);
  const Core& core = group.core(2);
  EXPECT_EQ(core.log().base(), at(2, 5));
  EXPECT_EQ(core.log().last(), at(2, 5));
  EXPECT_EQ(core.commit_index(), Index(5));
  EXPECT_EQ(core.durable_index(), Index(5));
  EXPECT_EQ(group.replica(2).installed, std::vector<SnapshotId>{id});
  EXPECT_EQ(group.replica(2).machine.size(), 5U);
  EXPECT_EQ(events_of<SnapshotInstalled>(group.replica(2)).size(), 1U);
  // The log goes on behind it.
  group.step(1, 2, append(3, at(2, 5), {3, 3}, 7));
  EXPECT_TRUE(append_reply(group).matched);
  EXPECT_EQ(append_reply(group).index, Index(7));
  EXPECT_EQ(group.replica(2).applied, Index(7));
}

// "If the snapshot describes a prefix of its log, entries following it are still valid" (section
// 7).
TEST(Snapshot, IsNotNeededByALogThatHoldsItsLastEntry) {
  Group group(3);
  group.step(1, 2, append(2, {}, {2, 2, 2, 2, 2, 2, 2}));
  ASSERT_EQ(group.core(2).commit_index(), Index(0));
  send_all(group, 3, snapshot_of(group, at(2, 5)));
  EXPECT_EQ(group.core(2).log().base(), at(0, 0));
  EXPECT_EQ(group.core(2).log().last(), at(2, 7));
  // What a snapshot holds is committed.
  EXPECT_EQ(group.core(2).commit_index(), Index(5));
  EXPECT_EQ(group.replica(2).applied, Index(5));
  EXPECT_TRUE(group.replica(2).installed.empty());
}

TEST(Snapshot, OfWhatIsCommittedIsStale) {
  Group group(3);
  group.step(1, 2, append(2, {}, {2, 2, 2, 2, 2, 2, 2}, 6));
  ASSERT_EQ(group.core(2).commit_index(), Index(6));
  send_all(group, 3, snapshot_of(group, at(2, 5)));
  send_all(group, 3, snapshot_of(group, at(1, 6)));
  EXPECT_EQ(group.core(2).log().last(), at(2, 7));
  EXPECT_EQ(group.core(2).commit_index(), Index(6));
  EXPECT_TRUE(group.replica(2).installed.empty());
}

TEST(Snapshot, IsNotTakenByALeader) {
  Group group(3);
  const int leader = group.elect();
  Core& core = group.core(leader);
  const SnapshotId id{{core.term(), Index(100)}, 1};
  EXPECT_FALSE(core.snapshot_received(group.now(), id, group.membership()));
  EXPECT_EQ(core.role(), Role::leader);
}

TEST(Snapshot, BringsItsMembership) {
  Group group(3);
  Membership larger = group.membership();
  larger.members.push_back({NodeId(4), Uuid{4, 4}, "node4"});
  Core& core = group.core(2);
  group.step(1, 2, append(3, {}, {}));
  ASSERT_TRUE(core.snapshot_received(group.now(), {at(2, 5), 1}, larger));
  EXPECT_EQ(core.membership(), larger);
  Ready ready;
  ASSERT_TRUE(core.take_ready(ready));
  ASSERT_TRUE(ready.persist.reset.has_value());
  EXPECT_EQ(ready.persist.reset->membership, larger);
  EXPECT_EQ(ready.persist.reset->id, at(2, 5));
  EXPECT_FALSE(ready.install.has_value());
}

TEST(Snapshot, IsInstalledWhenItsPlaceInTheLogIsDurable) {
  Group group(3);
  group.replica(2).auto_sync = false;
  group.step(1, 2, append(1, {}, {1, 1, 1, 1, 1, 1, 1, 1}, 2));
  const SnapshotId id = snapshot_of(group, at(2, 5));
  send_all(group, 3, id);
  group.step(1, 2, append(3, at(2, 5), {3}, 6));
  const Core& core = group.core(2);
  EXPECT_EQ(core.commit_index(), Index(6));
  // The first batches refer to the old log: entries 3 to 8 are gone, whatever they say.
  while (!group.replica(2).unsynced.front().reset) {
    group.sync_one(2);
    group.drain(2);
    EXPECT_LE(core.durable_index(), Index(2));
    EXPECT_TRUE(group.replica(2).installed.empty());
    EXPECT_EQ(group.replica(2).applied, Index(0));
  }
  group.sync_one(2);
  group.drain(2);
  EXPECT_EQ(core.durable_index(), Index(5));
  EXPECT_EQ(group.replica(2).installed, std::vector<SnapshotId>{id});
  EXPECT_EQ(group.replica(2).applied, Index(5));
  group.sync(2);
  EXPECT_EQ(core.durable_index(), Index(6));
  EXPECT_EQ(group.replica(2).applied, Index(6));
}

TEST(Snapshot, IsNoMatchBeforeItIsDurable) {
  Group group(3);
  group.step(1, 2, append(1, {}, {1, 1, 1}, 1));
  group.replica(2).auto_sync = false;
  send_all(group, 3, snapshot_of(group, at(2, 5)));
  while (!group.replica(2).unsynced.front().reset) group.sync_one(2);
  group.step(1, 2, append(3, at(2, 5), {}, 5));
  EXPECT_TRUE(append_reply(group).matched);
  EXPECT_EQ(append_reply(group).index, Index(1));
  group.sync(2);
  group.step(1, 2, append(3, at(2, 5), {}, 5));
  EXPECT_EQ(append_reply(group).index, Index(5));
}

TEST(Snapshot, DropsEntriesThatWereNotHandedToTheDiskYet) {
  Group group(3);
  Core& core = group.core(2);
  core.step(group.now(), peer(NodeId(1)), append(1, {}, {1, 1, 1}));
  core.step(group.now(), peer(NodeId(1)), append(3, {}, {}));
  ASSERT_TRUE(core.snapshot_received(group.now(), {at(2, 5), 1}, group.membership()));
  Ready ready;
  ASSERT_TRUE(core.take_ready(ready));
  EXPECT_TRUE(ready.persist.reset.has_value());
  EXPECT_TRUE(ready.persist.entries.empty());
  EXPECT_FALSE(ready.persist.truncate_from.has_value());
}

TEST(Snapshot, IsFoundAtARestartBeforeItIsInstalled) {
  Group group(3);
  group.replica(2).auto_sync = false;
  const SnapshotId id = snapshot_of(group, at(2, 5));
  send_all(group, 3, id);
  while (!group.replica(2).unsynced.empty()) group.sync_one(2);
  ASSERT_TRUE(group.replica(2).installed.empty());
  group.restart(2);
  EXPECT_EQ(group.core(2).log().base(), at(2, 5));
  EXPECT_EQ(group.core(2).commit_index(), Index(5));
  EXPECT_EQ(group.replica(2).machine.size(), 5U);
  // Nothing of it is applied again.
  group.sync(2);
  EXPECT_EQ(group.replica(2).applied, Index(5));
}

TEST(Snapshot, IsForgottenAtARestartBeforeItsPlaceIsDurable) {
  Group group(3);
  group.step(1, 2, append(1, {}, {1, 1, 1}, 1));
  group.replica(2).auto_sync = false;
  send_all(group, 3, snapshot_of(group, at(2, 5)));
  group.restart(2);
  EXPECT_EQ(group.core(2).log().last(), at(1, 3));
  EXPECT_EQ(group.core(2).log().base(), at(0, 0));
}

TEST(Snapshot, MayFollowAnotherThatIsNotInstalled) {
  Group group(3);
  Core& core = group.core(2);
  const SnapshotId first = snapshot_of(group, at(2, 5));
  const SnapshotId second = snapshot_of(group, at(2, 9));
  group.step(1, 2, append(3, {}, {}));
  group.replica(2).auto_sync = false;
  ASSERT_TRUE(core.snapshot_received(group.now(), first, group.membership()));
  group.drain(2);
  ASSERT_TRUE(core.snapshot_received(group.now(), second, group.membership()));
  EXPECT_FALSE(core.snapshot_received(group.now(), first, group.membership()));
  group.drain(2);
  ASSERT_EQ(group.replica(2).unsynced.size(), 2U);
  group.sync_one(2);
  group.drain(2);
  EXPECT_EQ(group.replica(2).installed, std::vector<SnapshotId>{first});
  EXPECT_LT(core.durable_index(), Index(9));
  group.sync(2);
  EXPECT_EQ(group.replica(2).installed, (std::vector<SnapshotId>{first, second}));
  EXPECT_EQ(core.durable_index(), Index(9));
  EXPECT_EQ(group.replica(2).applied, Index(9));
}

TEST(Snapshot, ReplacesAnotherOfTheSameTurn) {
  Group group(3);
  Core& core = group.core(2);
  group.step(1, 2, append(3, {}, {}));
  ASSERT_TRUE(
      core.snapshot_received(group.now(), snapshot_of(group, at(2, 5)), group.membership()));
  const SnapshotId second = snapshot_of(group, at(2, 9));
  ASSERT_TRUE(core.snapshot_received(group.now(), second, group.membership()));
  group.drain(2);
  EXPECT_EQ(group.replica(2).installed, std::vector<SnapshotId>{second});
  EXPECT_EQ(group.replica(2).disk_base.id, at(2, 9));
}

// ---- Appends that reach below the base ----

TEST(CutLog, AnAppendBelowTheBaseMatches) {
  Group group(3);
  group.step(1, 2, append(2, {}, {2, 2, 2, 2, 2}, 4));
  group.cut_log(2, Index(4));
  // A late copy.
  group.step(1, 2, append(2, {}, {2, 2}, 4));
  EXPECT_TRUE(append_reply(group).matched);
  EXPECT_EQ(append_reply(group).index, Index(4));
  group.step(1, 2, append(2, at(2, 1), {}, 4));
  EXPECT_TRUE(append_reply(group).matched);
  EXPECT_EQ(group.core(2).log().last(), at(2, 5));
}

TEST(CutLog, AnAppendAcrossTheBaseAppendsTheRest) {
  Group group(3);
  group.step(1, 2, append(2, {}, {2, 2, 2, 2, 2}, 4));
  group.cut_log(2, Index(4));
  group.step(1, 2, append(3, at(2, 2), {2, 2, 3, 3}, 6));
  EXPECT_TRUE(append_reply(group).matched);
  EXPECT_EQ(append_reply(group).index, Index(6));
  EXPECT_EQ(group.core(2).log().last(), at(3, 6));
  EXPECT_EQ(group.replica(2).applied, Index(6));
}

TEST(CutLog, SurvivesARestart) {
  Group group(3);
  group.step(1, 2, append(2, {}, {2, 2, 2, 2, 2}, 4));
  group.cut_log(2, Index(3));
  EXPECT_EQ(events_of<LogCut>(group.replica(2)), std::vector<LogCut>{{Index(3)}});
  group.cut_log(2, Index(2));  // no news
  EXPECT_EQ(events_of<LogCut>(group.replica(2)).size(), 1U);
  group.restart(2);
  EXPECT_EQ(group.core(2).log().base(), at(2, 3));
  EXPECT_EQ(group.core(2).log().last(), at(2, 5));
  EXPECT_EQ(group.core(2).commit_index(), Index(4));
}

TEST(CutLog, KeepsTheMembershipThatItCutsOff) {
  Group group(3);
  Membership larger = group.membership();
  larger.members.push_back({NodeId(4), Uuid{4, 4}, "node4"});
  AppendRequest m = append(2, {}, {2, 2, 2, 2}, 4);
  m.entries[1].kind = EntryKind::membership;
  m.entries[1].payload = encode_membership(larger);
  group.step(1, 2, m);
  group.cut_log(2, Index(1));
  EXPECT_EQ(group.replica(2).disk_base.membership, group.membership());
  group.cut_log(2, Index(3));
  EXPECT_EQ(group.replica(2).disk_base.membership, larger);
  EXPECT_EQ(group.core(2).membership(), larger);
  group.restart(2);
  EXPECT_EQ(group.core(2).membership(), larger);
}

}  // namespace
}  // namespace leasehold::raft::test
