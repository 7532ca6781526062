// The machine's own clocks. The one place in the library where a clock is read.
#pragma once

#include <leasehold/lease/clock.h>

namespace leasehold::node {

/// CLOCK_BOOTTIME for the holder, CLOCK_MONOTONIC for promises and timers.
class SystemClock : public lease::Clock {
 public:
  lease::Now now() const override;
  lease::HolderInstant holder_now() const override;
};

}  // namespace leasehold::node
