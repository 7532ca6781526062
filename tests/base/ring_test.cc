#include <leasehold/base/random.h>
#include <leasehold/base/ring.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace leasehold {
namespace {

TEST(Ring, IsADequeInAllThatItOffers) {
  Random random(7);
  Ring<std::string> ring;
  std::deque<std::string> model;
  for (std::uint64_t step = 0; step < 200'000; ++step) {
    // Phases in which it grows, and others in which it becomes empty.
    const bool grows = step / 1000 % 3 != 2;
    const std::uint64_t what = random.below(10);
    if (what < (grows ? 6U : 2U)) {
      const std::string value = std::to_string(step) + std::string(20, 'x');
      ring.push_back(value);
      model.push_back(value);
    } else if (what < 9 && !model.empty()) {
      ring.pop_front();
      model.pop_front();
    } else if (!model.empty() && random.chance(1, 50)) {
      const std::size_t size = random.below(model.size() + 1);
      ring.truncate(size);
      model.resize(size);
    } else if (!model.empty()) {
      ring.pop_back();
      model.pop_back();
    }
    ASSERT_EQ(ring.size(), model.size());
    ASSERT_EQ(ring.empty(), model.empty());
    if (model.empty()) continue;
    ASSERT_EQ(ring.front(), model.front());
    ASSERT_EQ(ring.back(), model.back());
    const std::size_t at = random.below(model.size());
    ASSERT_EQ(ring[at], model[at]);
    if (step % 997 != 0) continue;
    ASSERT_TRUE(std::equal(ring.begin(), ring.end(), model.begin(), model.end()));
  }
}

TEST(Ring, KeepsNothingOfWhatHasLeft) {
  Ring<std::shared_ptr<int>> ring;
  const auto value = std::make_shared<int>(1);
  for (int i = 0; i < 6; ++i) ring.push_back(value);
  EXPECT_EQ(value.use_count(), 7);
  ring.pop_front();
  ring.pop_back();
  EXPECT_EQ(value.use_count(), 5);
  ring.truncate(1);
  EXPECT_EQ(value.use_count(), 2);
  ring.clear();
  EXPECT_EQ(value.use_count(), 1);
}

TEST(Ring, GivesBackItsMemoryWhenItIsEmpty) {
  Ring<int> ring;
  ring.push_back(1);
  const int* const before = &ring.front();
  ring.give_back();
  EXPECT_EQ(&ring.front(), before) << "it is not empty";
  ring.pop_front();
  ring.give_back();
  EXPECT_TRUE(ring.empty());
  ring.push_back(2);
  EXPECT_EQ(ring.front(), 2);
}

TEST(Ring, IsEmptyOnceItWasMoved) {
  Ring<std::unique_ptr<int>> ring;
  for (int i = 0; i < 3; ++i) ring.push_back(std::make_unique<int>(i));
  ring.pop_front();
  Ring<std::unique_ptr<int>> moved(std::move(ring));
  EXPECT_TRUE(ring.empty());  // NOLINT(bugprone-use-after-move): that is what is looked at
  ring.push_back(std::make_unique<int>(7));
  EXPECT_EQ(*moved.front(), 1);
  ring = std::move(moved);
  EXPECT_EQ(ring.size(), 2U);
  EXPECT_EQ(*ring.back(), 2);
  EXPECT_TRUE(moved.empty());  // NOLINT(bugprone-use-after-move): as above
}

TEST(Ring, ItsElementsMayBeChanged) {
  Ring<int> ring;
  for (int i = 0; i < 5; ++i) ring.push_back(i);
  ring.pop_front();
  for (int& value : ring) value *= 10;
  ring[1] += 1;
  const Ring<int>& same = ring;
  EXPECT_EQ(same.front(), 10);
  EXPECT_EQ(same[1], 21);
  EXPECT_EQ(same.back(), 40);
}

}  // namespace
}  // namespace leasehold
