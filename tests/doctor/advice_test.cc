// Numbers for what was measured: they always satisfy both inequalities, and say why.
#include <leasehold/doctor/advice.h>
#include <leasehold/tests/doctor/doctor_fixture.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace leasehold::doctor {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class AdviceTest : public DoctorTest {
 protected:
  void see(lease::Duration network, lease::Duration sync, lease::Duration pause) {
    for (ServerFacts& server : facts_.servers) server.samples = samples_of(0, network);
    facts_.disk.sync->p99 = sync;
    facts_.disk.sync->longest = 2 * sync;
    facts_.pause.longest = pause;
  }
  std::string why(const std::string& name) const {
    const auto advice = advise(facts_);
    EXPECT_TRUE(advice);
    for (const AdvisedNumber& one : advice.value().numbers) {
      if (one.name == name) return one.value + ": " + one.why;
    }
    return {};
  }
};

TEST_F(AdviceTest, AQuickMachineGetsAShortLease) {
  see(microseconds(200), milliseconds(1), microseconds(500));
  const auto advice = advise(facts_);
  ASSERT_TRUE(advice);
  const lease::Timing& timing = advice.value().timing;
  EXPECT_EQ(timing.max_round_trip, milliseconds(10));
  EXPECT_EQ(timing.heartbeat, milliseconds(20));
  EXPECT_EQ(timing.lease, milliseconds(200));
  EXPECT_EQ(timing.election_timeout, milliseconds(100));
  EXPECT_EQ(timing.margin, milliseconds(10));
  EXPECT_EQ(timing.max_clock_drift_ppm, 100'000);
  EXPECT_EQ(advice.value().numbers.size(), 6U);
}

TEST_F(AdviceTest, NumbersHoldWithTwiceWhatWasMeasured) {
  for (const lease::Duration network :
       {lease::Duration(microseconds(50)), lease::Duration(milliseconds(3)),
        lease::Duration(milliseconds(120))}) {
    for (const lease::Duration sync :
         {lease::Duration(microseconds(30)), lease::Duration(milliseconds(15)),
          lease::Duration(seconds(1))}) {
      for (const lease::Duration pause :
           {lease::Duration(microseconds(100)), lease::Duration(milliseconds(90)),
            lease::Duration(seconds(2))}) {
        see(network, sync, pause);
        const auto advice = advise(facts_);
        ASSERT_TRUE(advice) << advice.error().message;
        lease::Timing timing = advice.value().timing;
        EXPECT_GE(timing.election_timeout, 3 * 2 * sync);
        EXPECT_GE(timing.election_timeout, 10 * network);
        timing.max_round_trip = 2 * (network + sync) + 2 * pause;
        EXPECT_TRUE(timing.validate()) << timing.validate().error().message;
      }
    }
  }
}

TEST_F(AdviceTest, ADriftThatWasSeenIsDoubled) {
  see(milliseconds(1), milliseconds(1), milliseconds(1));
  facts_.servers[0].samples = samples_of(80'000, milliseconds(1));
  const auto advice = advise(facts_);
  ASSERT_TRUE(advice);
  EXPECT_NEAR(static_cast<double>(advice.value().timing.max_clock_drift_ppm), 160'000, 500);
  EXPECT_TRUE(advice.value().timing.validate());
}

TEST_F(AdviceTest, EachNumberSaysWhy) {
  see(milliseconds(3), milliseconds(4), milliseconds(7));
  EXPECT_THAT(why("lease"), HasSubstr("the longest pause (7 ms)"));
  EXPECT_THAT(why("max-round-trip"),
              HasSubstr("20ms: twice a round trip (p99 3 ms) with a sync (p99 4 ms)"));
  EXPECT_THAT(why("election-timeout"), HasSubstr("three of the longest sync (8 ms)"));
  EXPECT_THAT(why("max-clock-drift"), HasSubstr("8.3 %"));
  facts_.servers.clear();
  EXPECT_THAT(why("max-round-trip"), HasSubstr("assumed: name running nodes by --servers"));
}

TEST_F(AdviceTest, WhatAllowsNoLeaseIsRefused) {
  see(milliseconds(1), milliseconds(1), hours(2));
  const auto advice = advise(facts_);
  ASSERT_FALSE(advice);
  EXPECT_THAT(advice.error().message, HasSubstr("allows no lease"));
}

}  // namespace
}  // namespace leasehold::doctor
