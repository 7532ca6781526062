#include <leasehold/base/random.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace leasehold {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

// The sequences were computed by another implementation, in Python. They are pinned: a seed that a
// person noted has to give the same simulation forever.
TEST(Random, OneSeedAlwaysGivesOneSequence) {
  struct Golden {
    std::uint64_t seed;
    std::array<std::uint64_t, 5> sequence;
  };
  const std::vector<Golden> goldens = {
      {0,
       {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c,
        0xbba5ad4a1f842e59}},
      {1,
       {0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514, 0x642e1c7bc266a3a7,
        0xb27a48e29a233673}},
      {42,
       {0x15780b2e0c2ec716, 0x6104d9866d113a7e, 0xae17533239e499a1, 0xecb8ad4703b360a1,
        0xfde6dc7fe2ec5e64}},
      {kMax,
       {0x8f5520d52a7ead08, 0xc476a018caa1802d, 0x81de31c0d260469e, 0xbf658d7e065f3c2f,
        0x913593fda1bca32a}},
  };
  for (const Golden& golden : goldens) {
    Random random(golden.seed);
    for (const std::uint64_t expected : golden.sequence) {
      EXPECT_EQ(random.next(), expected) << "seed " << golden.seed;
    }
  }
}

TEST(Random, BelowIsPinnedToo) {
  Random random(7);
  for (const std::uint64_t expected : {4U, 4U, 8U, 4U, 4U, 1U, 6U, 6U, 8U, 9U, 3U, 6U}) {
    EXPECT_EQ(random.below(10), expected);
  }
}

TEST(Random, BetweenIsPinnedToo) {
  Random random(7);
  for (const std::int64_t expected : {-1, -1, 3, -1, -1, -4, 1, 1}) {
    EXPECT_EQ(random.between(-5, 5), expected);
  }
}

TEST(Random, ACopyContinuesTheSameSequence) {
  Random first(3);
  first.next();
  Random second = first;
  EXPECT_EQ(first.next(), second.next());
}

TEST(Random, BelowOneIsAlwaysZero) {
  Random random(9);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, BelowTheLargestBoundStaysBelowIt) {
  Random random(9);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(kMax), kMax);
}

TEST(Random, BelowIsUniformWhereAPlainRemainderWouldNotBe) {
  // With a bound of three quarters of the range, a plain remainder hits the lower third of the
  // values twice as often: half of all draws instead of a third.
  const std::uint64_t bound = kMax / 4 * 3;
  Random random(11);
  int low = 0;
  for (int i = 0; i < 10000; ++i) low += random.below(bound) < bound / 3 ? 1 : 0;
  EXPECT_NEAR(low, 3333, 200);
}

TEST(Random, BelowReachesEveryValue) {
  Random random(5);
  std::array<int, 7> hits{};
  for (int i = 0; i < 7000; ++i) ++hits[random.below(hits.size())];
  EXPECT_GT(*std::min_element(hits.begin(), hits.end()), 850);
  EXPECT_LT(*std::max_element(hits.begin(), hits.end()), 1150);
}

TEST(Random, BetweenSpansTheWholeSignedRange) {
  const std::int64_t low = std::numeric_limits<std::int64_t>::min();
  const std::int64_t high = std::numeric_limits<std::int64_t>::max();
  Random random(13);
  bool negative = false;
  bool positive = false;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t draw = random.between(low, high);
    EXPECT_LT(draw, high);
    negative = negative || draw < 0;
    positive = positive || draw > 0;
  }
  EXPECT_TRUE(negative);
  EXPECT_TRUE(positive);
}

TEST(Random, ChanceKnowsNeverAndAlways) {
  Random random(17);
  int hits = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(random.chance(0, 5));
    EXPECT_TRUE(random.chance(5, 5));
    hits += random.chance(1, 4) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 250, 60);
}

TEST(RandomDeathTest, AnEmptyRangeIsABug) {
  Random random(1);
  EXPECT_DEATH(random.below(0), "bound > 0");
  EXPECT_DEATH(random.between(3, 3), "low < high");
}

}  // namespace
}  // namespace leasehold
