// Makes things go wrong: what, where and when, as the plan allows.
#pragma once

#include <leasehold/sim/oracles.h>
#include <leasehold/sim/sim_network.h>
#include <leasehold/sim/sim_node.h>
#include <leasehold/sim/world.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// Triggers faults until heal(). Half of them hit the leader; what merely makes links, disks and
/// threads bad is in the plan and goes on by itself.
class Faults {
 public:
  Faults(World& world, std::vector<SimNode*> nodes, SimNetwork& network, const Oracles& oracles);

  /// Starts all nodes, each with its own skew, and the faults.
  void start();
  /// Every fault ends and every node runs.
  void heal();

 private:
  void set_rates(SimNode& node);
  std::int64_t draw_rate();
  void schedule_next();
  void one_fault();
  void trigger(FaultClass fault);
  SimNode& draw_target();
  SimNode* leader();
  void crash(SimNode& node, bool quick);
  void crash_some();
  void pause(SimNode& node, Duration longest);
  void partition();
  void one_way_cut();
  void cut(const std::vector<std::pair<std::size_t, std::size_t>>& links, Duration length);
  void force_leader_change();
  void isolate(const SimNode& node, Duration length);
  void on_elected(SimNode& node);
  void strike(SimNode& node);
  void leave_with_a_stalled_voter(const SimNode& leader);
  /// Processes that died of themselves (a failed disk, a crash at a send) start again.
  void revive();

  World& world_;
  std::vector<SimNode*> nodes_;
  SimNetwork& network_;
  const Oracles& oracles_;
  Random random_;
  std::vector<FaultClass> choices_;
};

}  // namespace leasehold::sim
