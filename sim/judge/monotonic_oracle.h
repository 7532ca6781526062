// What may never move back.
#pragma once

#include <leasehold/raft/ready.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <map>

namespace leasehold::sim {

/// Judges, by the name that a violation carries:
///   monotonic               a term, a commit index, an applied index (state_machine_oracle.h) or a
///                           lease end moved back, and no change of the settings asks for that
class MonotonicOracle {
 public:
  explicit MonotonicOracle(World& world) : world_(world) {}

  void on_start(const SimNode& node);
  void after_handle(const SimNode& node);

 private:
  struct Memory {
    raft::Term term;
    raft::Index commit;  ///< of the present process
    raft::LeaseState lease;
    lease::Timing timing;  ///< that it follows
    bool joint = false;    ///< its newest membership
  };

  World& world_;
  std::map<raft::NodeId, Memory> memories_;
};

}  // namespace leasehold::sim
