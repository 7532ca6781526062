// One partition of a named shape, and whether one stable leader comes out of it.
#pragma once

#include <leasehold/sim/world/sim_network.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace leasehold::sim {

/// Cuts links once, while nothing else goes wrong, and judges what follows.
///
/// From ten election timeouts after the last promise to a leader of before can have ended, there is
/// one leader with a valid lease, always the same, if any node can be elected at all: a voter whose
/// log is as new as those of a majority with which it speaks both ways. Where a majority speaks
/// with each other there is such a voter, the one among them with the newest log. In a ring or a
/// chain of five there may be none: the only nodes that reach a majority may each have a
/// neighbour whose log is newer (Ng et al., "Omni-Paxos", 2023, section 2: constrained election).
/// That is Raft's own limit, and counted.
class PartitionTrial {
 public:
  PartitionTrial(World& world, std::vector<SimNode*> nodes, SimNetwork& network);

  /// Until the faults end. SimOptions::shape is set.
  void start();
  /// Just before the faults end: the leader is still the one that was found.
  void finish();
  TrialOutcome outcome() const { return outcome_; }

 private:
  using Heard = std::vector<std::vector<bool>>;  ///< by sender and receiver

  Heard draw() const;
  void cut();
  void look();
  bool both_ways(std::size_t a, std::size_t b) const { return heard_[a][b] && heard_[b][a]; }
  bool electable(std::size_t node) const;
  /// The one node that leads under a valid lease.
  SimNode* leader() const;
  std::string describe() const;

  World& world_;
  std::vector<SimNode*> nodes_;
  SimNetwork& network_;
  mutable Random random_;
  Heard heard_;
  SimNode* found_ = nullptr;
  raft::Term term_;
  TrialOutcome outcome_ = TrialOutcome::none;
};

}  // namespace leasehold::sim
