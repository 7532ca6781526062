#include <leasehold/base/strong.h>

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace leasehold {
namespace {

using Apple = StrongInt<struct AppleTag>;
using Pear = StrongInt<struct PearTag>;

static_assert(!std::is_convertible_v<Apple, Pear>);
static_assert(!std::is_convertible_v<std::uint64_t, Apple>);
static_assert(!std::is_convertible_v<Apple, std::uint64_t>);
static_assert(!std::is_constructible_v<Apple, Pear>);
static_assert(std::is_trivially_copyable_v<Apple>);
static_assert(sizeof(Apple) == sizeof(std::uint64_t));

template <class A, class B>
constexpr bool kCompares = requires(A a, B b) {
  a == b;
};
static_assert(kCompares<Apple, Apple>);
static_assert(!kCompares<Apple, Pear>);
static_assert(!kCompares<Apple, std::uint64_t>);

TEST(StrongInt, StartsAtZero) {
  EXPECT_EQ(Apple().value(), 0U);
}

TEST(StrongInt, StepsAndDistances) {
  const Apple five(5);
  EXPECT_EQ(five.next(), Apple(6));
  EXPECT_EQ(five.prev(), Apple(4));
  EXPECT_EQ(five + 3, Apple(8));
  EXPECT_EQ(five - 3, Apple(2));
  EXPECT_EQ(Apple(8) - five, 3U);
}

TEST(StrongInt, Orders) {
  EXPECT_LT(Apple(1), Apple(2));
  EXPECT_GE(Apple(2), Apple(2));
  EXPECT_NE(Apple(1), Apple(2));
}

TEST(StrongInt, KeysAHashTable) {
  const std::unordered_set<Apple> set = {Apple(1), Apple(2), Apple(1)};
  EXPECT_EQ(set.size(), 2U);
  EXPECT_EQ(set.count(Apple(2)), 1U);
  EXPECT_EQ(set.count(Apple(3)), 0U);
}

TEST(StrongInt, WorksInConstantExpressions) {
  constexpr Apple kThree = Apple(2).next();
  static_assert(kThree == Apple(3));
  EXPECT_EQ(kThree.value(), 3U);
}

}  // namespace
}  // namespace leasehold
