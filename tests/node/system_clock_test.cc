// The instants come from the two clocks that the design names, and from no other.
#include <leasehold/node/system_clock.h>

#include <gtest/gtest.h>

#include <ctime>

namespace leasehold::node {
namespace {

lease::Duration read(clockid_t id) {
  timespec time{};
  EXPECT_EQ(clock_gettime(id, &time), 0);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TEST(SystemClock, TheHoldersClockCountsSuspend) {
  const SystemClock clock;
  const lease::Duration before = read(CLOCK_BOOTTIME);
  const lease::Duration alone = clock.holder_now().since_origin();
  const lease::Duration both = clock.now().holder.since_origin();
  const lease::Duration after = read(CLOCK_BOOTTIME);
  EXPECT_LE(before, alone);
  EXPECT_LE(alone, both);
  EXPECT_LE(both, after);
}

// If the machine was never suspended the two clocks agree, and this test shows less.
TEST(SystemClock, TheVotersClockStopsInSuspend) {
  const SystemClock clock;
  const lease::Duration before = read(CLOCK_MONOTONIC);
  const lease::Duration at = clock.now().promise.since_origin();
  const lease::Duration after = read(CLOCK_MONOTONIC);
  EXPECT_LE(before, at);
  EXPECT_LE(at, after);
}

}  // namespace
}  // namespace leasehold::node
