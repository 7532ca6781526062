// The five numbers of a lease, the election timeout, and the two inequalities between them.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/instant.h>

#include <cstdint>

namespace leasehold::lease {

/// The timing of one cluster. The lease numbers should be the same on every node; nodes that differ
/// stay safe, because D travels with each round and a voter promises the larger of its own and the
/// round's.
struct Timing {
  /// D: a voter promises with each acknowledged heartbeat to elect nobody else for this time. A
  /// longer lease survives longer pauses of the leader; after a crash the cluster waits until it is
  /// over. Up to one hour. Default 1 s.
  Duration lease = std::chrono::milliseconds(1000);
  /// R: how often the leader renews, by a heartbeat to every peer. At most a third of the usable
  /// lease, so that two lost renewals in a row do not cost it. Default 100 ms.
  Duration heartbeat = std::chrono::milliseconds(100);
  /// rho, in parts per million: each clock's rate stays within [1 - rho, 1 + rho] of true time. The
  /// default, 10 %, covers clocks that are being slewed (chrony allows 8.3 %).
  std::int64_t max_clock_drift_ppm = 100'000;
  /// rtt: the longest round trip, disk of the voter included, that a healthy renewal may take.
  /// Default 50 ms.
  Duration max_round_trip = std::chrono::milliseconds(50);
  /// sigma: the part that the holder leaves unused at the end of every lease. Default 10 ms.
  Duration margin = std::chrono::milliseconds(10);
  /// ET: each election timeout is drawn from [ET, 2 ET). Default 300 ms.
  Duration election_timeout = std::chrono::milliseconds(300);

  /// U(D) = D * (1 - rho) / (1 + rho) - sigma, rounded down: how long, on its own clock and counted
  /// from the send, the holder may use a promise of `promised`. The voter's clock may run fast by
  /// rho and the holder's slow by rho.
  Duration usable(Duration promised) const;

  /// Refuses a set that breaks one of the two inequalities, and quotes it with its numbers:
  ///   safety:       U = D * (1 - rho) / (1 + rho) - sigma > 0
  ///   availability: R + rtt + R (one retry) < U, and R <= U / 3
  /// and numbers outside their ranges: durations that are not positive (sigma may be zero), D or ET
  /// above one hour, rho outside [0, 500000].
  Result<void> validate() const;
};

}  // namespace leasehold::lease
