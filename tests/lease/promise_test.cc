#include <leasehold/base/random.h>
#include <leasehold/lease/promise.h>

#include <gtest/gtest.h>

namespace leasehold::lease {
namespace {

using std::chrono::milliseconds;

PromiseInstant at(std::int64_t ms) {
  return PromiseInstant(milliseconds(ms));
}

TEST(VoterPromise, WithoutAPromiseANodeIsFree) {
  EXPECT_FALSE(VoterPromise().live(at(0)));
  EXPECT_EQ(VoterPromise().remembered(), Duration(0));
}

TEST(VoterPromise, BindsUpToItsEndAndNotAtIt) {
  VoterPromise promise;
  promise.replace(milliseconds(100), at(1000));
  EXPECT_TRUE(promise.live(at(1099)));
  EXPECT_FALSE(promise.live(at(1100)));
}

TEST(VoterPromise, RenewalNeverMovesTheEndBack) {
  VoterPromise promise;
  promise.replace(milliseconds(500), at(0));
  promise.renew(milliseconds(100), at(10));
  EXPECT_EQ(promise.until(), at(500));
}

TEST(VoterPromise, ReplacementMay) {
  VoterPromise promise;
  promise.replace(milliseconds(500), at(0));
  promise.replace(milliseconds(100), at(10));
  EXPECT_EQ(promise.until(), at(110));
}

// Whatever happens: a restart at any later instant binds at least as long as the promise did.
TEST(VoterPromise, TheRememberedDurationCoversTheEndAtEveryInstant) {
  Random random(5);
  for (int run = 0; run < 2000; ++run) {
    VoterPromise promise;
    std::int64_t now = 0;
    std::int64_t last = 0;
    promise.replace(milliseconds(1 + static_cast<std::int64_t>(random.below(1000))), at(0));
    for (int step = 0; step < 30; ++step) {
      now += static_cast<std::int64_t>(random.below(300));
      const std::int64_t duration = 1 + static_cast<std::int64_t>(random.below(1000));
      promise.renew(milliseconds(duration), at(now));
      last = now;
      ASSERT_GE(at(last) + promise.remembered(), promise.until());
      const Duration remembered = promise.remembered();
      ASSERT_GE(VoterPromise::restarted(remembered, remembered, at(last)).until(), promise.until());
    }
  }
}

}  // namespace
}  // namespace leasehold::lease
