#include <leasehold/lease/timing.h>

#include <gtest/gtest.h>

#include <vector>

namespace leasehold::lease {
namespace {

using std::chrono::milliseconds;

__extension__ typedef __int128 Wide;

TEST(Timing, DefaultsAreValid) {
  EXPECT_TRUE(Timing{}.validate().ok());
}

TEST(Timing, UsableIsRoundedDown) {
  Timing timing;
  timing.margin = Duration(0);
  // 1 s * 900000 / 1100000 = 818181818.18 ns
  EXPECT_EQ(timing.usable(milliseconds(1000)), Duration(818'181'818));
  timing.margin = milliseconds(10);
  EXPECT_EQ(timing.usable(milliseconds(1000)), Duration(808'181'818));
  timing.max_clock_drift_ppm = 0;
  EXPECT_EQ(timing.usable(milliseconds(1000)), milliseconds(990));
}

// In true time: the holder's clock slow by rho, the voter's fast by rho. The holder must stop
// first.
TEST(Timing, AStretchedPromiseLastsAsLongInTrueTime) {
  for (const std::int64_t own : {0, 1, 10'000, 100'000, 333'333, 500'000}) {
    for (const std::int64_t group : {0, 1, 7'777, 100'000, 500'000}) {
      for (const std::int64_t promised :
           {std::int64_t{1}, std::int64_t{999'999'937}, std::int64_t{3'600'000'000'000}}) {
        Timing timing;
        timing.max_clock_drift_ppm = own;
        const Duration stretched = timing.stretched(Duration(promised), group);
        // stretched / (1 + own) >= promised / (1 + group), without a division.
        EXPECT_GE(stretched.count() * (1'000'000 + group), promised * (1'000'000 + own))
            << own << " " << group << " " << promised;
        if (own <= group) {
          EXPECT_EQ(stretched, Duration(promised));
        }
      }
    }
  }
}

TEST(Timing, TheHolderStopsBeforeTheVoterIsFree) {
  Timing timing;
  timing.margin = Duration(0);
  for (const std::int64_t rho : {0, 1, 500, 83'000, 100'000, 333'333, 500'000}) {
    timing.max_clock_drift_ppm = rho;
    for (const std::int64_t d : {1'000'000LL, 1'000'000'007LL, 3'600'000'000'000LL}) {
      const auto u = static_cast<Wide>(timing.usable(Duration(d)).count());
      // u / (1 - rho) <= d / (1 + rho), without rounding.
      EXPECT_LE(u * (1'000'000 + rho), static_cast<Wide>(d) * (1'000'000 - rho));
      EXPECT_GT((u + 1) * (1'000'000 + rho), static_cast<Wide>(d) * (1'000'000 - rho));
    }
  }
}

TEST(Timing, RefusesAnUnsafeSetAndQuotesIt) {
  Timing timing;
  timing.margin = milliseconds(900);
  const Result<void> result = timing.validate();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("unsafe lease"), std::string::npos);
  EXPECT_NE(result.error().message.find("-81.818 ms"), std::string::npos) << result.error().message;
}

TEST(Timing, RefusesAnUnavailableSetAndQuotesIt) {
  Timing timing;
  timing.heartbeat = milliseconds(400);
  Result<void> result = timing.validate();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("400 ms + 50 ms + 400 ms = 850 ms"), std::string::npos)
      << result.error().message;
  timing.heartbeat = milliseconds(300);
  result = timing.validate();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("a third"), std::string::npos);
}

TEST(Timing, RefusesNumbersOutsideTheirRanges) {
  for (auto change : std::vector<void (*)(Timing&)>{
           [](Timing& t) { t.lease = Duration(0); },
           [](Timing& t) { t.lease = std::chrono::hours(2); },
           [](Timing& t) { t.heartbeat = Duration(-1); },
           [](Timing& t) { t.election_timeout = Duration(0); },
           [](Timing& t) { t.max_round_trip = Duration(0); },
           [](Timing& t) { t.margin = Duration(-1); },
           [](Timing& t) { t.max_clock_drift_ppm = -1; },
           [](Timing& t) { t.max_clock_drift_ppm = 500'001; },
       }) {
    Timing timing;
    change(timing);
    EXPECT_FALSE(timing.validate().ok());
  }
}

}  // namespace
}  // namespace leasehold::lease
