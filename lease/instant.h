// Two kinds of instant that do not mix, and the pair of them that every input carries.
//
// The holder of a lease ages it on a clock that counts time spent suspended (CLOCK_BOOTTIME): it
// must never believe that less time has passed than has. A voter ages its promise on a clock that
// stands still in suspend (CLOCK_MONOTONIC): after a suspend it waits longer than it promised,
// which is safe. A value of one kind cannot be compared with a value of the other; the compiler
// refuses it.
#pragma once

#include <leasehold/base/assert.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace leasehold::lease {

/// A span of time in nanoseconds, 64 bits, signed. Never ticks, never wall time, never 32-bit
/// milliseconds.
using Duration = std::chrono::nanoseconds;
static_assert(sizeof(Duration::rep) == 8 && std::is_signed_v<Duration::rep>);
static_assert(std::is_same_v<Duration::period, std::nano>);

/// A point on one node's clock of kind `Tag`. Means nothing on another node and never crosses the
/// wire.
template <class Tag>
class Instant {
 public:
  constexpr Instant() = default;
  constexpr explicit Instant(Duration since_origin) : since_origin_(since_origin) {}

  /// Before every instant that a clock can show.
  static constexpr Instant earliest() {
    return Instant(Duration(std::numeric_limits<Duration::rep>::min()));
  }
  /// After every instant that a clock can show.
  static constexpr Instant never() {
    return Instant(Duration(std::numeric_limits<Duration::rep>::max()));
  }

  constexpr Duration since_origin() const { return since_origin_; }

  friend constexpr bool operator==(Instant, Instant) = default;
  friend constexpr auto operator<=>(Instant a, Instant b) {
    return a.since_origin_.count() <=> b.since_origin_.count();
  }
  /// Saturates at never() and earliest(), so that "never + D" stays never.
  friend constexpr Instant operator+(Instant a, Duration d) {
    Duration::rep sum = 0;
    if (a == never() || a == earliest()) return a;
    if (__builtin_add_overflow(a.since_origin_.count(), d.count(), &sum)) {
      return d.count() > 0 ? never() : earliest();
    }
    return Instant(Duration(sum));
  }
  friend constexpr Instant operator-(Instant a, Duration d) {
    LEASEHOLD_ASSERT(d != Duration::min());  // cannot be negated
    return a + Duration(-d.count());
  }
  friend constexpr Duration operator-(Instant a, Instant b) {
    return a.since_origin_ - b.since_origin_;
  }

 private:
  Duration since_origin_{0};
};

/// On the clock that ages a held lease: counts suspend.
using HolderInstant = Instant<struct HolderClockTag>;
/// On the clock that ages a voter's promise, and every timer: stands still in suspend.
using PromiseInstant = Instant<struct PromiseClockTag>;

/// The time of one input: both clocks, sampled together after the input was in memory.
struct Now {
  HolderInstant holder;
  PromiseInstant promise;
};

}  // namespace leasehold::lease
