// What questions and answers say of another clock, and how well they say it.
#include <leasehold/doctor/drift.h>
#include <leasehold/tests/doctor/doctor_fixture.h>

#include <gtest/gtest.h>

#include <chrono>

namespace leasehold::doctor {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Drift, IsTheRateAgainstOurs) {
  for (const double ppm : {-100'000.0, -50.0, 0.0, 20.0, 300'000.0}) {
    const auto drift = promise_drift(samples_of(ppm, milliseconds(1)));
    ASSERT_TRUE(drift);
    EXPECT_NEAR(drift->ppm, ppm, 1) << ppm;
  }
}

TEST(Drift, IsKnownAsWellAsHalfTheRoundTripsAllow) {
  // 0.5 ms at either end, of 9.9 s.
  const auto drift = promise_drift(samples_of(0, milliseconds(1)));
  ASSERT_TRUE(drift);
  EXPECT_NEAR(drift->error_ppm, 101, 1);
  EXPECT_EQ(drift->surely_ppm(), 0);
}

TEST(Drift, AnAnswerThatTookLongOnOneWayMovesItByNoMoreThanItsError) {
  auto samples = samples_of(0, milliseconds(1));
  for (std::size_t i = 66; i < samples.size(); ++i) {
    // All of a long way lies behind the reading.
    const auto late = samples[i].asked.promise + milliseconds(40);
    samples[i].answered.promise = late;
    samples[i].answered.holder = lease::HolderInstant(late.since_origin());
  }
  const auto drift = promise_drift(samples);
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->surely_ppm(), 0);
  EXPECT_GT(drift->error_ppm, 2000);
}

TEST(Drift, TheShortestRoundTripsCount) {
  auto samples = samples_of(0, milliseconds(1));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i % 10 == 3) continue;
    samples[i].answered.promise = samples[i].answered.promise + milliseconds(70);
  }
  const auto drift = promise_drift(samples);
  ASSERT_TRUE(drift);
  EXPECT_LT(drift->error_ppm, 150);
}

TEST(Drift, OneAnswerTellsNothing) {
  EXPECT_FALSE(promise_drift({}));
  EXPECT_FALSE(promise_drift(samples_of(0, milliseconds(1), 1)));
  EXPECT_FALSE(holder_drift(samples_of(0, milliseconds(1), 1)));
}

TEST(Drift, ASuspendMovesTheTwoClocksOfAMachineApart) {
  auto samples = samples_of(0, milliseconds(1));
  EXPECT_EQ(suspended(samples), lease::Duration(0));
  for (std::size_t i = 50; i < samples.size(); ++i) samples[i].holder += seconds(3);
  EXPECT_EQ(suspended(samples), seconds(3));
  EXPECT_GT(holder_drift(samples)->ppm, 100'000);
  EXPECT_NEAR(promise_drift(samples)->ppm, 0, 1);
}

TEST(Drift, PercentilesOfRoundTripsAreThoseOfTheSamples) {
  auto samples = samples_of(0, milliseconds(1));
  samples[7].answered.promise = samples[7].asked.promise + milliseconds(80);
  EXPECT_EQ(round_trip(samples, 50), milliseconds(1));
  EXPECT_EQ(round_trip(samples, 100), milliseconds(80));
  EXPECT_EQ(round_trip({}, 99), lease::Duration(0));
}

}  // namespace
}  // namespace leasehold::doctor
