// What the exploration promises of itself: bounds that hold, states that are counted once, and a
// violation that no shorter schedule has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/explore/codec.h>
#include <leasehold/explore/search.h>
#include <leasehold/tests/explore/walk.h>

#include <algorithm>
#include <string>
#include <vector>

namespace leasehold::explore {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

Bounds true_clocks(std::uint8_t time) {
  Bounds bounds = led();
  bounds.time = time;
  bounds.drift = false;
  return bounds;
}

Bounds bad_clocks() {
  Bounds bounds = led();
  bounds.drift_percent = 50;
  return bounds;
}

TEST(Bounds, NoRunHasMoreOfAnythingThanItMay) {
  Bounds bounds = true_clocks(3);
  bounds.restarts = 2;
  bounds.duplicates = 1;
  bounds.proposals = 2;
  bounds.reads = 1;
  bounds.transfers = 1;
  bounds.changes = 1;
  bounds.suspends = 2;
  bounds.wipes = 1;
  bounds.cuts = 1;
  bounds.settings = 2;
  bounds.notices = 2;
  bounds.slow_disk = true;
  const std::vector<std::pair<StepKind, int>> most = {
      {StepKind::rates, 0},     {StepKind::advance, 3}, {StepKind::restart, 2},
      {StepKind::duplicate, 1}, {StepKind::propose, 2}, {StepKind::read, 1},
      {StepKind::transfer, 1},  {StepKind::change, 1},  {StepKind::suspend, 2},
      {StepKind::wipe, 1},      {StepKind::cut, 1},     {StepKind::settings, 2},
      {StepKind::notice, 2}};
  std::vector<int> seen(most.size());
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    World world(bounds);
    std::vector<int> taken(most.size());
    for (int k = 0; k < 40; ++k) {
      const std::vector<Step> steps = world.steps();
      if (steps.empty() || world.left()) break;
      const Step step = steps[random.below(steps.size())];
      for (std::size_t m = 0; m < most.size(); ++m) taken[m] += most[m].first == step.kind ? 1 : 0;
      world.take(step);
      ASSERT_THAT(world.violation(), IsEmpty());
    }
    for (std::size_t m = 0; m < most.size(); ++m) {
      ASSERT_LE(taken[m], most[m].second) << "step kind " << static_cast<int>(most[m].first);
      seen[m] = std::max(seen[m], taken[m]);
    }
  }
  // Each bound was reached, so that the walks could have broken it.
  for (std::size_t m = 0; m < most.size(); ++m) EXPECT_EQ(seen[m], most[m].second);
}

TEST(Bounds, AStateWithMoreOnItsWayOrALaterTermIsLeft) {
  Bounds bounds = true_clocks(2);
  bounds.flights = 1;
  World world(bounds);
  EXPECT_FALSE(world.left());
  // An append to each of the others.
  EXPECT_TRUE(after(world, {"pass", "tick 1"}).left());
  bounds.flights = 2;
  EXPECT_FALSE(after(World(bounds), {"pass", "tick 1"}).left());
  bounds.terms = 0;
  EXPECT_TRUE(World(bounds).left());
}

TEST(Search, SeesEachStateOnce) {
  const SearchReport one = search_all(true_clocks(1));
  EXPECT_TRUE(one.everything);
  EXPECT_EQ(one.news.states, 10U);
  EXPECT_EQ(one.news.depth, 7U);
  const SearchReport two = search_all(true_clocks(2));
  EXPECT_TRUE(two.everything);
  EXPECT_EQ(two.news.states, 166U);
  EXPECT_THAT(two.violation, IsEmpty());
}

TEST(Search, EndsAtItsLimits) {
  const SearchReport shallow = search_all(true_clocks(2), 3);
  EXPECT_FALSE(shallow.everything);
  EXPECT_EQ(shallow.news.depth, 3U);
  SearchLimits limits;
  limits.states_max = 10;
  const SearchReport few = search(true_clocks(2), limits, {}, {});
  EXPECT_FALSE(few.everything);
  EXPECT_EQ(few.news.states, 10U);
}

TEST(Search, FindsWhatClocksThatAreWorseThanTrustedDoAndNothingIsShorter) {
  const SearchReport report = search_all(bad_clocks());
  EXPECT_EQ(report.violation,
            "the lease of node 1 is valid, but no quorum of live promises covers it");
  ASSERT_EQ(report.path.size(), 3U);
  // Exactly the last step of the path breaks it.
  World world(bad_clocks());
  for (const Step& step : report.path) {
    EXPECT_THAT(world.violation(), IsEmpty());
    world.take(step);
  }
  EXPECT_EQ(world.violation(), report.violation);
  // And no schedule of fewer steps.
  EXPECT_THAT(search_all(bad_clocks(), 2).violation, IsEmpty());
  // With clocks within the bound, no schedule of that many steps does.
  EXPECT_THAT(search_all(led(), 3).violation, IsEmpty());
}

TEST(Clocks, OfRatesThatOnlyExchangeTheFollowersOneIsTaken) {
  const std::vector<Step> steps = World(led()).steps();
  EXPECT_EQ(steps.size(), 18U);
  for (const Step& step : steps) {
    EXPECT_EQ(step.kind, StepKind::rates);
    EXPECT_LE(step.what / 3 % 3, step.what % 3);
  }
  // Which one was taken makes a difference from then on.
  EXPECT_FALSE(after(World(led()), {"rates true true true"}).fingerprint() ==
               after(World(led()), {"rates true true fast"}).fingerprint());
}

TEST(Clocks, APromiseStandsStillWhileTheMachineSleepsAndALeaseDoesNot) {
  Bounds bounds = true_clocks(6);
  bounds.suspends = 2;
  const World world(bounds);
  const World asleep = after(world, {"suspend 1", "suspend 2"});
  EXPECT_FALSE(offers(asleep, "tick 1"));
  EXPECT_FALSE(offers(asleep, "suspend 1"));
  const World awake = after(asleep, {"pass", "pass", "pass", "wake 1", "wake 2"});
  EXPECT_THAT(awake.violation(), IsEmpty());
  EXPECT_TRUE(offers(awake, "tick 3"));
  EXPECT_FALSE(offers(awake, "tick 2"));  // bound for as long as before it slept
  EXPECT_TRUE(offers(after(awake, {"pass", "pass", "pass"}), "tick 2"));
  // What is sent to a machine that sleeps waits.
  const World waits = after(world, {"pass", "tick 1", "suspend 2"});
  EXPECT_FALSE(offers(waits, "hear 2<1 append"));
  EXPECT_TRUE(offers(after(waits, {"wake 2"}), "hear 2<1 append"));
}

TEST(Fingerprint, OfWhatIsOnItsWayIsThatOfASet) {
  Bounds bounds = true_clocks(1);
  bounds.restarts = 2;
  const World world = after(World(bounds), {"pass", "tick 1"});
  // The answers are on their way in another order.
  const World forth = after(world, {"hear 2<1 append", "hear 3<1 append"});
  const World back = after(world, {"hear 3<1 append", "hear 2<1 append"});
  EXPECT_TRUE(forth.fingerprint() == back.fingerprint());
  EXPECT_FALSE(forth.fingerprint() == world.fingerprint());
  // What happens at two nodes may happen in either order.
  EXPECT_TRUE(after(world, {"restart 2", "restart 3"}).fingerprint() ==
              after(world, {"restart 3", "restart 2"}).fingerprint());
  EXPECT_FALSE(after(world, {"restart 2"}).fingerprint() ==
               after(world, {"restart 3"}).fingerprint());
}

TEST(Fingerprint, DoesNotDependOnWhenTheStateCameToBe) {
  // Every lease, promise and timer has run out, no round is of use, and no time is left.
  const World early = after(World(true_clocks(12)), std::vector<std::string>(12, "pass"));
  const World late = after(World(true_clocks(13)), std::vector<std::string>(13, "pass"));
  ASSERT_LT(early.now(), late.now());
  EXPECT_TRUE(early.fingerprint() == late.fingerprint());
  // Before that it counts how much is left of them.
  EXPECT_FALSE(after(World(true_clocks(1)), {"pass"}).fingerprint() ==
               World(true_clocks(0)).fingerprint());
}

TEST(Beginning, OneAwayLeavesTheLastNodeWithoutAPromise) {
  Bounds bounds = true_clocks(0);
  EXPECT_FALSE(offers(World(bounds), "tick 3"));
  bounds.beginning = beginning::one_away(3);
  // It may start an election at once; node 2 is bound.
  EXPECT_TRUE(offers(World(bounds), "tick 3"));
  EXPECT_FALSE(offers(World(bounds), "tick 2"));
}

TEST(Beginning, ALateAnswerIsACopyOfTheNewest) {
  Bounds bounds = true_clocks(0);
  bounds.beginning = beginning::late_answer(3);
  const World world(bounds);
  ASSERT_THAT(world.steps(), SizeIs(1));
  EXPECT_THAT(world.describe(world.steps()[0]), StartsWith("1 hears append_reply from 3: "));
  // Nothing follows from it.
  EXPECT_TRUE(after(world, {"hear 1<3 append_reply"}).fingerprint() ==
              World(true_clocks(0)).fingerprint());
}

TEST(Beginning, WhoHasLedBeforeLeadsTheThirdTermAndAnAnswerOfTheFirstIsOnItsWay) {
  Bounds bounds = true_clocks(3);
  bounds.beginning = beginning::led_before(3);
  const World world(bounds);
  EXPECT_THAT(world.violation(), IsEmpty());
  const std::vector<Step> steps = world.steps();
  ASSERT_THAT(steps, SizeIs(2));  // and time may pass
  EXPECT_THAT(world.describe(steps[0]),
              AllOf(StartsWith("1 hears append_reply from 3: "), HasSubstr("term 1, round 3,")));
  // The next round has its number.
  const World round = after(world, {"pass", "tick 1"});
  EXPECT_THAT(round.describe(round.steps()[1]),
              AllOf(StartsWith("2 hears append from 1: "), HasSubstr("term 3, round 3,")));
  // The unchanged core ignores it.
  EXPECT_THAT(search_all(bounds, 6).violation, IsEmpty());
}

TEST(Beginning, GoesOnWithTheStepsOfAStory) {
  Bounds bounds = true_clocks(2);
  bounds.reads = 1;
  const std::vector<std::string> steps = {"read 1", "hear 3<1 append", "pass", "tick 1",
                                          "hear 2<1 append"};
  const World searched = after(World(bounds), steps);
  Bounds told = bounds;
  told.time = 1;
  told.reads = 0;
  for (const std::string& step : steps) told.beginning += step + " , ";
  EXPECT_THAT(World(told).wrong_beginning(), IsEmpty());
  EXPECT_TRUE(World(told).fingerprint() == searched.fingerprint());
  // The rates may be among them, and are chosen then.
  told = led();
  told.beginning += "rates slow true fast";
  EXPECT_FALSE(offers(World(told), "rates true true true"));
}

TEST(Beginning, SaysWhichStepIsNotPossible) {
  Bounds bounds = true_clocks(0);
  bounds.beginning = "pass, tick 1, tick 1";
  EXPECT_THAT(World(bounds).wrong_beginning(),
              AllOf(StartsWith("step 3, `tick 1`, is not possible then, but: hear 2<1 pre_vote, "),
                    HasSubstr("tick 2"), EndsWith(", lose")));
}

TEST(Beginning, MayLoseMessagesAndKeepThem) {
  Bounds bounds = true_clocks(0);
  bounds.beginning += "pass, tick 1, lose 2<1 append";
  EXPECT_FALSE(offers(World(bounds), "hear 2<1 append"));
  EXPECT_TRUE(offers(World(bounds), "hear 3<1 append"));
  bounds.beginning += ", keep 3<1 append, lose";
  EXPECT_TRUE(offers(World(bounds), "hear 3<1 append"));
}

TEST(Meetings, AreOneStepForAllThatArrivesInAGroup) {
  Bounds bounds = true_clocks(1);
  EXPECT_FALSE(offers(after(World(bounds), {"pass", "tick 1"}), "meet 1 2"));
  bounds.meetings = true;
  EXPECT_FALSE(offers(World(bounds), "meet 1 2"));  // nothing is on its way
  const World round = after(World(bounds), {"pass", "tick 1"});
  EXPECT_FALSE(offers(round, "meet 2 3"));
  EXPECT_TRUE(after(round, {"meet 1 2"}).fingerprint() ==
              after(round, {"hear 2<1 append", "hear 1<2 append_reply"}).fingerprint());
  EXPECT_THAT(round.describe(round.steps()[2]), StartsWith("what is on its way between 1 2 "));
}

TEST(Group, MayHaveFiveNodes) {
  Bounds bounds;
  bounds.nodes = 5;
  bounds.beginning = beginning::led(5);
  EXPECT_THAT(World(bounds).steps(), SizeIs(243));
  bounds.drift = false;
  bounds.meetings = true;
  bounds.time = 3;
  bounds.flights = 12;
  // Two of five hear nothing: the others still are a quorum.
  const World world = after(World(bounds), {"pass", "tick 1", "meet 1 2 3", "pass", "pass"});
  EXPECT_THAT(world.violation(), IsEmpty());
  EXPECT_TRUE(offers(world, "tick 5"));
  EXPECT_FALSE(offers(world, "tick 3"));
  EXPECT_THAT(search_all(bounds, 4).violation, IsEmpty());
}

TEST(Group, TakesAnotherNodeInAsALearnerThatMayVote) {
  Bounds bounds = true_clocks(2);
  bounds.members = 2;
  bounds.beginning = beginning::led(2);
  bounds.changes = 2;
  bounds.meetings = true;
  const World world(bounds);
  EXPECT_FALSE(offers(world, "change 1: all vote"));
  EXPECT_FALSE(offers(world, "tick 3"));  // a member of no group
  const World learner = after(world, {"change 1: learner 3", "meet 1 2 3", "pass", "tick 1",
                                      "meet 1 2 3", "change 1: all vote", "meet 1 3"});
  // The joint state needs both of the two that were alone before.
  EXPECT_THAT(learner.violation(), IsEmpty());
  EXPECT_THAT(after(learner, {"meet 1 2 3"}).violation(), IsEmpty());
}

TEST(Group, AWipedNodeIsAnotherDirectory) {
  Bounds bounds = true_clocks(3);
  bounds.wipes = 1;
  bounds.rules = true;
  const World world = after(World(bounds), {"wipe 3"});
  EXPECT_FALSE(offers(world, "tick 3"));  // a stranger to the group
  // It hears the leader, and what it answers does not count.
  const World answered =
      after(world, {"pass", "tick 1", "hear 3<1 append", "hear 1<3 append_reply", "pass", "pass"});
  EXPECT_THAT(answered.violation(), IsEmpty());
  // A lease that is based on the first directory's promise is not in danger.
  EXPECT_THAT(search_all(bounds, 8).violation, IsEmpty());
}

TEST(Group, WhoLacksWhatWasCutGetsASnapshot) {
  Bounds bounds = true_clocks(4);
  bounds.beginning = beginning::one_away(3);
  bounds.cuts = 1;
  bounds.rules = true;
  bounds.restarts = 1;
  bounds.meetings = true;
  bounds.proposals = 1;
  EXPECT_FALSE(offers(World(bounds), "cut 3"));  // has nothing
  const World world = after(
      World(bounds), {"pass", "tick 1", "cut 1", "hear 3<1 snapshot", "hear 1<3 snapshot_reply"});
  EXPECT_THAT(world.violation(), IsEmpty());
  // It is up to date: node 2 elects it, and it starts again with what it was given.
  const World leads = after(world, {"pass", "pass", "pass", "tick 3", "meet 2 3"});
  EXPECT_TRUE(offers(leads, "propose 3"));
  EXPECT_THAT(after(leads, {"restart 3"}).violation(), IsEmpty());
}

TEST(Group, AWitnessNeverShowsALease) {
  Bounds bounds = true_clocks(2);
  bounds.witness = true;
  bounds.rules = true;
  bounds.meetings = true;
  bounds.beginning = "pass, tick 3, meet 1 2 3";
  const SearchReport report = search_all(bounds, 5);
  EXPECT_THAT(report.violation, IsEmpty());
  EXPECT_GT(report.news.states, 20U);
}

TEST(Codec, CarriesEveryMessageAsItIs) {
  Bounds bounds = true_clocks(1);
  bounds.beginning = beginning::one_away(3);
  bounds.cuts = 1;
  bounds.reads = 1;
  bounds.changes = 1;
  bounds.transfers = 1;
  bounds.proposals = 1;
  const SearchReport plain = search_all(bounds, 5);
  bounds.codec = through_codec();
  ASSERT_TRUE(bounds.codec);
  const SearchReport carried = search_all(bounds, 5);
  EXPECT_EQ(carried.news.states, plain.news.states);
  EXPECT_THAT(carried.violation, IsEmpty());
}

TEST(Rules, NoStepOfTheRightCoreBreaksOne) {
  Bounds bounds = true_clocks(3);
  bounds.rules = true;
  bounds.transfers = 1;
  bounds.changes = 1;
  bounds.proposals = 1;
  bounds.restarts = 1;
  bounds.meetings = true;
  const SearchReport report = search_all(bounds, 5);
  EXPECT_THAT(report.violation, IsEmpty());
  EXPECT_EQ(report.news.depth, 5U);
}

TEST(Rules, AnAnswerWithoutAPromiseIsNotCounted) {
  Bounds bounds = true_clocks(3);
  bounds.unbound = true;
  bounds.rules = true;
  bounds.meetings = true;
  EXPECT_THAT(search_all(bounds, 7).violation, IsEmpty());
  // Node 3 answers, and does not count: without node 2 there is no lease.
  const World alone = after(World(bounds), {"pass", "tick 1", "meet 1 3", "pass", "pass"});
  EXPECT_THAT(alone.violation(), IsEmpty());
}

TEST(Beginning, UnevenNodesTrustInTheLongerOfTwoDurations) {
  Bounds bounds = true_clocks(2);
  bounds.uneven = true;
  const SearchReport report = search_all(bounds);
  EXPECT_TRUE(report.everything);
  EXPECT_THAT(report.violation, IsEmpty());
}

TEST(Beginning, LearnersMayBeToldToVoteAndAreNotInTheQuorumBefore) {
  Bounds bounds = true_clocks(0);
  bounds.changes = 1;
  EXPECT_FALSE(offers(World(bounds), "change 1: all vote"));
  bounds.voters = 1;
  World world(bounds);
  ASSERT_TRUE(offers(world, "change 1: all vote"));
  // Until it learns that, node 1 needs no other node: what it takes is committed at once.
  bounds.proposals = 1;
  world = after(World(bounds), {"propose 1"});
  EXPECT_THAT(world.violation(), IsEmpty());
  const SearchReport report = search_all(bounds, 6);
  EXPECT_THAT(report.violation, IsEmpty());
  EXPECT_EQ(report.news.depth, 6U);
}

TEST(Beginning, NodesThatDoNotBeginAlikeAreNotExchanged) {
  Bounds bounds = led();
  bounds.voters = 2;
  EXPECT_THAT(World(bounds).steps(), SizeIs(27));
  for (const std::string& one : {beginning::one_away(3), beginning::late_answer(3),
                                 beginning::led_before(3), beginning::led(3) + "pass"}) {
    bounds = led();
    bounds.beginning = one;
    EXPECT_THAT(World(bounds).steps(), SizeIs(27));
  }
  bounds = led();
  bounds.unbound = true;
  EXPECT_THAT(World(bounds).steps(), SizeIs(27));
}

TEST(Bounds, OnlyOnRequestAChangeLeavesTheLeaderAlone) {
  Bounds bounds = true_clocks(0);
  bounds.changes = 1;
  EXPECT_FALSE(offers(World(bounds), "change 1: alone"));
  bounds.sole = true;
  const World world = after(World(bounds), {"change 1: alone"});
  EXPECT_THAT(world.violation(), IsEmpty());
}

}  // namespace
}  // namespace leasehold::explore
