// Groups whose promises rest on those between the processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leasehold/tests/explore/walk.h>

#include <string>
#include <vector>

namespace leasehold::explore {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// All promises are bound, and the leaders rest.
Bounds bound(std::uint8_t groups, std::uint8_t time, std::uint8_t beats) {
  Bounds bounds;
  bounds.shared = true;
  bounds.groups = groups;
  bounds.time = time;
  bounds.beats = beats;
  bounds.drift = false;
  bounds.meetings = true;
  bounds.beginning = beginning::bound(3, groups);
  return bounds;
}

std::string all_steps(const World& world) {
  std::string all;
  for (const Step& step : world.steps()) all += world.text(step) + "; ";
  return all;
}

TEST(SharedPromises, BeatsAloneProlongALeaseAndThePromises) {
  World world(bound(1, 12, 6));
  ASSERT_THAT(world.wrong_beginning(), IsEmpty());
  for (int i = 0; i < 6; ++i) {
    world = after(world, {"pass", "beat 1", "meet 1 2 3"});
    EXPECT_THAT(world.violation(), IsEmpty());
    // The leader has nothing to send, and its followers wait for nothing.
    EXPECT_THAT(all_steps(world), Not(HasSubstr("tick"))) << i;
  }
  EXPECT_FALSE(offers(after(world, {"pass"}), "beat 1"));  // as many as were allowed
  // A follower learns from its process that it may ask for votes.
  const World silent = after(world, {"pass", "pass", "pass"});
  EXPECT_FALSE(offers(silent, "tick 2"));
  EXPECT_TRUE(offers(after(silent, {"look 2"}), "tick 2"));
  EXPECT_TRUE(offers(after(silent, {"look 3"}), "tick 3"));
}

TEST(SharedPromises, WithoutThemThereAreNoBeats) {
  Bounds bounds = led();
  bounds.drift = false;
  bounds.beats = 3;
  EXPECT_THAT(all_steps(World(bounds)), Not(HasSubstr("beat")));
}

TEST(SharedPromises, TheFollowersOfASilentProcessElectOneOfThem) {
  const World world(bound(1, 5, 1));
  // Node 1 begins a beat that nobody hears.
  const World elected =
      after(world, {"pass", "beat 1", "pass", "pass", "pass", "look 2", "tick 2", "meet 2 3"});
  EXPECT_THAT(elected.violation(), IsEmpty());
  // What it says of its beats now comes with another epoch.
  const World heard = after(elected, {"hear 3<1 beat"});
  std::string said;
  for (const Step& step : heard.steps()) said += heard.describe(step) + "\n";
  EXPECT_THAT(said, HasSubstr("1 hears beat_reply from 3: beat 3, epoch 1.1\n"));
}

TEST(TwoGroups, HaveLeadersOnDifferentNodesAndTheSameBeats) {
  Bounds bounds = bound(2, 3, 2);
  bounds.proposals = 2;
  bounds.transfers = 1;
  const World world(bounds);
  ASSERT_THAT(world.wrong_beginning(), IsEmpty());
  EXPECT_TRUE(offers(world, "propose 1"));
  EXPECT_TRUE(offers(world, "propose 2b"));
  EXPECT_FALSE(offers(world, "propose 2"));
  EXPECT_TRUE(offers(world, "transfer 2b to 3"));
  // What one group commits does not wake the other one.
  const World proposed = after(world, {"propose 2b", "meet 1 2 3"});
  EXPECT_THAT(proposed.violation(), IsEmpty());
  EXPECT_FALSE(proposed.fingerprint() == after(world, {"propose 1", "meet 1 2 3"}).fingerprint());
  const World sent = after(world, {"propose 2b"});
  EXPECT_TRUE(offers(sent, "hear 1b<2b append"));
  EXPECT_FALSE(offers(sent, "hear 2<1 append"));
}

TEST(TwoGroups, EndTogetherWithTheProcess) {
  Bounds bounds = bound(2, 4, 2);
  bounds.restarts = 1;
  // The next process of node 1 says by its first beat what it is: the former one is not supported.
  const World world = after(World(bounds), {"restart 1", "beat 1", "meet 1 2 3", "pass", "beat 2",
                                            "meet 1 2 3", "pass", "pass"});
  EXPECT_THAT(world.violation(), IsEmpty());
  EXPECT_TRUE(offers(world, "tick 3"));    // the first group has to elect
  EXPECT_FALSE(offers(world, "tick 3b"));  // the second one has its leader
}

TEST(TwoGroups, AReleaseIsSaidByTheNextBeat) {
  Bounds bounds = bound(2, 3, 3);
  bounds.transfers = 1;
  // Nobody hears the new leader yet.
  const World world = after(World(bounds), {"transfer 2b to 3", "hear 3b<2b timeout_now",
                                            "hear 2b<3b vote", "pass", "beat 2"});
  std::string said;
  for (const Step& step : world.steps()) said += world.describe(step) + "\n";
  EXPECT_THAT(said, HasSubstr("1 hears beat from 2: beat 3, leads group 2 no more in term 1\n"));
  EXPECT_THAT(world.violation(), IsEmpty());
}

TEST(SharedPromises, AStepInOneWorldChangesNoOther) {
  Bounds bounds = bound(2, 3, 3);
  bounds.restarts = 1;
  bounds.slow_disk = true;
  const World world = after(World(bounds), {"pass"});
  const raft::Fingerprint before = world.fingerprint();
  for (const Step& step : world.steps()) {
    World other = world;
    other.take(step);
    for (const Step& next : other.steps()) {
      World later = other;
      later.take(next);
    }
    EXPECT_TRUE(world.fingerprint() == before) << world.text(step);
    EXPECT_FALSE(other.fingerprint() == before) << world.text(step);
  }
}

TEST(SharedPromises, TheStateDoesNotDependOnTheOrderOfWhatArrives) {
  const World world = after(World(bound(1, 2, 1)), {"pass", "beat 1"});
  EXPECT_TRUE(after(world, {"hear 2<1 beat", "hear 3<1 beat"}).fingerprint() ==
              after(world, {"hear 3<1 beat", "hear 2<1 beat"}).fingerprint());
  // Nor on when it came to be, once nothing of it is of use.
  const std::vector<std::string> long_ago(25, "pass");
  EXPECT_TRUE(after(World(bound(1, 25, 0)), long_ago).fingerprint() ==
              after(after(World(bound(1, 26, 0)), long_ago), {"pass"}).fingerprint());
}

TEST(SharedPromises, NoShortScheduleShowsAnythingWrong) {
  const SearchReport one = search_all(bound(1, 3, 2), 7);
  EXPECT_THAT(one.violation, IsEmpty());
  EXPECT_GT(one.news.states, 10'000U);
  const SearchReport two = search_all(bound(2, 2, 2), 6);
  EXPECT_THAT(two.violation, IsEmpty());
  EXPECT_GT(two.news.states, 2'000U);
  Bounds bounds = bound(1, 2, 1);
  bounds.restarts = 1;
  bounds.slow_disk = true;
  EXPECT_THAT(search_all(bounds, 6).violation, IsEmpty());
}

}  // namespace
}  // namespace leasehold::explore
