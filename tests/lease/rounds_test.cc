#include <leasehold/lease/leader_lease.h>
#include <leasehold/lease/rounds.h>

#include <gtest/gtest.h>

namespace leasehold::lease {
namespace {

using std::chrono::milliseconds;

HolderInstant at(std::int64_t ms) {
  return HolderInstant(milliseconds(ms));
}

Timing timing(std::int64_t lease_ms) {
  Timing numbers;
  numbers.lease = milliseconds(lease_ms);
  return numbers;
}

TEST(RoundRing, KnowsWhenARoundBegan) {
  RoundRing ring;
  EXPECT_EQ(ring.newest(), Round(0));
  EXPECT_EQ(ring.begin(at(10), timing(1000)), Round(1));
  EXPECT_EQ(ring.begin(at(20), timing(900)), Round(2));
  EXPECT_EQ(ring.find(Round(1))->began, at(10));
  EXPECT_EQ(ring.find(Round(2))->duration, milliseconds(900));
  EXPECT_EQ(ring.find(Round(2))->end(), at(20) + timing(900).usable(milliseconds(900)));
}

TEST(RoundRing, LimitsWhatEarlierRoundsAreWorthAndNeverRaisesIt) {
  RoundRing ring;
  ring.begin(at(10), timing(1000));
  Timing careful = timing(1000);
  careful.margin = milliseconds(50);
  ring.limit(careful);
  EXPECT_EQ(ring.find(Round(1))->end(), at(10) + careful.usable(milliseconds(1000)));
  ring.limit(timing(1000));
  EXPECT_EQ(ring.find(Round(1))->end(), at(10) + careful.usable(milliseconds(1000)));
}

// Its voters may have clocks that are as wrong as the round allowed, whatever the group allows now.
TEST(RoundRing, ALargerMarginDoesNotTakeASmallerDriftForGranted) {
  Timing wide = timing(1000);
  wide.max_clock_drift_ppm = 75'000;
  wide.margin = milliseconds(5);
  Timing narrow = timing(1000);
  narrow.max_clock_drift_ppm = 5'000;
  narrow.margin = milliseconds(50);
  Timing careful = wide;
  careful.margin = narrow.margin;

  RoundRing carried;
  carried.begin(at(10), wide);
  carried.limit(narrow);
  EXPECT_EQ(carried.find(Round(1))->usable, careful.usable(milliseconds(1000)));

  // The round began under a small drift, and has lived under a larger one.
  RoundRing lived;
  Timing first = narrow;
  first.margin = wide.margin;
  lived.begin(at(10), first);
  lived.limit(wide);
  lived.limit(narrow);
  EXPECT_EQ(lived.find(Round(1))->usable, careful.usable(milliseconds(1000)));
}

TEST(RoundRing, KnowsNothingOfRoundsThatNeverBegan) {
  RoundRing ring;
  EXPECT_EQ(ring.find(Round(0)), nullptr);
  EXPECT_EQ(ring.find(Round(1)), nullptr);
  ring.begin(at(10), timing(1000));
  EXPECT_EQ(ring.find(Round(2)), nullptr);
  EXPECT_EQ(ring.find(Round(1 + RoundRing::kCapacity)), nullptr);
}

TEST(RoundRing, ForgetsTheOldest) {
  RoundRing ring;
  for (std::size_t i = 0; i <= RoundRing::kCapacity; ++i) ring.begin(at(1), timing(1));
  EXPECT_EQ(ring.find(Round(1)), nullptr);
  EXPECT_NE(ring.find(Round(2)), nullptr);
}

TEST(LeaderLease, NeverMovesBackButCanBeRevoked) {
  LeaderLease lease;
  EXPECT_FALSE(lease.valid(HolderInstant::earliest()));
  lease.extend(at(100));
  lease.extend(at(50));
  EXPECT_EQ(lease.end(), at(100));
  EXPECT_TRUE(lease.valid(at(99)));
  EXPECT_FALSE(lease.valid(at(100)));
  lease.revoke();
  EXPECT_FALSE(lease.valid(at(0)));
}

}  // namespace
}  // namespace leasehold::lease
