// The leader's lease in true time, each judged on its own node's clock.
#pragma once

#include <leasehold/sim/judge/agreed_numbers.h>
#include <leasehold/sim/judge/ledger.h>

namespace leasehold::sim {

/// Judges, by the names that a violation carries:
///   two_leases              two published leases are valid at one instant
///   lease_and_newer_commit  a lease is valid though a higher term has committed an entry
///   lease_outlives_promise  a valid lease is not covered by a quorum of live, durable promises
///   lease_numbers           from now on a valid lease and the margin behind it could last longer
///                           than the promises of a quorum, if the clocks were as wrong as the
///                           group's settings and the nodes' own flags allow (agreed_numbers.h)
/// and, as part of `witness_serves`, that no witness shows a lease.
class LeaderLeaseOracle {
 public:
  LeaderLeaseOracle(World& world, const Ledger& ledger, const AgreedNumbers& numbers)
      : world_(world), ledger_(ledger), numbers_(numbers) {}

  void after_step();

 private:
  bool bound_to(const SimNode& voter, const SimNode& leader, raft::Term term) const;
  /// Whether nobody is elected without a voter that is bound to the lease and `lasts`.
  template <class Lasts>
  bool on_quorum(const SimNode& leader, raft::Term term, const Lasts& lasts) const;
  bool covered(const SimNode& leader, raft::Term term) const;
  void check_coverage(const SimNode& leader, raft::Term term);
  /// `used`: by the leader's clock, of which `slowest` ppm of true time may be all that it shows.
  bool outlasts(const SimNode& voter, Duration used, std::int64_t slowest) const;
  bool covered_for_good(const SimNode& leader, raft::Term term) const;
  void check_promises(const SimNode& leader, raft::Term term);

  World& world_;
  const Ledger& ledger_;
  const AgreedNumbers& numbers_;
};

}  // namespace leasehold::sim
