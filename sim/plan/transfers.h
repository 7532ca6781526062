// Transfers the leadership, now and then: to a node that is well, behind, cut off or down.
#pragma once

#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <vector>

namespace leasehold::sim {

class Transfers {
 public:
  Transfers(World& world, std::vector<SimNode*> nodes);
  /// Until the faults end.
  void start();

 private:
  void schedule_next();
  void transfer();

  World& world_;
  std::vector<SimNode*> nodes_;
  Random random_;
};

}  // namespace leasehold::sim
