#include <leasehold/raft/process_promises.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

namespace leasehold::raft::test {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Duration kD = milliseconds(1000);
constexpr Duration kBeat = milliseconds(100);

Peer peer_of(std::uint64_t id, std::uint64_t incarnation = 1) {
  return {NodeId(id), Uuid{id, id}, {Incarnation(incarnation), 0}};
}

lease::Timing timing(Duration lease = kD) {
  lease::Timing timing;
  timing.lease = lease;
  timing.heartbeat = kBeat;
  timing.max_clock_drift_ppm = 0;
  timing.margin = Duration(0);
  return timing;
}

Now at(Duration since) {
  Now now;
  now.holder = now.holder + since;
  now.promise = now.promise + since;
  return now;
}

/// The process of node 1, which shares groups with nodes 2 and 3.
ProcessPromises node_1(const std::vector<RememberedSupport>& remembered = {},
                       const lease::Timing& numbers = timing()) {
  ProcessPromises promises({peer_of(1), numbers, 10 * kD}, remembered, at(Duration(0)));
  promises.set_peers({peer_of(2), peer_of(3)});
  return promises;
}

ProcessReady taken(ProcessPromises& promises) {
  ProcessReady ready;
  promises.take_ready(ready);
  return ready;
}

ProcessReady after_tick(ProcessPromises& promises, Duration since) {
  promises.tick(at(since));
  return taken(promises);
}

/// The groups that the newest beat to `to` releases.
std::vector<ReleasedGroup> told(const ProcessReady& ready, std::uint64_t to) {
  for (const ProcessReady::Beat& beat : ready.beats) {
    if (beat.to == NodeId(to)) return beat.message.released;
  }
  ADD_FAILURE() << "no beat to " << to;
  return {};
}

ProcessReady after_last_beats(ProcessPromises& promises, Duration since) {
  promises.last_beats(at(since));
  return taken(promises);
}

/// Writes what waits; whether a reply to that beat leaves then.
bool durable(ProcessPromises& promises, std::uint64_t number) {
  ProcessReady ready = taken(promises);
  if (ready.write > 0) {
    promises.persisted(ready.write);
    const ProcessReady more = taken(promises);
    ready.replies.insert(ready.replies.end(), more.replies.begin(), more.replies.end());
  }
  return std::any_of(ready.replies.begin(), ready.replies.end(), [number](const auto& reply) {
    return reply.message.beat == lease::Beat(number);
  });
}

ProcessBeat beat(std::uint64_t number, Duration lease = kD) {
  ProcessBeat beat;
  beat.beat = lease::Beat(number);
  beat.lease = lease;
  return beat;
}

ProcessBeatReply reply(std::uint64_t number, std::uint64_t counter = 0) {
  return {Incarnation(1), lease::Beat(number), {Incarnation(5), counter}};
}

TEST(ProcessPromises, ABeatGoesToEachPeerInEachHeartbeat) {
  ProcessPromises promises = node_1();
  const ProcessReady first = after_tick(promises, Duration(0));
  ASSERT_THAT(first.beats, SizeIs(2));
  EXPECT_EQ(first.beats[0].to, NodeId(2));
  EXPECT_EQ(first.beats[1].to, NodeId(3));
  EXPECT_EQ(first.beats[1].message, beat(1));
  EXPECT_EQ(promises.next_deadline(), at(kBeat).promise);
  EXPECT_THAT(after_tick(promises, kBeat - Duration(1)).beats, IsEmpty());
  EXPECT_EQ(after_tick(promises, kBeat).beats.at(0).message.beat, lease::Beat(2));
}

TEST(ProcessPromises, NobodyGetsABeatOfAProcessThatSharesNothing) {
  ProcessPromises promises = node_1();
  promises.set_peers({});
  EXPECT_EQ(promises.next_deadline(), PromiseInstant::never());
  EXPECT_THAT(after_tick(promises, kD).beats, IsEmpty());
}

TEST(ProcessPromises, AProcessThatStandsStillBeginsNoBeat) {
  ProcessPromises promises = node_1();
  promises.set_healthy(false);
  EXPECT_EQ(promises.next_deadline(), PromiseInstant::never());
  EXPECT_THAT(after_tick(promises, kD).beats, IsEmpty());
  promises.set_healthy(true);
  EXPECT_THAT(after_tick(promises, kD).beats, SizeIs(2));
}

TEST(ProcessPromises, ABeatOfOtherNumbersIsDueAtOnce) {
  ProcessPromises promises = node_1();
  after_tick(promises, Duration(0));
  promises.set_timing(timing(3 * kD));
  EXPECT_EQ(after_tick(promises, Duration(1)).beats.at(0).message.lease, 3 * kD);
}

TEST(ProcessPromises, AReplyWaitsUntilItsDIsDurable) {
  ProcessPromises promises = node_1();
  promises.beat(at(Duration(0)), peer_of(2), beat(1));
  const ProcessReady first = taken(promises);
  EXPECT_THAT(first.remember, ElementsAre(RememberedSupport{NodeId(2), Uuid{2, 2}, kD}));
  EXPECT_THAT(first.replies, IsEmpty());
  // So does that to the next beat, which asks for nothing more.
  promises.beat(at(kBeat), peer_of(2), beat(2));
  const ProcessReady second = taken(promises);
  EXPECT_THAT(second.remember, IsEmpty());
  EXPECT_THAT(second.replies, IsEmpty());
  // Nobody else waits for that disk.
  promises.beat(at(kBeat), peer_of(3), beat(1));
  const ProcessReady other = taken(promises);
  EXPECT_THAT(other.remember, SizeIs(1));
  promises.persisted(first.write);
  const ProcessReady third = taken(promises);
  ASSERT_THAT(third.replies, SizeIs(1)) << "the newest says it all";
  EXPECT_EQ(third.replies[0].to, NodeId(2));
  EXPECT_EQ(third.replies[0].message,
            (ProcessBeatReply{Incarnation(1), lease::Beat(2), {Incarnation(1), 0}}));
  // From now on nothing has to be written.
  promises.beat(at(2 * kBeat), peer_of(2), beat(3));
  EXPECT_THAT(taken(promises).replies, SizeIs(1));
}

TEST(ProcessPromises, WhatIsRememberedTwiceBeforeItIsTakenIsWrittenOnce) {
  ProcessPromises promises = node_1();
  promises.beat(at(Duration(0)), peer_of(2), beat(1));
  promises.beat(at(Duration(0)), peer_of(2), beat(2, 2 * kD));
  const ProcessReady ready = taken(promises);
  EXPECT_THAT(ready.remember, ElementsAre(RememberedSupport{NodeId(2), Uuid{2, 2}, 2 * kD}));
  promises.persisted(ready.write);
  EXPECT_THAT(taken(promises).replies, SizeIs(1));
}

TEST(ProcessPromises, APromiseLastsForTheLongerDWithinABound) {
  ProcessPromises promises = node_1();
  promises.beat(at(Duration(0)), peer_of(2), beat(1, milliseconds(5)));
  EXPECT_EQ(promises.support_of(Uuid{2, 2})->until(), at(kD).promise);
  promises.beat(at(Duration(0)), peer_of(2), beat(2, 3 * kD));
  EXPECT_EQ(promises.support_of(Uuid{2, 2})->until(), at(3 * kD).promise);
  EXPECT_TRUE(durable(promises, 2));
  // Not all of this: it renews, and is not answered, since the holder would count on it.
  promises.beat(at(Duration(0)), peer_of(2), beat(3, 1000 * kD));
  EXPECT_EQ(promises.support_of(Uuid{2, 2})->until(), at(10 * kD).promise);
  EXPECT_FALSE(durable(promises, 3));
}

TEST(ProcessPromises, AClockThatMayBeFasterThanTheHolderAllowsPromisesForLonger) {
  lease::Timing numbers = timing(milliseconds(500));
  numbers.max_clock_drift_ppm = 100'000;
  ProcessPromises promises = node_1({}, numbers);
  promises.beat(at(Duration(0)), peer_of(2), beat(1));
  EXPECT_GT(promises.support_of(Uuid{2, 2})->until(), at(kD).promise);
}

TEST(ProcessPromises, ARestartedNodeSupportsForWhatItRemembers) {
  lease::Timing numbers = timing(milliseconds(500));
  numbers.max_clock_drift_ppm = 100'000;
  const ProcessPromises promises =
      node_1({{NodeId(2), Uuid{2, 2}, kD}, {NodeId(2), Uuid{7, 7}, 3 * kD}}, numbers);
  EXPECT_TRUE(promises.support_of(Uuid{2, 2})->live(at(kD).promise)) << "by the looser clock";
  EXPECT_FALSE(promises.support_of(Uuid{2, 2})->live(at(2 * kD).promise));
  // The number may have had another directory.
  EXPECT_EQ(promises.remembered(NodeId(2)), 3 * kD);
  EXPECT_EQ(promises.remembered(NodeId(3)), Duration(0));
  EXPECT_EQ(promises.support_of(Uuid{3, 3}), nullptr);
}

TEST(ProcessPromises, AReleaseIsSaidUntilABeatThatHadItIsAcknowledged) {
  ProcessPromises promises = node_1();
  after_tick(promises, Duration(0));
  promises.reply(Now{}, peer_of(2), reply(1));
  promises.released(GroupId(7), {Term(4), {NodeId(2)}});
  promises.reply(Now{}, peer_of(2), reply(1));
  const std::vector<ReleasedGroup> release = {{GroupId(7), Term(4), lease::Beat(2)}};
  const ProcessReady second = after_tick(promises, kBeat);
  EXPECT_EQ(told(second, 2), release);
  EXPECT_THAT(told(second, 3), IsEmpty());
  // An answer to a beat from before says nothing.
  promises.reply(Now{}, peer_of(2), reply(1));
  EXPECT_EQ(told(after_tick(promises, 2 * kBeat), 2), release);
  promises.reply(Now{}, peer_of(2), reply(2));
  EXPECT_THAT(told(after_tick(promises, 3 * kBeat), 2), IsEmpty());
}

TEST(ProcessPromises, AMemberAtAnotherEpochHasLetGoByItself) {
  ProcessPromises promises = node_1();
  after_tick(promises, Duration(0));
  promises.reply(Now{}, peer_of(2), reply(1));
  promises.released(GroupId(7), {Term(4), {NodeId(2)}});
  after_tick(promises, kBeat);
  promises.reply(Now{}, peer_of(2), reply(1, 1));
  EXPECT_THAT(told(after_tick(promises, 2 * kBeat), 2), IsEmpty());
}

TEST(ProcessPromises, ALaterTermSaysWhatAnEarlierOneDid) {
  ProcessPromises promises = node_1();
  promises.released(GroupId(7), {Term(4), {NodeId(2), NodeId(3)}});
  promises.released(GroupId(7), {Term(6), {NodeId(2)}});
  promises.released(GroupId(8), {Term(1), {NodeId(2)}});
  const ProcessReady ready = after_tick(promises, Duration(0));
  EXPECT_THAT(told(ready, 2), ElementsAre(ReleasedGroup{GroupId(7), Term(6), lease::Beat(1)},
                                          ReleasedGroup{GroupId(8), Term(1), lease::Beat(1)}));
  EXPECT_THAT(told(ready, 3), ElementsAre(ReleasedGroup{GroupId(7), Term(4), lease::Beat(1)}));
}

TEST(ProcessPromises, ABeatSaysNoMoreThanFitsAndTheRestFollows) {
  ProcessPromises promises = node_1();
  for (std::uint64_t group = 1500; group >= 1; --group) {
    promises.released(GroupId(group), {Term(1), {NodeId(2)}});
  }
  const std::vector<ReleasedGroup> first = told(after_tick(promises, Duration(0)), 2);
  ASSERT_THAT(first, SizeIs(1024));
  EXPECT_EQ(first[0].group, GroupId(477)) << "the oldest first, and ascending";
  promises.reply(Now{}, peer_of(2), reply(1));
  const std::vector<ReleasedGroup> rest = told(after_tick(promises, kBeat), 2);
  ASSERT_THAT(rest, SizeIs(476));
  EXPECT_EQ(rest[0], (ReleasedGroup{GroupId(1), Term(1), lease::Beat(2)}));
}

TEST(ProcessPromises, OneThatSharesNoGroupAnyMoreLearnsOfTheLastRelease) {
  ProcessPromises promises = node_1();
  promises.released(GroupId(7), {Term(4), {NodeId(2)}});
  promises.set_peers({});
  EXPECT_THAT(told(after_tick(promises, Duration(0)), 2), SizeIs(1));
  promises.reply(Now{}, peer_of(2), reply(1));
  EXPECT_THAT(after_tick(promises, kBeat).beats, IsEmpty());
}

TEST(ProcessPromises, TheLastBeatsSayAllReleasesAtOnce) {
  ProcessPromises promises = node_1();
  after_tick(promises, Duration(0));
  EXPECT_THAT(after_last_beats(promises, Duration(1)).beats, IsEmpty()) << "there is none to say";
  for (std::uint64_t group = 1; group <= 1500; ++group) {
    promises.released(GroupId(group), {Term(1), {NodeId(2)}});
  }
  std::set<GroupId> said;
  for (const ProcessReady::Beat& beat : after_last_beats(promises, Duration(2)).beats) {
    if (beat.to != NodeId(2)) continue;
    for (const ReleasedGroup& released : beat.message.released) said.insert(released.group);
  }
  EXPECT_THAT(said, SizeIs(1500));
}

TEST(ProcessPromises, AReleaseReachesTheGroupAndRefusesEarlierBinds) {
  ProcessPromises promises = node_1();
  ProcessBeat message = beat(3);
  message.released = {{GroupId(7), Term(4), lease::Beat(2)}};
  promises.beat(at(Duration(0)), peer_of(2), message);
  const ProcessReady ready = taken(promises);
  ASSERT_THAT(ready.released, SizeIs(1));
  EXPECT_EQ(ready.released[0].group, GroupId(7));
  EXPECT_EQ(ready.released[0].holder, peer_of(2));
  EXPECT_EQ(ready.released[0].term, Term(4));
  const lease::Support& support = *promises.support_of(Uuid{2, 2});
  EXPECT_FALSE(support.accepts({peer_of(2).process, lease::Beat(1), support.epoch()}));
  EXPECT_TRUE(support.accepts({peer_of(2).process, lease::Beat(2), support.epoch()}));
}

TEST(ProcessPromises, ABeatOfAnEarlierProcessMovesNothing) {
  ProcessPromises promises = node_1();
  promises.beat(at(Duration(0)), peer_of(2, 8), beat(1));
  taken(promises);
  ProcessBeat late = beat(9, 2 * kD);
  late.released = {{GroupId(7), Term(4), lease::Beat(2)}};
  promises.beat(at(Duration(0)), peer_of(2, 7), late);
  const ProcessReady ready = taken(promises);
  EXPECT_THAT(ready.remember, IsEmpty());
  EXPECT_THAT(ready.released, IsEmpty());
  EXPECT_EQ(promises.support_of(Uuid{2, 2})->until(), at(kD).promise);
}

TEST(ProcessPromises, OnlyAnswersToBeatsOfThisProcessCount) {
  ProcessPromises promises = node_1();
  after_tick(promises, Duration(0));
  ProcessBeatReply earlier = reply(1);
  earlier.incarnation = Incarnation(0);
  promises.reply(Now{}, peer_of(2), earlier);
  promises.reply(Now{}, peer_of(2), reply(2));
  EXPECT_FALSE(taken(promises).acknowledged);
  EXPECT_EQ(promises.supporter(Uuid{2, 2}), nullptr);
  promises.reply(Now{}, peer_of(2), reply(1));
  EXPECT_TRUE(taken(promises).acknowledged);
  EXPECT_TRUE(promises.supporter(Uuid{2, 2})->acknowledged({Incarnation(5), 0}).has_value());
  promises.reply(Now{}, peer_of(2), reply(1));
  EXPECT_FALSE(taken(promises).acknowledged) << "nothing has changed";
}

TEST(ProcessPromises, AStrangerMovesNothing) {
  ProcessPromises promises = node_1();
  after_tick(promises, Duration(0));
  promises.beat(at(Duration(0)), peer_of(4), beat(1));
  Peer impostor = peer_of(4, 99);
  impostor.uuid = Uuid{2, 2};
  promises.beat(at(Duration(0)), peer_of(2), beat(1));
  const lease::Epoch before = promises.support_of(Uuid{2, 2})->epoch();
  promises.beat(at(Duration(0)), impostor, beat(1));
  promises.reply(Now{}, impostor, reply(1));
  promises.ended(at(Duration(0)), impostor);
  EXPECT_EQ(promises.support_of(Uuid{4, 4}), nullptr);
  EXPECT_EQ(promises.support_of(Uuid{2, 2})->epoch(), before);
  EXPECT_EQ(promises.supporter(Uuid{2, 2}), nullptr);
  // Once it has left the group, neither.
  promises.set_peers({peer_of(3)});
  promises.beat(at(kD / 2), peer_of(2), beat(2));
  EXPECT_EQ(promises.support_of(Uuid{2, 2})->until(), at(kD).promise);
}

TEST(ProcessPromises, TheEndOfAProcessEndsTheSupport) {
  ProcessPromises promises = node_1();
  promises.beat(at(Duration(0)), peer_of(2), beat(1));
  const lease::Epoch before = promises.support_of(Uuid{2, 2})->epoch();
  promises.ended(at(Duration(0)), peer_of(2));
  EXPECT_GT(promises.support_of(Uuid{2, 2})->epoch(), before);
  promises.ended(at(Duration(0)), peer_of(3));  // it was never supported
}

TEST(ProcessPromises, APeerThatStaysKeepsWhatItHasToLearn) {
  ProcessPromises promises = node_1();
  promises.released(GroupId(7), {Term(4), {NodeId(2), NodeId(3)}});
  Peer wiped = peer_of(3);
  wiped.uuid = Uuid{9, 9};
  promises.set_peers({peer_of(2), wiped});
  const ProcessReady ready = after_tick(promises, Duration(0));
  EXPECT_THAT(ready.beats, SizeIs(2)) << "none for the directory that is gone";
  EXPECT_THAT(told(ready, 2), SizeIs(1));
  EXPECT_THAT(told(ready, 3), IsEmpty());
}

}  // namespace
}  // namespace leasehold::raft::test
