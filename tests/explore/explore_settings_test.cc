// Changes of the settings, and clocks that are as wrong as the group has agreed on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leasehold/tests/explore/walk.h>

namespace leasehold::explore {
namespace {

using testing::IsEmpty;

Bounds agreed(std::uint8_t percent) {
  Bounds bounds = led();
  bounds.time = 3;
  bounds.agreed_percent = percent;
  bounds.settings = 1;
  return bounds;
}

// Each node was started with a bound of 0.
TEST(Settings, ThatAreAgreedOnCountAndNotWhatTheNodesWereStartedWith) {
  Bounds bounds = agreed(25);
  bounds.time = 2;
  bounds.settings = 0;
  const World world(bounds);
  EXPECT_TRUE(offers(world, "rates slow fast fast"));
  EXPECT_THAT(search_all(bounds, 7).violation, IsEmpty());
}

TEST(Settings, ClocksMayBeWrongOnceALargerBoundIsCommitted) {
  const World world(agreed(0));
  EXPECT_FALSE(offers(world, "rates slow fast fast"));
  EXPECT_TRUE(offers(world, "settings 1: longer"));
  EXPECT_TRUE(offers(world, "settings 1: shorter"));
  const World appended = after(world, {"settings 1: drift", "hear 2<1 append"});
  EXPECT_FALSE(offers(appended, "settings 1: drift"));
  EXPECT_FALSE(offers(appended, "rates slow fast fast"));
  const World committed = after(appended, {"hear 2<1 append", "hear 1<2 append_reply 2"});
  EXPECT_TRUE(offers(committed, "rates slow fast fast"));
  EXPECT_FALSE(offers(committed, "pass"));
}

TEST(Settings, ClocksRunTrueBeforeASmallerBoundIsAskedFor) {
  const World world = after(World(agreed(25)), {"rates slow fast fast", "settings 1: no drift"});
  Bounds told = agreed(25);
  told.settings = 0;
  told.beginning += "rates slow fast fast, settings 1: no drift, rates true true true";
  EXPECT_TRUE(World(told).fingerprint() == world.fingerprint());
}

TEST(Settings, AChangeShowsNothingWrong) {
  Bounds bounds = agreed(0);
  bounds.time = 2;
  EXPECT_THAT(search_all(bounds, 6).violation, IsEmpty());
  bounds = agreed(25);
  bounds.drift = false;
  EXPECT_THAT(search_all(bounds, 7).violation, IsEmpty());
}

// Node 1, the only voter, has a lease of the longer D. The learners were started with the shorter.
TEST(Settings, AShorterLeaseAndNewVotersShowNothingWrong) {
  Bounds bounds = led();
  bounds.voters = 1;
  bounds.uneven = true;
  bounds.drift = false;
  bounds.meetings = true;
  bounds.time = 1;
  bounds.settings = 1;
  bounds.changes = 1;
  bounds.beginning += "pass, pass, tick 1, lose, ";
  EXPECT_THAT(search_all(bounds, 5).violation, IsEmpty());
}

}  // namespace
}  // namespace leasehold::explore
