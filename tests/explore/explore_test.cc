// What the exploration promises of itself: bounds that hold, states that are counted once, and a
// violation that no shorter schedule has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/explore/explore_command.h>
#include <leasehold/explore/search.h>

#include <algorithm>
#include <string>
#include <vector>

namespace leasehold::explore {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr std::uint8_t kTrue = 13;  // the rates of three true clocks

Bounds true_clocks(std::uint8_t time) {
  Bounds bounds;
  bounds.time = time;
  bounds.drift = false;
  return bounds;
}

Bounds bad_clocks() {
  Bounds bounds;
  bounds.drift_percent = 50;
  return bounds;
}

SearchReport search_all(const Bounds& bounds, std::size_t depth_max = 64) {
  SearchLimits limits;
  limits.depth_max = depth_max;
  return search(bounds, limits, {}, {});
}

bool offers(const World& world, StepKind kind, std::size_t argument) {
  const std::vector<Step> steps = world.steps();
  return std::any_of(steps.begin(), steps.end(), [kind, argument](const Step& step) {
    return step.kind == kind && step.argument == argument;
  });
}

World after(World world, const std::vector<Step>& steps) {
  for (const Step& step : steps) world.take(step);
  return world;
}

struct CommandRun {
  int status;
  std::string out;
};

CommandRun run(const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = run_explore_command(arguments);
  testing::internal::GetCapturedStderr();
  return {status, testing::internal::GetCapturedStdout()};
}

TEST(Bounds, NoRunHasMoreOfAnythingThanItMay) {
  Bounds bounds = true_clocks(3);
  bounds.restarts = 2;
  bounds.duplicates = 1;
  bounds.proposals = 2;
  bounds.reads = 1;
  bounds.transfers = 1;
  bounds.changes = 1;
  bounds.slow_disk = true;
  const std::vector<std::pair<StepKind, int>> most = {
      {StepKind::rates, 0},     {StepKind::advance, 3}, {StepKind::restart, 2},
      {StepKind::duplicate, 1}, {StepKind::propose, 2}, {StepKind::read, 1},
      {StepKind::transfer, 1},  {StepKind::change, 1}};
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
  world.take({StepKind::advance, 0});
  world.take({StepKind::tick, 0});  // an append to each of the others
  EXPECT_TRUE(world.left());
  bounds.flights = 2;
  EXPECT_FALSE(after(World(bounds), {{StepKind::advance, 0}, {StepKind::tick, 0}}).left());
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
  // With clocks that may be trusted none of as many does.
  EXPECT_THAT(search_all(Bounds(), 3).violation, IsEmpty());
}

TEST(Clocks, OfRatesThatOnlyExchangeTheFollowersOneIsTaken) {
  const std::vector<Step> steps = World(Bounds()).steps();
  EXPECT_EQ(steps.size(), 18U);
  for (const Step& step : steps) {
    EXPECT_EQ(step.kind, StepKind::rates);
    EXPECT_LE(step.argument / 3 % 3, step.argument % 3);
  }
  // Which one was taken makes a difference from then on.
  const World chosen = after(World(Bounds()), {{StepKind::rates, kTrue}});
  EXPECT_FALSE(chosen.fingerprint() ==
               after(World(Bounds()), {{StepKind::rates, 14}}).fingerprint());
}

TEST(Fingerprint, OfWhatIsOnItsWayIsThatOfASet) {
  Bounds bounds = true_clocks(1);
  bounds.restarts = 2;
  const World world = after(World(bounds), {{StepKind::advance, 0}, {StepKind::tick, 0}});
  // Appends to 2 and to 3, heard in either order: the answers are on their way in another one.
  const World forth = after(world, {{StepKind::deliver, 0}, {StepKind::deliver, 0}});
  const World back = after(world, {{StepKind::deliver, 1}, {StepKind::deliver, 0}});
  EXPECT_TRUE(forth.fingerprint() == back.fingerprint());
  EXPECT_FALSE(forth.fingerprint() == world.fingerprint());
  // What happens at two nodes may happen in either order.
  EXPECT_TRUE(after(world, {{StepKind::restart, 1}, {StepKind::restart, 2}}).fingerprint() ==
              after(world, {{StepKind::restart, 2}, {StepKind::restart, 1}}).fingerprint());
  EXPECT_FALSE(after(world, {{StepKind::restart, 1}}).fingerprint() ==
               after(world, {{StepKind::restart, 2}}).fingerprint());
}

TEST(Fingerprint, DoesNotDependOnWhenTheStateCameToBe) {
  // Every lease, promise and timer has run out, no round is of use, and no time is left.
  const World early = after(World(true_clocks(12)), std::vector<Step>(12, {StepKind::advance, 0}));
  const World late = after(World(true_clocks(13)), std::vector<Step>(13, {StepKind::advance, 0}));
  ASSERT_LT(early.now(), late.now());
  EXPECT_TRUE(early.fingerprint() == late.fingerprint());
  // Before that it counts how much is left of them.
  EXPECT_FALSE(after(World(true_clocks(1)), {{StepKind::advance, 0}}).fingerprint() ==
               World(true_clocks(0)).fingerprint());
}

TEST(Beginning, OneAwayLeavesNode3WithoutAPromise) {
  Bounds bounds = true_clocks(0);
  EXPECT_FALSE(offers(World(bounds), StepKind::tick, 2));
  bounds.beginning = Beginning::one_away;
  // It may start an election at once; node 2 is bound.
  EXPECT_TRUE(offers(World(bounds), StepKind::tick, 2));
  EXPECT_FALSE(offers(World(bounds), StepKind::tick, 1));
}

TEST(Beginning, ALateAnswerIsACopyOfTheNewest) {
  Bounds bounds = true_clocks(0);
  EXPECT_FALSE(offers(World(bounds), StepKind::deliver, 0));
  bounds.beginning = Beginning::late_answer;
  const World world(bounds);
  ASSERT_TRUE(offers(world, StepKind::deliver, 0));
  EXPECT_FALSE(offers(world, StepKind::deliver, 1));
  EXPECT_THAT(world.describe({StepKind::deliver, 0}), StartsWith("1 hears append_reply from 3: "));
  // Nothing follows from it.
  const World heard = after(world, {{StepKind::deliver, 0}});
  EXPECT_TRUE(heard.fingerprint() == World(true_clocks(0)).fingerprint());
}

TEST(Beginning, WhoHasLedBeforeLeadsTheThirdTermAndAnAnswerOfTheFirstIsOnItsWay) {
  Bounds bounds = true_clocks(3);
  bounds.beginning = Beginning::led_before;
  const World world(bounds);
  EXPECT_THAT(world.violation(), IsEmpty());
  ASSERT_TRUE(offers(world, StepKind::deliver, 0));
  EXPECT_FALSE(offers(world, StepKind::deliver, 1));
  EXPECT_THAT(world.describe({StepKind::deliver, 0}),
              AllOf(StartsWith("1 hears append_reply from 3: "), HasSubstr("term 1, round 3,")));
  // The next round has its number.
  const World after_round = after(world, {{StepKind::advance, 0}, {StepKind::tick, 0}});
  EXPECT_THAT(after_round.describe({StepKind::deliver, 1}),
              AllOf(StartsWith("2 hears append from 1: "), HasSubstr("term 3, round 3,")));
  // The right core takes no notice of it.
  const SearchReport report = search_all(bounds, 6);
  EXPECT_THAT(report.violation, IsEmpty());
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
  EXPECT_FALSE(offers(World(bounds), StepKind::change, World::kAllVote));
  bounds.voters = 1;
  World world(bounds);
  ASSERT_TRUE(offers(world, StepKind::change, World::kAllVote));
  // Until it is told so node 1 needs nobody: what it takes is committed at once.
  bounds.proposals = 1;
  world = after(World(bounds), {{StepKind::propose, 0}});
  EXPECT_THAT(world.violation(), IsEmpty());
  const SearchReport report = search_all(bounds, 6);
  EXPECT_THAT(report.violation, IsEmpty());
  EXPECT_EQ(report.news.depth, 6U);
}

TEST(Beginning, NodesThatDoNotBeginAlikeAreNotExchanged) {
  Bounds bounds;
  bounds.voters = 2;
  EXPECT_EQ(World(bounds).steps().size(), World::kRates);
  for (const Beginning one : {Beginning::one_away, Beginning::late_answer, Beginning::led_before}) {
    bounds = Bounds();
    bounds.beginning = one;
    EXPECT_EQ(World(bounds).steps().size(), World::kRates);
  }
}

TEST(Bounds, OnlyOnRequestAChangeLeavesTheLeaderAlone) {
  Bounds bounds = true_clocks(0);
  bounds.changes = 1;
  EXPECT_FALSE(offers(World(bounds), StepKind::change, World::kSole));
  bounds.sole = true;
  ASSERT_TRUE(offers(World(bounds), StepKind::change, World::kSole));
  World world(bounds);
  EXPECT_EQ(world.describe({StepKind::change, World::kSole}), "1 is told to remove all others");
  world.take({StepKind::change, World::kSole});
  EXPECT_THAT(world.violation(), IsEmpty());
}

TEST(ExploreCommand, TellsAViolationStepByStep) {
  const CommandRun bad = run({"--drift-percent", "50", "--quiet"});
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.out, AllOf(HasSubstr("but no quorum of live promises covers it, after 3 steps"),
                             HasSubstr("\nstep 1: the clocks of 1, 2, 3 run slow, "),
                             HasSubstr("\nstep 2: 20 ms pass"), HasSubstr("\nstep 3: 20 ms pass"),
                             Not(HasSubstr("\nstep 4:")), Not(HasSubstr("depth "))));
}

TEST(ExploreCommand, SaysHowFarItCame) {
  const CommandRun all = run({"--time", "1", "--no-drift"});
  EXPECT_EQ(all.status, 0);
  EXPECT_THAT(all.out, AllOf(StartsWith("depth  1: "),
                             HasSubstr("no violation: all states within the bounds, up to")));
  const CommandRun deep = run({"--time", "2", "--no-drift", "--depth", "3", "--quiet"});
  EXPECT_EQ(deep.status, 0);
  EXPECT_THAT(deep.out, StartsWith("no violation: all states up to 3 steps"));
  EXPECT_EQ(run({"--time", "2", "--no-drift", "--states", "10"}).status, 3);
}

TEST(ExploreCommand, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(run({"--tim", "2"}).status, 2);
  EXPECT_EQ(run({"--time"}).status, 2);
  EXPECT_EQ(run({"--time", "100"}).status, 2);
  EXPECT_EQ(run({"--time", "-1"}).status, 2);
  EXPECT_EQ(run({"--states", "0"}).status, 2);
  EXPECT_EQ(run({"--voters", "0"}).status, 2);
  EXPECT_EQ(run({"--voters", "4"}).status, 2);
  EXPECT_EQ(run({"--one-away", "--late-answer"}).status, 2);
  EXPECT_EQ(run({"--led-before", "--voters", "2"}).status, 2);
  EXPECT_EQ(run({"--led-before", "--terms", "2"}).status, 2);
  EXPECT_EQ(run({"--uneven", "--led-before"}).status, 2);
  const CommandRun help = run({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, StartsWith("usage: leasehold explore"));
}

}  // namespace
}  // namespace leasehold::explore
