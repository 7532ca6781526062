#include <leasehold/base/assert.h>
#include <leasehold/node/system_clock.h>

#include <ctime>

namespace leasehold::node {
namespace {

lease::Duration read_clock(clockid_t id) {
  timespec time{};
  LEASEHOLD_ASSERT(clock_gettime(id, &time) == 0);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

lease::Now SystemClock::now() const {
  return {lease::HolderInstant(read_clock(CLOCK_BOOTTIME)),
          lease::PromiseInstant(read_clock(CLOCK_MONOTONIC))};
}

lease::HolderInstant SystemClock::holder_now() const {
  return lease::HolderInstant(read_clock(CLOCK_BOOTTIME));
}

}  // namespace leasehold::node
