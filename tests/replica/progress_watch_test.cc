#include <leasehold/replica/progress_watch.h>

#include <gtest/gtest.h>

#include <chrono>

namespace leasehold::replica {
namespace {

using namespace std::chrono_literals;

constexpr lease::Duration kPatience = 300ms;

class ProgressWatchTest : public ::testing::Test {
 protected:
  bool goes_on(std::uint64_t begun, std::uint64_t ended) {
    return watch_.goes_on(begun, ended, now_);
  }
  void pass(lease::Duration span) { now_ = now_ + span; }

  ProgressWatch watch_{kPatience};
  lease::PromiseInstant now_;
};

TEST_F(ProgressWatchTest, NothingToDoIsProgress) {
  EXPECT_TRUE(goes_on(7, 7));
  EXPECT_EQ(watch_.deadline(), lease::PromiseInstant::never());
  pass(1h);
  EXPECT_TRUE(goes_on(7, 7));
  EXPECT_TRUE(goes_on(8, 7)) << "it has just begun";
  EXPECT_EQ(watch_.deadline(), now_ + kPatience);
}

TEST_F(ProgressWatchTest, APieceThatDoesNotEndIsNone) {
  EXPECT_TRUE(goes_on(8, 7));
  pass(kPatience - 1ns);
  EXPECT_TRUE(goes_on(9, 7));
  pass(1ns);
  EXPECT_LE(watch_.deadline(), now_);
  EXPECT_FALSE(goes_on(9, 7)) << "another one that waits changes nothing";
  EXPECT_TRUE(goes_on(9, 8)) << "until one ends";
  pass(kPatience);
  EXPECT_FALSE(goes_on(9, 8));
  EXPECT_TRUE(goes_on(9, 9));
}

TEST_F(ProgressWatchTest, WhatIsBusyAndGoesOnMakesProgress) {
  for (std::uint64_t done = 0; done < 100; ++done) {
    EXPECT_TRUE(goes_on(done + 10, done));
    pass(kPatience - 1ns);
  }
}

}  // namespace
}  // namespace leasehold::replica
