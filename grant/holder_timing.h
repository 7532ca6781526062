// The five numbers of a lease that a client holds, and the two inequalities between them.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/instant.h>

#include <cstdint>

namespace leasehold::grant {

/// The timing of one client's lease, as Timing is that of the leader's own. The store that granted
/// the lease ends it `ttl` after its last renewal, on the store's clock; the holder stops before.
struct HolderTiming {
  /// TTL: how long the store keeps the lease after a renewal. A holder that dies blocks the others
  /// for this time. Whole milliseconds, 1 ms to ten years. Default 10 s.
  lease::Duration ttl = std::chrono::seconds(10);
  /// R: the longest pause between two renewals; each is drawn from the last quarter of it, so that
  /// many holders do not renew at one moment. At most a third of the usable lease. Default 2 s.
  lease::Duration renewal = std::chrono::seconds(2);
  /// rho, in parts per million: the rate of the holder's clock and that of the store stay within
  /// [1 - rho, 1 + rho] of true time. Default 10 %.
  std::int64_t max_clock_drift_ppm = 100'000;
  /// rtt: the longest round trip that a healthy renewal may take. One that takes longer is given up
  /// and tried again. Default 500 ms.
  lease::Duration max_round_trip = std::chrono::milliseconds(500);
  /// sigma: the part that the holder leaves unused at the end of every lease, in which it may stop
  /// its work. Zero is safe only for a holder that stops at once. Default 1 s.
  lease::Duration margin = std::chrono::seconds(1);

  /// U = TTL * (1 - rho) / (1 + rho) - sigma, rounded down: how long the holder may act, on its own
  /// clock and counted from when it *sent* the request that was answered.
  lease::Duration usable() const { return usable(ttl); }
  /// The same of a time to live that the store has answered.
  lease::Duration usable(lease::Duration granted) const;
  /// granted * (1 + rho) / (1 - rho), rounded down: how much the holder's clock counts at the most
  /// while the store counts `granted`. This is the other extreme of the clocks' error: use it to
  /// decide whether to keep trying, never to decide whether to act.
  lease::Duration longest(lease::Duration granted) const;

  /// Refuses a set that breaks one of the two inequalities, and quotes it with its numbers:
  ///   safety:       U = TTL * (1 - rho) / (1 + rho) - sigma > 0
  ///   availability: R + rtt + R (one retry) < U, and R <= U / 3
  /// and numbers outside their ranges. Errors: invalid_argument.
  Result<void> validate() const;

  /// Measurements of a holder and of its connection to the store.
  struct Measured {
    /// The longest round trip of a healthy renewal: a p99.9, not a mean.
    lease::Duration round_trip{0};
    std::int64_t max_clock_drift_ppm = 100'000;
    /// The longest pause of the process that the lease should survive: a garbage collection, a
    /// stall of the machine.
    lease::Duration worst_pause{0};
    /// How long it takes to stop the work under the lease.
    lease::Duration stopping{0};
  };
  /// The shortest time to live, in whole milliseconds, with which a holder keeps its lease when one
  /// renewal fails and when it pauses for `worst_pause` at the worst moment; and the numbers that
  /// belong to it. Errors: invalid_argument, for negative numbers and a lease above ten years.
  static Result<HolderTiming> fit(const Measured& measured);
};

}  // namespace leasehold::grant
