#include <leasehold/grant/holder_timing.h>
#include <leasehold/grant/lease_table.h>

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace leasehold::grant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

__extension__ typedef __int128 Wide;

std::string refusal(const HolderTiming& timing) {
  const Result<void> result = timing.validate();
  return result ? "" : result.error().message;
}

TEST(HolderTiming, DefaultsAreValid) {
  EXPECT_EQ(refusal(HolderTiming{}), "");
}

TEST(HolderTiming, UsableIsRoundedDownAndDoesNotOverflow) {
  HolderTiming timing;
  timing.margin = lease::Duration(0);
  for (const std::int64_t rho : {0, 1, 500, 83'000, 100'000, 333'333, 500'000}) {
    timing.max_clock_drift_ppm = rho;
    for (const lease::Duration ttl :
         {lease::Duration(milliseconds(1)), lease::Duration(seconds(10)),
          lease::Duration(1'000'000'007), kLeaseTtlMax}) {
      const auto u = static_cast<Wide>(timing.usable(ttl).count());
      const auto d = static_cast<Wide>(ttl.count());
      // A slow holder stops before a fast store ends the lease: u / (1 - rho) <= d / (1 + rho).
      EXPECT_LE(u * (1'000'000 + rho), d * (1'000'000 - rho));
      EXPECT_GT((u + 1) * (1'000'000 + rho), d * (1'000'000 - rho));
    }
  }
}

TEST(HolderTiming, TheLongestIsTheOtherEndOfTheDrift) {
  HolderTiming timing;
  for (const std::int64_t rho : {0, 1, 100'000, 333'333, 500'000}) {
    timing.max_clock_drift_ppm = rho;
    for (const lease::Duration kept :
         {lease::Duration(milliseconds(1)), lease::Duration(1'000'000'007),
          kLeaseTtlMax + kLeaseGraceMax}) {
      const auto most = static_cast<Wide>(timing.longest(kept).count());
      const auto d = static_cast<Wide>(kept.count());
      // A fast holder, and a slow store.
      EXPECT_LE(most * (1'000'000 - rho), d * (1'000'000 + rho));
      EXPECT_GT((most + 1) * (1'000'000 - rho), d * (1'000'000 + rho));
    }
  }
}

TEST(HolderTiming, AnUnsafeSetIsRefusedAndQuoted) {
  HolderTiming timing;
  timing.ttl = seconds(1);
  timing.margin = milliseconds(900);
  EXPECT_EQ(
      refusal(timing),
      "unsafe lease: U = TTL * (1 - rho) / (1 + rho) - sigma must be above zero, but is -81.818 ms "
      "with TTL = 1000 ms, drift rho = 100000 ppm, margin sigma = 900 ms; raise the time to live "
      "or lower the margin");
}

TEST(HolderTiming, ARenewalThatLeavesNoRoomForARetryIsRefused) {
  HolderTiming timing;
  // U is 7.18 s: a third of it is 2393 ms.
  timing.renewal = milliseconds(2394);
  EXPECT_NE(refusal(timing).find("unavailable lease"), std::string::npos) << refusal(timing);
  timing.renewal = milliseconds(2393);
  EXPECT_EQ(refusal(timing), "");
  timing.max_round_trip = milliseconds(2396);
  EXPECT_NE(refusal(timing).find("2393 ms + 2396 ms + 2393 ms"), std::string::npos)
      << refusal(timing);
}

TEST(HolderTiming, NumbersOutsideTheirRangesAreRefused) {
  const auto with = [](auto change) {
    HolderTiming timing;
    change(timing);
    return refusal(timing);
  };
  EXPECT_NE(with([](HolderTiming& t) { t.ttl = lease::Duration(0); }), "");
  EXPECT_NE(with([](HolderTiming& t) { t.ttl = kLeaseTtlMax + milliseconds(1); }), "");
  EXPECT_NE(with([](HolderTiming& t) { t.ttl += lease::Duration(1); }), "");
  EXPECT_NE(with([](HolderTiming& t) { t.renewal = lease::Duration(0); }), "");
  EXPECT_NE(with([](HolderTiming& t) { t.max_round_trip = lease::Duration(0); }), "");
  EXPECT_NE(with([](HolderTiming& t) { t.margin = lease::Duration(-1); }), "");
  EXPECT_NE(with([](HolderTiming& t) { t.max_clock_drift_ppm = -1; }), "");
  EXPECT_NE(with([](HolderTiming& t) { t.max_clock_drift_ppm = 500'001; }), "");
  EXPECT_NE(with([](HolderTiming& t) { t.renewal = lease::Duration::max(); }), "");
}

// What a fitted set promises: a pause at the worst moment, and one failed renewal, cost no lease.
TEST(HolderTiming, AFittedSetSurvivesThePauseItWasFittedTo) {
  for (const std::int64_t drift : {0, 200, 100'000, 500'000}) {
    for (const lease::Duration pause :
         {lease::Duration(0), lease::Duration(milliseconds(350)), lease::Duration(seconds(20))}) {
      for (const lease::Duration trip :
           {lease::Duration(0), lease::Duration(milliseconds(30)), lease::Duration(seconds(1))}) {
        const auto fitted = HolderTiming::fit({trip, drift, pause, milliseconds(250)});
        ASSERT_TRUE(fitted.ok()) << fitted.error().message;
        const HolderTiming& timing = fitted.value();
        EXPECT_EQ(refusal(timing), "");
        EXPECT_EQ(timing.margin, milliseconds(250));
        EXPECT_LT(timing.renewal + pause + 3 * timing.max_round_trip, timing.usable());
        // And it is not longer than it has to be.
        HolderTiming shorter = timing;
        shorter.ttl -= milliseconds(2);
        EXPECT_LT(shorter.usable(), 3 * timing.renewal);
      }
    }
  }
  EXPECT_FALSE(
      HolderTiming::fit({lease::Duration(-1), 0, lease::Duration(0), lease::Duration(0)}).ok());
  EXPECT_FALSE(HolderTiming::fit({lease::Duration(0), 0, kLeaseTtlMax, lease::Duration(0)}).ok());
  EXPECT_FALSE(
      HolderTiming::fit({lease::Duration(0), 600'000, lease::Duration(0), lease::Duration(0)})
          .ok());
}

}  // namespace
}  // namespace leasehold::grant
