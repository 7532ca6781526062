// Changes the members, now and then; some of the changes are impossible.
#pragma once

#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <vector>

namespace leasehold::sim {

/// Asks a node that believes that it leads for random members: nodes join as learners, are promoted
/// and demoted, and leave, several at once; now and then a node only has a new address. Nodes past
/// Plan::members start empty and know of no group.
class MemberChanges {
 public:
  MemberChanges(World& world, std::vector<SimNode*> nodes);
  /// Until the faults end.
  void start();

 private:
  void schedule_next();
  void change();
  raft::WantedMembers draw_wanted(const raft::Membership& newest);

  World& world_;
  std::vector<SimNode*> nodes_;
  Random random_;
};

}  // namespace leasehold::sim
