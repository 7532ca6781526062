#include <leasehold/base/assert.h>

#include <gtest/gtest.h>

namespace leasehold {
namespace {

TEST(AssertDeathTest, NamesTheFactAndThePlace) {
  const int members = 2;
  EXPECT_DEATH(LEASEHOLD_ASSERT(members == 3),
               "assertion failed: members == 3 at .*assert_test.cc:");
}

TEST(AssertDeathTest, AnUnreachableBranchAborts) {
  EXPECT_DEATH(LEASEHOLD_UNREACHABLE(), "unreachable at .*assert_test.cc:");
}

TEST(Assert, EvaluatesItsConditionOnceWhateverTheBuildType) {
  int evaluated = 0;
  LEASEHOLD_ASSERT(++evaluated > 0);
  EXPECT_EQ(evaluated, 1);
}

}  // namespace
}  // namespace leasehold
