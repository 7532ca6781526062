// The leader's lease in true time, each judged on its own node's clock.
#pragma once

#include <leasehold/sim/judge/ledger.h>

namespace leasehold::sim {

/// Judges, by the names that a violation carries:
///   two_leases              two published leases are valid at one instant
///   lease_and_newer_commit  a lease is valid though a higher term has committed an entry
///   lease_outlives_promise  a valid lease is not covered by a quorum of live, durable promises
/// and, as part of `witness_serves`, that no witness shows a lease.
class LeaderLeaseOracle {
 public:
  LeaderLeaseOracle(World& world, const Ledger& ledger) : world_(world), ledger_(ledger) {}

  void after_step();

 private:
  bool bound_to(const SimNode& voter, const SimNode& leader, raft::Term term) const;
  bool covered(const SimNode& leader, raft::Term term) const;
  void check_coverage(const SimNode& leader, raft::Term term);

  World& world_;
  const Ledger& ledger_;
};

}  // namespace leasehold::sim
