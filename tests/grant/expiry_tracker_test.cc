#include <leasehold/base/random.h>
#include <leasehold/grant/expiry_tracker.h>

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace leasehold::grant {
namespace {

using std::chrono::seconds;
using Renewed = ExpiryTracker::Renewed;
using Due = std::vector<ExpiryTracker::Due>;

lease::PromiseInstant at(std::int64_t second) {
  return lease::PromiseInstant() + seconds(second);
}

// A key of a slot that is nobody's cannot end, and thousands of them may be older than a lock.
TEST(ExpiryTracker, WhatDoesNotEndKeepsNothingElseFromItsEnd) {
  ExpiryTracker tracker;
  for (std::uint64_t id = 1; id <= 5; ++id) tracker.see(id, id, {seconds(1)}, at(0));
  EXPECT_EQ(tracker.due(at(1), 2), (Due{{1, 1}, {2, 2}}));
  EXPECT_EQ(tracker.due(at(1), 0), Due{});
  EXPECT_EQ(tracker.due(at(1), 2), (Due{{3, 3}, {4, 4}}));
  tracker.forget(4);
  tracker.see(6, 6, {seconds(1)}, at(0));
  EXPECT_EQ(tracker.due(at(1), 2), (Due{{5, 5}, {6, 6}}));
  EXPECT_EQ(tracker.due(at(1), 4), (Due{{1, 1}, {2, 2}, {3, 3}, {5, 5}}));
  EXPECT_EQ(tracker.due(at(1), 9), (Due{{6, 6}, {1, 1}, {2, 2}, {3, 3}, {5, 5}})) << "each once";
  EXPECT_EQ(tracker.due(at(1), 2), (Due{{1, 1}, {2, 2}}));
  EXPECT_EQ(tracker.due(at(0), 2), Due{});
}

TEST(ExpiryTracker, NamesWhatIsOverAndNothingBefore) {
  ExpiryTracker tracker;
  tracker.see(1, 5, {seconds(10)}, at(0));
  tracker.see(2, 6, {seconds(5)}, at(1));
  EXPECT_EQ(tracker.due(at(5), 9), Due{});
  EXPECT_EQ(tracker.due(at(6), 9), (Due{{2, 6}}));
  EXPECT_EQ(tracker.due(at(10), 9), (Due{{2, 6}, {1, 5}}));
  EXPECT_EQ(tracker.due(at(10), 1), (Due{{2, 6}})) << "the oldest first";
  tracker.forget(2);
  EXPECT_EQ(tracker.due(at(10), 9), (Due{{1, 5}}));
}

TEST(ExpiryTracker, ARenewalGivesTheWholeTime) {
  ExpiryTracker tracker;
  tracker.see(1, 5, {seconds(10)}, at(0));
  EXPECT_EQ(tracker.renew(1, at(9)), Renewed::renewed);
  EXPECT_EQ(tracker.left(1, at(10)), seconds(9));
  EXPECT_EQ(tracker.due(at(18), 9), Due{});
  EXPECT_EQ(tracker.due(at(19), 9), (Due{{1, 5}}));
  EXPECT_EQ(tracker.renew(2, at(9)), Renewed::unknown);
  EXPECT_EQ(tracker.left(2, at(9)), std::nullopt);
}

TEST(ExpiryTracker, WhatWasNamedIsNotRenewedButByANewStamp) {
  ExpiryTracker tracker;
  tracker.see(1, 5, {seconds(10)}, at(0));
  EXPECT_EQ(tracker.due(at(10), 9), (Due{{1, 5}}));
  EXPECT_EQ(tracker.renew(1, at(10)), Renewed::too_late);
  tracker.see(1, 5, {seconds(10)}, at(11));
  EXPECT_EQ(tracker.renew(1, at(11)), Renewed::too_late);
  tracker.see(1, 7, {seconds(10)}, at(12));
  EXPECT_EQ(tracker.due(at(21), 9), Due{});
  EXPECT_EQ(tracker.renew(1, at(21)), Renewed::renewed);
}

TEST(ExpiryTracker, WhatWasNotNamedForLackOfRoomIsRenewed) {
  ExpiryTracker tracker;
  tracker.see(1, 5, {seconds(10)}, at(0));
  tracker.see(2, 6, {seconds(10)}, at(0));
  EXPECT_EQ(tracker.due(at(10), 1), (Due{{1, 5}}));
  EXPECT_EQ(tracker.renew(2, at(10)), Renewed::renewed);
}

TEST(ExpiryTracker, ANewLeaderGivesTheWholeTime) {
  ExpiryTracker tracker;
  tracker.see(1, 5, {seconds(10)}, at(0));
  tracker.see(2, 6, {seconds(10)}, at(0));
  tracker.due(at(10), 1);
  tracker.begin(at(12), false);
  EXPECT_EQ(tracker.due(at(21), 9), Due{});
  EXPECT_EQ(tracker.renew(1, at(13)), Renewed::too_late) << "named, and that may yet take effect";
  EXPECT_EQ(tracker.renew(2, at(13)), Renewed::renewed);
  tracker.begin(at(14), true);
  EXPECT_EQ(tracker.renew(1, at(14)), Renewed::renewed);
  EXPECT_EQ(tracker.due(at(23), 9), Due{});
  EXPECT_EQ(tracker.due(at(24), 9), (Due{{1, 5}, {2, 6}}));
}

TEST(ExpiryTracker, InItsGracePeriodItIsNotDueAndMayBeRenewed) {
  ExpiryTracker tracker;
  tracker.see(1, 5, {seconds(10), seconds(5)}, at(0));
  EXPECT_EQ(tracker.due(at(14), 9), Due{});
  EXPECT_EQ(tracker.left(1, at(12)), -seconds(2));
  EXPECT_EQ(tracker.renew(1, at(14)), Renewed::renewed);
  EXPECT_EQ(tracker.left(1, at(14)), seconds(10));
  EXPECT_EQ(tracker.due(at(28), 9), Due{});
  EXPECT_EQ(tracker.due(at(29), 9), (Due{{1, 5}}));
  EXPECT_EQ(tracker.renew(1, at(29)), Renewed::too_late);
}

TEST(ExpiryTracker, WhatIsWantedIsDueInItsGracePeriod) {
  ExpiryTracker tracker;
  tracker.see(1, 5, {seconds(10), seconds(50)}, at(0));
  tracker.see(1, 5, {seconds(10), seconds(50), 1}, at(9));
  EXPECT_EQ(tracker.due(at(20), 9), Due{}) << "its time was not over when it was wanted";
  tracker.see(1, 5, {seconds(10), seconds(50), 1}, at(20));
  EXPECT_EQ(tracker.due(at(20), 9), Due{}) << "no client wanted it since";
  tracker.see(1, 5, {seconds(10), seconds(50), 2}, at(20));
  EXPECT_EQ(tracker.due(at(20), 9), (Due{{1, 5}}));
  EXPECT_EQ(tracker.renew(1, at(20)), Renewed::too_late);
}

TEST(ExpiryTracker, ARenewalIsStrongerThanAWishBeforeIt) {
  ExpiryTracker tracker;
  tracker.see(1, 5, {seconds(10), seconds(50)}, at(0));
  tracker.see(1, 5, {seconds(10), seconds(50), 1}, at(20));
  EXPECT_EQ(tracker.renew(1, at(20)), Renewed::renewed) << "due() has not named it yet";
  EXPECT_EQ(tracker.due(at(79), 9), Due{});
  tracker.see(1, 5, {seconds(10), seconds(50), 2}, at(79));
  tracker.see(1, 6, {seconds(10), seconds(50), 2}, at(79));
  EXPECT_EQ(tracker.due(at(138), 9), Due{});
  tracker.see(1, 6, {seconds(10), seconds(50), 3}, at(138));
  tracker.begin(at(138), true);
  EXPECT_EQ(tracker.due(at(197), 9), Due{});
  EXPECT_EQ(tracker.due(at(198), 9), (Due{{1, 6}}));
}

TEST(ExpiryTracker, SomeThingsAreNotRenewed) {
  ExpiryTracker tracker;
  tracker.see(1, 5, {seconds(10), {}, 0, false}, at(0));
  EXPECT_EQ(tracker.renew(1, at(5)), Renewed::unknown);
  EXPECT_EQ(tracker.due(at(10), 9), (Due{{1, 5}}));
}

TEST(ExpiryTracker, ForgetsAllOthers) {
  ExpiryTracker tracker;
  for (std::uint64_t id = 1; id <= 5; ++id) tracker.see(id, id, {seconds(1)}, at(0));
  tracker.forget_others({2, 4, 9});
  EXPECT_EQ(tracker.due(at(1), 9), (Due{{2, 2}, {4, 4}}));
  EXPECT_EQ(tracker.size(), 2U);
}

TEST(ExpiryTracker, AgreesWithAPlainList) {
  struct Plain {
    std::uint64_t stamp = 0;
    std::int64_t deadline = 0;
    bool named = false;
  };
  Random random(7);
  ExpiryTracker tracker;
  std::map<std::uint64_t, Plain> plain;
  std::size_t due_count = 0;
  for (std::int64_t now = 0; now < 20000; ++now) {
    const std::uint64_t id = random.below(20);
    const auto known = plain.find(id);
    switch (random.below(8)) {
      case 0: {
        const std::uint64_t stamp = random.below(3);
        tracker.see(id, stamp, {seconds(10)}, at(now));
        if (known == plain.end() || known->second.stamp != stamp) {
          plain[id] = {stamp, now + 10, false};
        }
        break;
      }
      case 1:
        tracker.forget(id);
        plain.erase(id);
        break;
      case 2:
        if (!random.chance(1, 20)) break;
        tracker.begin(at(now), now % 2 == 0);
        for (auto& [number, one] : plain) {
          one.deadline = std::max(one.deadline, now + 10);
          if (now % 2 == 0) one.named = false;
        }
        break;
      default: {
        const Renewed renewed = tracker.renew(id, at(now));
        if (known == plain.end()) {
          ASSERT_EQ(renewed, Renewed::unknown);
        } else {
          ASSERT_EQ(renewed, known->second.named ? Renewed::too_late : Renewed::renewed);
          if (!known->second.named) known->second.deadline = now + 10;
        }
      }
    }
    if (random.chance(1, 2)) continue;
    std::map<std::uint64_t, std::uint64_t> expected;
    for (auto& [number, one] : plain) {
      if (one.deadline > now) continue;
      one.named = true;
      expected[number] = one.stamp;
    }
    std::map<std::uint64_t, std::uint64_t> got;
    for (const auto& due : tracker.due(at(now), 100)) got[due.id] = due.stamp;
    ASSERT_EQ(got, expected) << now;
    due_count += got.size();
  }
  EXPECT_GT(due_count, 100U);
}

}  // namespace
}  // namespace leasehold::grant
