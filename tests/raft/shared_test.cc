// The lease of a group that rests on promises between processes (raft/core_shared.cc).
#include "shared_group.h"

#include <leasehold/raft/carry_out.h>

#include <string>

namespace leasehold::raft::test {
namespace {

constexpr auto kD = std::chrono::milliseconds(1000);

// ---- The leader ----

TEST(Shared, ALeaseGoesOnByBeatsAlone) {
  SharedGroup group;
  const int leader = group.bound_leader();
  group.silence();
  group.beats(leader, 10 * kD);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_EQ(group.core(leader).lease_end(), group.now().holder + kD);
  EXPECT_EQ(group.replica(leader).view.end, group.core(leader).lease_end());
}

TEST(Shared, WithoutABindBeatsAreWorthNothing) {
  SharedGroup group;
  const int leader = group.elect();
  group.silence();
  group.beats(leader, 2 * kD);
  EXPECT_LE(group.core(leader).lease_end(), group.now().holder);
}

TEST(Shared, AQuorumHasToBeBound) {
  SharedGroup group(5);
  const int leader = group.bound_leader();
  group.silence();
  const std::vector<int> others = group.others(leader);
  group.beats(leader, 2 * kD, {others[0], others[1], others[2]});
  EXPECT_LE(group.core(leader).lease_end(), group.now().holder);
}

TEST(Shared, ALeaderWithoutAcknowledgedBeatsStepsDown) {
  SharedGroup group;
  const int leader = group.bound_leader();
  group.silence();
  group.beats(leader, 3 * kD);
  ASSERT_EQ(group.core(leader).role(), Role::leader);
  group.jump(kD);
  group.tick(leader);
  EXPECT_EQ(group.core(leader).role(), Role::follower);
}

TEST(Shared, NothingIsBoundAtAnElection) {
  SharedGroup group;
  const int first = group.bound_leader();
  // All processes go on acknowledging, at the same epochs.
  const int next = group.others(first)[0];
  ASSERT_FALSE(group.core(first).transfer(group.now(), NodeId(static_cast<std::uint64_t>(next))));
  group.drain(first);
  group.settle();
  ASSERT_EQ(group.core(next).role(), Role::leader);
  ASSERT_FALSE(group.core(next).transfer(group.now(), NodeId(static_cast<std::uint64_t>(first))));
  group.drain(next);
  group.filter = [](const Envelope& sent) {
    const auto* append = std::get_if<AppendReply>(&sent.message);
    return append == nullptr || !append->bound;
  };
  group.settle();
  ASSERT_EQ(group.core(first).role(), Role::leader);
  group.silence();
  group.beats(first, 2 * kD);
  EXPECT_LE(group.core(first).lease_end(), group.now().holder);
}

TEST(Shared, ALateAnswerDoesNotBindAtAnEarlierEpoch) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int other = group.others(leader)[0];
  const lease::Epoch earlier = group.support(other, leader).epoch();
  AppendReply late;
  late.request_term = late.term = group.core(leader).term();
  late.promised = true;
  late.round = Round(1);
  late.bound = earlier;
  // The member lets go, and is bound again by the next append.
  group.silence();
  group.beats(leader, 2 * kD, {other});
  group.rely(other, leader);
  group.filter = [](const Envelope&) { return true; };
  group.beat(leader);
  group.tick(leader);
  group.settle();
  ASSERT_EQ(
      group.core(leader).progress().at(NodeId(static_cast<std::uint64_t>(other))).bound->epoch,
      group.support(other, leader).epoch());
  group.step(other, leader, late);
  EXPECT_GT(
      group.core(leader).progress().at(NodeId(static_cast<std::uint64_t>(other))).bound->epoch,
      earlier);
}

TEST(Shared, AnAnswerThatWasNotAskedForBindsNothing) {
  SharedGroup group;
  const int leader = group.elect();
  const int other = group.others(leader)[0];
  AppendReply reply;
  reply.request_term = reply.term = group.core(leader).term();
  reply.promised = true;
  reply.round = Round(1);
  reply.bound = lease::Epoch{Incarnation(2), 0};
  group.step(other, leader, reply);
  const NodeId id(static_cast<std::uint64_t>(other));
  EXPECT_FALSE(group.core(leader).progress().at(id).bound.has_value());
}

TEST(Shared, AMoreCarefulNumberShortensWhatBeatsAreWorth) {
  SharedGroup group;
  const int leader = group.bound_leader();
  GroupSettings settings;
  settings.timing = exact();
  settings.timing.max_clock_drift_ppm = 100'000;
  group.beat(leader);
  ASSERT_EQ(group.core(leader).lease_end(), group.now().holder + kD);
  group.silence();
  ASSERT_TRUE(std::holds_alternative<LogId>(group.change_settings(leader, settings)));
  group.jump(ms(1));
  group.beat(leader);
  EXPECT_EQ(group.core(leader).lease_end(), group.now().holder + settings.timing.usable(kD));
}

// Which numbers it has lived under is not known.
TEST(Shared, NoLeaseRestsOnABeatFromBeforeTheNumbersChanged) {
  SharedGroup group;
  const int leader = group.bound_leader();
  group.silence();
  group.beats(leader, 2 * kD);
  GroupSettings settings;
  settings.timing = exact();
  settings.timing.margin = ms(5);
  const int member = group.others(leader)[0];
  Processes& processes = group.processes();
  processes.begin_beat(leader);
  processes.hear(member, processes.beat_to(leader, member));
  const auto answer = processes.reply(member, leader);
  ASSERT_TRUE(std::holds_alternative<LogId>(group.change_settings(leader, settings)));
  processes.acknowledge(leader, *answer);
  EXPECT_LE(group.core(leader).lease_end(), group.now().holder);
  group.jump(ms(1));
  group.beat(leader);
  EXPECT_EQ(group.core(leader).lease_end(), group.now().holder + kD - ms(5));
}

TEST(Shared, NoLeaseRestsOnABeatFromBeforeTheElection) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int next = group.others(leader)[0];
  group.jump(ms(10));
  group.beat(next, {}, 10 * kD);
  ASSERT_FALSE(group.core(leader).transfer(group.now(), NodeId(static_cast<std::uint64_t>(next))));
  group.drain(leader);
  group.settle();
  ASSERT_EQ(group.core(next).role(), Role::leader);
  // All are bound by now, and the beat is the newest that they have acknowledged.
  group.run(ms(100));
  ASSERT_TRUE(group.core(next).progress().begin()->second.bound.has_value());
  EXPECT_LE(group.core(next).lease_end(), group.now().holder + kD);
  group.beat(next, {}, 10 * kD);
  EXPECT_EQ(group.core(next).lease_end(), group.now().holder + 10 * kD);
}

// As long as nothing else happens to it, a group of many gets no input for each acknowledged beat.
TEST(Shared, AnIdleLeaderIsNotDeposedByALateInput) {
  SharedGroup group;
  const int leader = group.bound_leader();
  group.silence();
  group.jump(3 * kD);
  Processes& processes = group.processes();
  processes.begin_beat(leader);
  for (const int other : group.others(leader)) {
    processes.hear(other, processes.beat_to(leader, other));
    group.host(leader).promises().reply(group.now(), group.peer_of(other),
                                        processes.reply(other, leader)->message);
  }
  group.tick(leader);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
}

TEST(Shared, ALeaderThatCommitsNothingStepsDownThoughItsBeatsAreHeard) {
  SharedGroup group;
  const int leader = group.bound_leader();
  group.silence();
  group.beats(leader, 3 * kD);
  ASSERT_EQ(group.core(leader).role(), Role::leader) << "it has nothing to commit";
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  group.beats(leader, kD / 2);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  group.beats(leader, kD);
  EXPECT_NE(group.core(leader).role(), Role::leader);
  // Its members have been released, so another one may be elected.
  group.beats(leader, exact().heartbeat);
  EXPECT_TRUE(group.votes(group.others(leader)[0], group.others(leader)[1], 9));
}

TEST(Shared, ABeatThatBringsTheLeaseBackAnswersTheReadsThatWait) {
  lease::Timing timing = exact();
  timing.margin = ms(20);
  SharedGroup group(3, timing);
  const int leader = group.bound_leader();
  group.beats(leader, kD);
  group.silence();
  // The lease is over, and the leader waits for a quorum a little longer.
  group.jump(kD - ms(10));
  group.core(leader).read_index(group.now(), 77, ReadMode::lease);
  group.drain(leader);
  ASSERT_TRUE(group.replica(leader).reads.empty());
  group.beat(leader);
  ASSERT_EQ(group.replica(leader).reads.size(), 1U);
  EXPECT_EQ(group.replica(leader).reads[0].basis, ReadBasis::lease);
}

TEST(Shared, ALeaderThatLeavesReleasesThoseThatItHasAsked) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const Term term = group.core(leader).term();
  group.silence();
  group.jump(2 * kD);
  group.tick(leader);
  ASSERT_EQ(group.core(leader).role(), Role::follower);
  ASSERT_EQ(group.replica(leader).releases.size(), 1U);
  const Release& release = group.replica(leader).releases[0];
  EXPECT_EQ(release.term, term);
  EXPECT_EQ(release.members.size(), 2U);
  EXPECT_EQ(group.replica(leader).view.end, HolderInstant::earliest());
}

/// A host that notes the order of what it has to do.
struct Recorder {
  std::string done;

  void publish(const LeaseState&) { done += "publish "; }
  void release(const Release&) { done += "release "; }
  void send(NodeId, const Message&) { done += "send "; }
  void write(PersistBatch&, const std::vector<AppendIntent>&) {}
  void hold(const HeldMessage&) {}
  void send_snapshot(const SnapshotIntent&) {}
  void store_chunk(const ReceivedChunk&) {}
  void install(const SnapshotId&) {}
  void apply_to(Index) {}
  void committed(Index) {}
  void answer(const ReadAnswer&) {}
  void tell(const Event&) {}
};

TEST(CarryOut, PublishesTheLossBeforeItReleasesTheMembers) {
  Ready ready;
  ready.lease = LeaseState{};
  ready.release = Release{Term(3), {NodeId(2)}};
  ready.messages.push_back({NodeId(2), AppendReply{}});
  Recorder recorder;
  carry_out(ready, recorder);
  EXPECT_EQ(recorder.done, "publish release send ");
}

TEST(Shared, ALeaderThatHasAskedNobodyReleasesNobody) {
  SharedGroup group;
  const int leader = group.elect();
  group.jump(2 * kD);
  group.tick(leader);
  ASSERT_EQ(group.core(leader).role(), Role::follower);
  EXPECT_TRUE(group.replica(leader).releases.empty());
}

// ---- The member ----

TEST(Shared, ABoundPromiseLivesAsLongAsTheSupport) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const int candidate = group.others(leader)[1];
  group.silence();
  group.beats(leader, 5 * kD);
  EXPECT_FALSE(group.votes(member, candidate, 9));
  EXPECT_GT(group.core(member).next_deadline(), group.now().promise);
  group.jump(kD);
  EXPECT_TRUE(group.votes(member, candidate, 9));
}

TEST(Shared, AMemberThatVotesLetsGoFirst) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const lease::Epoch before = group.support(member, leader).epoch();
  group.silence();
  group.jump(kD);
  ASSERT_TRUE(group.votes(member, group.others(leader)[1], 9));
  EXPECT_GT(group.support(member, leader).epoch(), before);
}

TEST(Shared, AMemberThatCampaignsLetsGoFirst) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const lease::Epoch before = group.support(member, leader).epoch();
  group.isolate(leader);
  group.jump(3 * kD);
  group.tick(member);
  group.settle();
  ASSERT_EQ(group.core(member).role(), Role::leader);
  EXPECT_GT(group.support(member, leader).epoch(), before);
}

TEST(Shared, ACampaignByTokenBehindTheEndOfThePromiseLetsGoFirst) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const lease::Epoch before = group.support(member, leader).epoch();
  group.jump(kD);
  const LogId last = group.core(leader).log().last();
  group.step(leader, member, TimeoutNow{{last.term, group.peer_of(member).id, last.index}});
  ASSERT_EQ(group.core(member).role(), Role::candidate);
  EXPECT_GT(group.support(member, leader).epoch(), before);
}

TEST(Shared, AnAnswerToAPreVoteLetsNothingGo) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const lease::Epoch before = group.support(member, leader).epoch();
  group.silence();
  group.jump(kD);
  group.step(group.others(leader)[1], member,
             PreVoteRequest{Term(9), group.core(leader).log().last()});
  EXPECT_EQ(group.support(member, leader).epoch(), before);
}

TEST(Shared, ALaterLeadersPromiseIsNotBoundByTheEarlierOnes) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int next = group.others(leader)[0];
  const int member = group.others(leader)[1];
  group.silence();
  group.beat(next);
  AppendRequest append;
  append.term = Term(8);
  append.prev = group.core(leader).log().last();
  append.round = Round(1);
  append.lease = kD;
  group.step(next, member, append);
  ASSERT_EQ(group.core(member).leader(), NodeId(static_cast<std::uint64_t>(next)));
  for (int i = 0; i < 20; ++i) {
    group.jump(kD / 10);
    group.beat(leader);
    group.beat(next);
  }
  EXPECT_TRUE(group.votes(member, leader, 9));
}

// The transfer may fail, and then the earlier leader counts on this promise again.
TEST(Shared, AVoteByTokenLeavesThePromiseBound) {
  SharedGroup group(5);
  const int leader = group.bound_leader();
  const int target = group.others(leader)[0];
  const int member = group.others(leader)[1];
  const LogId last = group.core(leader).log().last();
  const Term term = group.core(leader).term();
  const lease::Epoch before = group.support(member, leader).epoch();
  group.silence();
  const NodeId to(static_cast<std::uint64_t>(target));
  group.step(target, member, VoteRequest{term.next(), last, TransferToken{term, to, last.index}});
  ASSERT_EQ(group.core(member).hard_state().voted_for, to);
  EXPECT_EQ(group.support(member, leader).epoch(), before);
  group.beats(leader, 2 * kD);
  EXPECT_FALSE(group.votes(member, group.others(leader)[2], term.value() + 2));
}

// Another group has relied on the end, and this one may be led on.
TEST(Shared, AFollowerWaitsForAnElectionTimeoutBehindAnEpochThatIsOver) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  group.silence();
  group.beats(leader, 20 * kD);
  group.jump(kD);
  group.rely(member, leader);
  EXPECT_GE(group.core(member).next_deadline(), group.now().promise + exact().election_timeout);
}

TEST(Shared, ANewcomerIsReleasedToo) {
  SharedGroup group;
  const int leader = group.bound_leader();
  group.add(4);
  Host host({NodeId(4), Uuid{4, 4}, {Incarnation(2), 0}}, exact(), group.now());
  host.share_with({group.peer_of(leader)});
  group.replica(4).options.shared = &host.promises();
  group.restart(4);
  const Processes::Beat beat = group.processes().beat_to(leader, group.others(leader)[0]);
  host.promises().beat(group.now(), beat.from, beat.message);
  AppendRequest append;
  append.term = group.core(leader).term();
  append.prev = group.core(leader).log().last();
  append.round = Round(1);
  append.lease = kD;
  append.bind = BindRequest{lease::Beat(9), host.promises().support_of(beat.from.uuid)->epoch()};
  group.silence();
  group.step(leader, 4, append);
  group.core(4).released(group.now(), group.peer_of(leader), append.term);
  EXPECT_TRUE(group.core(4).promise().live(group.now().promise));
  // Its own promise runs out, whatever its process supports.
  group.jump(kD);
  host.promises().beat(group.now(), beat.from, beat.message);
  EXPECT_TRUE(group.votes(4, group.others(leader)[0], 9));
}

// Nothing that a peer sends reaches an assertion, and no other directory takes the binding over.
TEST(Shared, ABindingStaysWithItsDirectory) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  AppendRequest append;
  append.term = group.core(leader).term();
  append.prev = group.core(leader).log().last();
  append.round = Round(1);
  append.lease = kD;
  Peer another = group.peer_of(leader);
  another.uuid = Uuid{99, 99};
  group.silence();
  group.step(another, member, append);
  group.beats(leader, 3 * kD);
  EXPECT_FALSE(group.votes(member, group.others(leader)[1], 9));
  group.jump(kD);
  EXPECT_TRUE(group.votes(member, group.others(leader)[1], 9));
}

TEST(Shared, AReleaseEndsThePromiseOfItsTermAndNoLaterOne) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const Term term = group.core(leader).term();
  group.silence();
  group.core(member).released(group.now(), group.peer_of(leader), Term(term.value() - 1));
  EXPECT_FALSE(group.votes(member, group.others(leader)[1], 9));
  Peer earlier = group.peer_of(leader);
  earlier.process.incarnation = Incarnation(1);
  group.core(member).released(group.now(), earlier, term);
  EXPECT_FALSE(group.votes(member, group.others(leader)[1], 9));
  group.core(member).released(group.now(), group.peer_of(leader), term);
  group.drain(member);
  EXPECT_EQ(group.core(member).leader(), kNobody);
  EXPECT_TRUE(group.votes(member, group.others(leader)[1], 9));
}

TEST(Shared, ABindFromBeforeTheReleaseIsRefused) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  AppendRequest late;
  late.term = group.core(leader).term();
  late.prev = group.core(leader).log().last();
  late.round = Round(1);
  late.lease = kD;
  late.bind = BindRequest{group.host(leader).promises().beats().newest(),
                          group.support(member, leader).epoch()};
  group.silence();
  Processes::Beat beat = group.processes().beat_to(leader, member);
  beat.message.released = {{group.id(), late.term, lease::Beat(99)}};
  group.processes().hear(member, beat);
  group.in_flight().clear();
  group.step(leader, member, late);
  const auto& reply = std::get<AppendReply>(group.in_flight().back().message);
  EXPECT_TRUE(reply.promised);
  EXPECT_FALSE(reply.bound.has_value());
  // It promises by itself, and no longer.
  group.beats(leader, 2 * kD);
  EXPECT_TRUE(group.votes(member, group.others(leader)[1], 9));
}

TEST(Shared, ARestartedMemberPromisesWhatItsProcessMayHavePromised) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  group.beat(leader, {}, 10 * kD);
  group.silence();
  group.restart_process(member);
  group.jump(9 * kD);
  EXPECT_FALSE(group.votes(member, group.others(leader)[1], 9));
  group.jump(kD);
  EXPECT_TRUE(group.votes(member, group.others(leader)[1], 9));
}

TEST(Shared, TheEndOfTheHoldersProcessEndsWhatIsBound) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  group.silence();
  group.processes().ended(member, group.peer_of(leader));
  EXPECT_TRUE(group.votes(member, group.others(leader)[1], 9));
}

}  // namespace
}  // namespace leasehold::raft::test
