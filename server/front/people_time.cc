#include <leasehold/server/front/people_time.h>

#include <ctime>

namespace leasehold::server {

namespace {

std::chrono::nanoseconds read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

std::chrono::nanoseconds coarse_now() {
  return read_clock(CLOCK_MONOTONIC_COARSE);
}

std::chrono::nanoseconds fine_now() {
  return read_clock(CLOCK_MONOTONIC);
}

std::chrono::microseconds wall_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace leasehold::server
