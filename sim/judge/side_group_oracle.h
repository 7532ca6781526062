// What must hold of the side groups of the simulated processes.
#pragma once

#include <leasehold/sim/judge/ledger.h>

#include <map>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// Judges, by the names that a violation carries:
///   side_two_leases   two published leases of one group are valid at one instant, or one is valid
///                     though a higher term has committed an entry
///   side_log          two replicas have committed different entries, or a new leader lacks one
/// and, as part of `liveness`, that each group has a leader when the faults have ended.
class SideGroupOracle {
 public:
  SideGroupOracle(World& world, const Ledger& ledger) : world_(world), ledger_(ledger) {}

  void after_turn(const SideGroup& group);
  void check_recovered();

 private:
  /// Of a group: the terms of the entries that are committed, from the first on.
  using Terms = std::vector<raft::Term>;

  void check_log(const SideGroup& group, Terms& committed);
  void check_leases(raft::GroupId group, const Terms& committed);
  template <class See>
  void each_replica(raft::GroupId group, const See& see) const;

  World& world_;
  const Ledger& ledger_;
  std::map<raft::GroupId, Terms> committed_;
};

}  // namespace leasehold::sim
