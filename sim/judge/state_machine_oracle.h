// What the state machines apply.
#pragma once

#include <leasehold/sim/judge/ledger.h>

#include <map>
#include <vector>

namespace leasehold::sim {

/// Judges, by the name that a violation carries:
///   state_machine_safety    an entry was applied that is not the committed one, or out of order,
///   or
///                           before it was durable there
/// and, as part of `monotonic`, that a snapshot moves no applied index back.
class StateMachineOracle {
 public:
  StateMachineOracle(World& world, const Ledger& ledger) : world_(world), ledger_(ledger) {}

  void on_start(const SimNode& node) { applied_[node.id()] = node.applied_at_start(); }
  void on_apply_asked(const SimNode& node, const std::vector<raft::Entry>& entries);
  void on_applied(const SimNode& node, const std::vector<raft::Entry>& entries);
  void on_install_asked(const SimNode& node, const raft::SnapshotId& id);
  void on_installed(const SimNode& node, const raft::SnapshotId& id, bool at_start);

 private:
  World& world_;
  const Ledger& ledger_;
  std::map<raft::NodeId, raft::Index> applied_;
};

}  // namespace leasehold::sim
