// A short comparison on each run; brute_force_main.cc makes a long one.
#include "brute_force.h"

#include <gtest/gtest.h>

namespace leasehold::check {
namespace {

TEST(BruteForce, TheCheckerAgreesWithTheDefinition) {
  constexpr std::uint64_t kHistories = 60'000;
  std::uint64_t good = 0;
  EXPECT_EQ(compare_with_brute_force(20261120, kHistories, good), "");
  // Both kinds have to be common, or the comparison says little.
  EXPECT_GT(good, kHistories / 4);
  EXPECT_LT(good, kHistories * 3 / 4);
}

}  // namespace
}  // namespace leasehold::check
