#include <leasehold/base/boxed.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace leasehold {
namespace {

TEST(Boxed, IsEmptyAtFirst) {
  const Boxed<std::string> none;
  EXPECT_FALSE(none.has_value());
  EXPECT_FALSE(none);
  EXPECT_EQ(none, Boxed<std::string>());
  EXPECT_EQ(sizeof(none), sizeof(void*));
}

TEST(Boxed, ACopyHasAValueOfItsOwn) {
  Boxed<std::string> one = std::string("a");
  Boxed<std::string> other = one;
  EXPECT_EQ(one, other);
  *other += "b";
  EXPECT_EQ(*one, "a");
  EXPECT_NE(one, other);
  one = other;
  EXPECT_EQ(*one, "ab");
  EXPECT_NE(one.operator->(), other.operator->());
  other = Boxed<std::string>();
  EXPECT_FALSE(other);
  EXPECT_NE(one, other);
}

TEST(Boxed, IsEmptyOnceItWasMoved) {
  Boxed<std::string> from = std::string("a");
  const Boxed<std::string> to = std::move(from);
  EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_EQ(*to, "a");
}

TEST(Boxed, ChangesPlaces) {
  Boxed<std::string> one = std::string("a");
  Boxed<std::string> other;
  one.swap(other);
  EXPECT_FALSE(one);
  EXPECT_EQ(*other, "a");
  other.reset();
  EXPECT_FALSE(other);
}

}  // namespace
}  // namespace leasehold
