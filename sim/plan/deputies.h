// Notices of the end of a process.
#pragma once

#include <leasehold/sim/world/sim_network.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <vector>

namespace leasehold::sim {

/// What the deputies of DeputyPlan do: when a process has died and its machine lives, each other
/// node gets a notice: soon, late, more than once, or never.
class Deputies {
 public:
  Deputies(World& world, std::vector<SimNode*> nodes, SimNetwork& network);
  void process_died(const SimNode& node);

 private:
  void send(const raft::Peer& ended, SimNode& to, Duration longest);

  World& world_;
  std::vector<SimNode*> nodes_;
  SimNetwork& network_;
  Random random_;
};

}  // namespace leasehold::sim
