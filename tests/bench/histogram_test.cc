#include <leasehold/base/random.h>
#include <leasehold/bench/histogram.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace leasehold::bench {
namespace {

/// Values spread evenly over the orders of magnitude, as latencies are.
std::uint64_t draw(Random& random) {
  const std::uint64_t bits = random.below(40);
  return random.below(std::uint64_t{2} << bits);
}

std::uint64_t exact_quantile(const std::vector<std::uint64_t>& sorted, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

TEST(Histogram, EmptyShowsZeroes) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.min(), 0U);
  EXPECT_EQ(histogram.max(), 0U);
  EXPECT_EQ(histogram.mean(), 0.0);
  EXPECT_EQ(histogram.quantile(0.5), 0U);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (std::uint64_t value = 0; value < 2048; ++value) histogram.record(value);
  for (std::uint64_t value = 0; value < 2048; ++value) {
    EXPECT_EQ(histogram.quantile(static_cast<double>(value + 1) / 2048.0), value);
  }
}

TEST(Histogram, EveryValueIsItsOwnQuantileWithinATenthOfAPercent) {
  Random random(7);
  std::vector<std::uint64_t> values = {0, 1, 2047, 2048, 2049, 4095, 4096, Histogram::kLargest};
  for (int i = 0; i < 2000; ++i) values.push_back(draw(random));
  for (const std::uint64_t value : values) {
    Histogram histogram;
    // A larger one as well, so that quantile() is not clamped to the maximum.
    histogram.record(value);
    histogram.record(Histogram::kLargest);
    const std::uint64_t shown = histogram.quantile(0.5);
    EXPECT_GE(shown, value);
    EXPECT_LE(static_cast<double>(shown - value), 0.001 * static_cast<double>(value));
  }
}

TEST(Histogram, QuantilesAgreeWithTheSortedValues) {
  Random random(11);
  Histogram histogram;
  std::vector<std::uint64_t> values;
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t value = draw(random);
    values.push_back(value);
    histogram.record(value);
    sum += static_cast<double>(value);
  }
  std::sort(values.begin(), values.end());
  for (const double q : {0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    const auto exact = static_cast<double>(exact_quantile(values, q));
    EXPECT_NEAR(static_cast<double>(histogram.quantile(q)), exact, 0.001 * exact) << q;
  }
  EXPECT_EQ(histogram.min(), values.front());
  EXPECT_EQ(histogram.max(), values.back());
  EXPECT_NEAR(histogram.mean(), sum / 100000.0, 1.0);
}

TEST(Histogram, MergeIsRecordingEverythingInOne) {
  Random random(13);
  Histogram all;
  Histogram left;
  Histogram right;
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t value = draw(random);
    all.record(value);
    (i % 3 == 0 ? left : right).record(value);
  }
  left.merge(right);
  EXPECT_EQ(left.to_json(), all.to_json());
  left.merge(Histogram());
  EXPECT_EQ(left.to_json(), all.to_json());
}

TEST(Histogram, TooLargeValuesAreClampedAndCounted) {
  Histogram histogram;
  histogram.record(Histogram::kLargest + 1);
  histogram.record(~std::uint64_t{0});
  histogram.record(Histogram::kLargest);
  EXPECT_EQ(histogram.count(), 3U);
  EXPECT_EQ(histogram.clamped(), 2U);
  EXPECT_EQ(histogram.max(), Histogram::kLargest);
}

TEST(Histogram, ClearForgets) {
  Histogram histogram;
  histogram.record(5);
  histogram.clear();
  EXPECT_EQ(histogram.to_json(), Histogram().to_json());
}

TEST(Histogram, SavedAndLoadedIsTheSame) {
  Random random(17);
  Histogram histogram;
  for (int i = 0; i < 10000; ++i) histogram.record(draw(random));
  histogram.record(~std::uint64_t{0});
  auto loaded = Histogram::from_json(histogram.to_json());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded.value().to_json(), histogram.to_json());
  EXPECT_EQ(loaded.value().clamped(), 1U);

  auto empty = Histogram::from_json(Histogram().to_json());
  ASSERT_TRUE(empty.ok()) << empty.error().message;
  EXPECT_EQ(empty.value().to_json(), Histogram().to_json());
}

TEST(Histogram, DamagedTextIsRefused) {
  Histogram histogram;
  histogram.record(3);
  for (const char* text :
       {"", "[]", "{\"format\": 1", "{\"format\": 1}", "{\"format\": 1, \"slots\": 3}",
        R"({"format": 1, "count": 1, "slots": [[1]]})",
        R"({"format": 1, "count": 1, "slots": [[-1, 1]]})",
        R"({"format": 1, "count": 1, "slots": [[4398046511104, 1]]})",
        R"({"format": 1, "count": 2, "slots": [[1, 1]]})",
        R"({"format": 1, "count": 1, "min": 4, "max": 3, "slots": [[4, 1]]})"}) {
    auto loaded = Histogram::from_json(text);
    ASSERT_FALSE(loaded.ok()) << text;
    EXPECT_EQ(loaded.error().code, ErrorCode::malformed) << text;
  }
  auto newer = Histogram::from_json(R"({"format": 2, "slots": []})");
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().code, ErrorCode::unsupported_format);
  EXPECT_EQ(newer.error().message, "histogram format 2, this build reads format 1");
}

}  // namespace
}  // namespace leasehold::bench
