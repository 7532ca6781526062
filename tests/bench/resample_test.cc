#include <leasehold/base/random.h>
#include <leasehold/bench/compare/resample.h>

#include <gtest/gtest.h>

#include <vector>

namespace leasehold::bench {
namespace {

TEST(Slots, AreWhatTheHistogramSaysItself) {
  Histogram histogram;
  for (std::uint64_t value = 1; value < 3'000'000; value = value * 3 / 2 + 1) {
    histogram.record(value);
  }
  const Slots slots = slots_of(histogram);
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (i > 0) {
      EXPECT_LT(slots[i - 1].first, slots[i].first);
    }
    count += slots[i].second;
  }
  EXPECT_EQ(count, histogram.count());
  for (const double q : {0.0, 0.25, 0.5, 0.9}) {
    const auto exact = static_cast<double>(histogram.quantile(q));
    EXPECT_NEAR(static_cast<double>(quantile_of(slots, q)), exact, exact / 1000 + 1) << q;
  }
}

TEST(Slots, MergeAndHaveQuantiles) {
  const Slots both = merged({{{1, 1}, {5, 2}}, {{5, 1}, {9, 4}}});
  EXPECT_EQ(both, (Slots{{1, 1}, {5, 3}, {9, 4}}));
  EXPECT_EQ(quantile_of(both, 0), 1U);
  EXPECT_EQ(quantile_of(both, 0.5), 5U);
  EXPECT_EQ(quantile_of(both, 0.51), 9U);
  EXPECT_EQ(quantile_of(both, 1), 9U);
  EXPECT_EQ(quantile_of({}, 0.5), 0U);
}

TEST(Bootstrap, PairsThatAllSayTheSameLeaveNoDoubt) {
  const std::vector<Slots> ours(6, Slots{{200, 100}});
  const std::vector<Slots> theirs(6, Slots{{100, 100}});
  const Interval ratio = ratio_of_quantiles(ours, theirs, 0.5);
  EXPECT_DOUBLE_EQ(ratio.value, 2);
  EXPECT_DOUBLE_EQ(ratio.low, 2);
  EXPECT_DOUBLE_EQ(ratio.high, 2);
}

TEST(Bootstrap, PairsStayTogether) {
  // Both drift alike, so the ratio of each draw is 2, whatever is drawn.
  std::vector<Share> ours;
  std::vector<Share> theirs;
  for (int i = 1; i <= 8; ++i) {
    ours.push_back({2.0 * i, 1});
    theirs.push_back({1.0 * i, 1});
  }
  const Interval ratio = ratio_of_shares(ours, theirs);
  EXPECT_DOUBLE_EQ(ratio.low, 2);
  EXPECT_DOUBLE_EQ(ratio.high, 2);
  EXPECT_DOUBLE_EQ(share_of(theirs).value, 4.5);
  EXPECT_LT(share_of(theirs).low, 4.5);
  EXPECT_GT(share_of(theirs).high, 4.5);
}

TEST(Bootstrap, WithTwoPairsTheIntervalIsFromOneToTheOther) {
  // Of two pairs a quarter of the draws is the first one alone, and a quarter the second.
  const std::vector<Share> ours = {{1, 1}, {3, 1}};
  const std::vector<Share> theirs = {{1, 1}, {1, 1}};
  const Interval ratio = ratio_of_shares(ours, theirs);
  EXPECT_DOUBLE_EQ(ratio.value, 2);
  EXPECT_DOUBLE_EQ(ratio.low, 1);
  EXPECT_DOUBLE_EQ(ratio.high, 3);
}

TEST(Bootstrap, ANumberWithoutAFloorIsNoRatio) {
  EXPECT_DOUBLE_EQ(ratio_of_shares({{1, 1}}, {{0, 1}}).value, 0);
  EXPECT_DOUBLE_EQ(share_of({{1, 0}}).value, 0);
}

TEST(Bootstrap, TheIntervalHoldsTheTruthAboutNineteenTimesInTwenty) {
  // Twenty pairs of noise around 10 and 5, two hundred times. Percentile intervals of twenty pairs
  // are a little narrow.
  Random random(7);
  const auto noise = [&random] { return 0.5 + static_cast<double>(random.below(1000)) / 1000; };
  int holds = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Share> ours;
    std::vector<Share> theirs;
    for (int i = 0; i < 20; ++i) {
      ours.push_back({10 * noise(), 1});
      theirs.push_back({5 * noise(), 1});
    }
    const Interval ratio = ratio_of_shares(ours, theirs);
    if (ratio.low <= 2 && 2 <= ratio.high) ++holds;
  }
  EXPECT_GE(holds, 176);
  EXPECT_LE(holds, 199);
}

}  // namespace
}  // namespace leasehold::bench
