// The numbers of a fleet.
#pragma once

#include <leasehold/lease/timing.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace leasehold::bench {

using lease::Duration;

struct Plan {
  std::size_t hosts = 100;
  std::size_t groups = 100'000;
  /// A group has one replica in each: three.
  std::size_t zones = 3;
  /// False: each group has heartbeats of its own.
  bool shared = true;
  lease::Timing timing{};
  Duration way = std::chrono::microseconds(500);        ///< of a frame
  Duration per_frame = std::chrono::microseconds(10);   ///< of a host's processor
  Duration per_message = std::chrono::microseconds(3);  ///< the same
  Duration sync = std::chrono::milliseconds(1);         ///< of a disk, for all that waits for it
  std::uint64_t seed = 1;
};

}  // namespace leasehold::bench
