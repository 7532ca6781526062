// Asks nodes to cut their logs, now and then, whatever else they are doing.
#pragma once

#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <vector>

namespace leasehold::sim {

/// What an operator does who saves the state now. Several demands may wait at one node. Judges, by
/// the names that a violation carries:
///   completion              a demand was answered twice
///   cut_answer              the answer is not true: the state machine is durable only below what
///                           it says, or below what it had applied when it was asked; or the log
///                           begins elsewhere
/// That the log itself is cut too far is for `cut_beyond_durable` (snapshot_oracle.h).
class CutDemands {
 public:
  CutDemands(World& world, std::vector<SimNode*> nodes);
  /// Until the faults end.
  void start();

 private:
  void schedule_next();
  void demand();
  void answered(const SimNode& node, const replica::LogCut& cut, raft::Index applied) const;

  World& world_;
  std::vector<SimNode*> nodes_;
  Random random_;
};

}  // namespace leasehold::sim
