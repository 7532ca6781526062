#include <leasehold/base/scaled.h>

#include <gtest/gtest.h>

#include <limits>

namespace leasehold {
namespace {

constexpr std::int64_t kDay = 86'400'000'000'000;

TEST(Scaled, RoundsTowardZero) {
  EXPECT_EQ(scaled(10, 2, 3), 6);
  EXPECT_EQ(scaled(-10, 2, 3), -6);
  EXPECT_EQ(scaled(9, 2, 3), 6);
  EXPECT_EQ(scaled(0, 2, 3), 0);
}

TEST(Scaled, RoundsUp) {
  EXPECT_EQ(scaled_up(10, 2, 3), 7);
  EXPECT_EQ(scaled_up(-10, 2, 3), -6);
  EXPECT_EQ(scaled_up(9, 2, 3), 6);
  EXPECT_EQ(scaled_up(0, 2, 3), 0);
}

TEST(Scaled, AProductBeyond64BitsIsExact) {
  static_assert(kDay > std::numeric_limits<std::int64_t>::max() / kMillion);
  EXPECT_EQ(scaled(kDay, kMillion + 100, kMillion), kDay + kDay / 10'000);
  EXPECT_EQ(scaled_up(kDay + kDay / 10'000, kMillion, kMillion + 100), kDay);
  EXPECT_EQ(scaled(-kDay, kMillion - 1, kMillion), -kDay + kDay / kMillion);
  EXPECT_EQ(scaled_up(kDay + 1, kMillion + 1, kMillion), kDay + kDay / kMillion + 2);
}

}  // namespace
}  // namespace leasehold
