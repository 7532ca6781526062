// A ratio of a large number, without an overflow on the way.
#pragma once

#include <cstdint>

namespace leasehold {

/// The rates of clocks are in parts of it.
inline constexpr std::int64_t kMillion = 1'000'000;

/// value * up / down, rounded toward zero, where value * up may not fit 64 bits: nanoseconds at a
/// rate in parts per million do not after two and a half hours.
///
/// `down` is above zero, up * down and the result fit 64 bits.
constexpr std::int64_t scaled(std::int64_t value, std::int64_t up, std::int64_t down) {
  return value / down * up + value % down * up / down;
}

/// The same, rounded up.
constexpr std::int64_t scaled_up(std::int64_t value, std::int64_t up, std::int64_t down) {
  const std::int64_t almost_one = value > 0 ? down - 1 : 0;
  return value / down * up + (value % down * up + almost_one) / down;
}

}  // namespace leasehold
