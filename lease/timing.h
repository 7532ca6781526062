// The five numbers of a lease, the election timeout, and the two inequalities between them.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/instant.h>

#include <cstdint>

namespace leasehold::lease {

/// The timing of one group. The group's log holds it (raft/settings.h); what a node is started with
/// is what it would propose, and says what its own clocks are worth: a node whose bound is larger
/// than the group's promises longer, and uses less of a lease.
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
  /// How long a voter with this drift bound has to promise, on its own clock, so that its promise
  /// lasts at least as long as one of `promised` by a clock within `drift_ppm`: rounded up, and
  /// `promised` itself unless the own bound is the larger one. For any drift of 0 to 500000.
  Duration stretched(Duration promised, std::int64_t drift_ppm) const;

  /// Refuses a set that breaks one of the two inequalities, and quotes it with its numbers:
  ///   safety:       U = D * (1 - rho) / (1 + rho) - sigma > 0
  ///   availability: R + rtt + R (one retry) < U, and R <= U / 3
  /// and numbers outside their ranges: durations that are not positive (sigma may be zero), D or ET
  /// above one hour, rho outside [0, 500000].
  Result<void> validate() const;

  friend bool operator==(const Timing&, const Timing&) = default;
};

}  // namespace leasehold::lease
