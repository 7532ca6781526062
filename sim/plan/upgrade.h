// Restarts that change the version which a node runs.
#pragma once

#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <vector>

namespace leasehold::sim {

/// The rolling upgrade of UpgradePlan: one node at a time ends and starts again, in the version
/// that its start draws.
class Upgrade {
 public:
  Upgrade(World& world, std::vector<SimNode*> nodes);
  void start();

 private:
  void schedule_next();
  void restart_some();
  void restart(SimNode& node);

  World& world_;
  std::vector<SimNode*> nodes_;
  Random random_;
};

}  // namespace leasehold::sim
