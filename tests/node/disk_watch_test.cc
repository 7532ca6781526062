#include <leasehold/node/disk_watch.h>

#include <gtest/gtest.h>

#include <chrono>

namespace leasehold::node {
namespace {

using namespace std::chrono_literals;

constexpr lease::Duration kPatience = 300ms;

class DiskWatchTest : public ::testing::Test {
 protected:
  bool healthy(std::uint64_t accepted, std::uint64_t durable) {
    return watch_.healthy(accepted, durable, now_);
  }
  void pass(lease::Duration span) { now_ = now_ + span; }

  DiskWatch watch_{kPatience};
  lease::PromiseInstant now_;
};

TEST_F(DiskWatchTest, NothingToDoIsHealthy) {
  EXPECT_TRUE(healthy(7, 7));
  pass(1h);
  EXPECT_TRUE(healthy(7, 7));
  EXPECT_TRUE(healthy(8, 7)) << "it has just begun";
}

TEST_F(DiskWatchTest, AWriteThatDoesNotEndIsNot) {
  EXPECT_TRUE(healthy(8, 7));
  pass(kPatience - 1ns);
  EXPECT_TRUE(healthy(9, 7));
  pass(1ns);
  EXPECT_FALSE(healthy(9, 7)) << "another one that waits changes nothing";
  EXPECT_TRUE(healthy(9, 8)) << "until one ends";
  pass(kPatience);
  EXPECT_FALSE(healthy(9, 8));
  EXPECT_TRUE(healthy(9, 9));
}

TEST_F(DiskWatchTest, ABusyDiskThatGoesOnIsHealthy) {
  for (std::uint64_t done = 0; done < 100; ++done) {
    EXPECT_TRUE(healthy(done + 10, done));
    pass(kPatience - 1ns);
  }
}

}  // namespace
}  // namespace leasehold::node
