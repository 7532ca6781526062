// Makes things go wrong: what, where and when, as the plan allows.
#pragma once

#include <leasehold/sim/judge/oracles.h>
#include <leasehold/sim/plan/cuts.h>
#include <leasehold/sim/plan/duel.h>
#include <leasehold/sim/world/sim_network.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// Triggers faults until heal(). Half of them hit the leader. Bad links, disks and threads are in
/// the plan and need no trigger.
class Faults {
 public:
  Faults(World& world, std::vector<SimNode*> nodes, SimNetwork& network, const Oracles& oracles);

  /// Starts all nodes, each with its own skew.
  void start_nodes();
  /// The same, and the faults.
  void start();
  /// Every fault ends and every node runs.
  void heal();
  /// What the nodes rely on has changed (agreed_numbers.h).
  void keep_bounds();

 private:
  void set_rates(SimNode& node);
  std::int64_t most_drift(const SimNode& node) const;
  std::int64_t draw_rate(const SimNode& node);
  void schedule_next();
  void one_fault(bool happens);
  void trigger(FaultClass fault);
  SimNode& draw_target();
  SimNode* leader();
  void crash(SimNode& node, bool quick);
  void crash_some();
  void pause(SimNode& node, Duration longest);
  void schedule_straggler();
  void straggle(SimNode& node);
  void partition();
  void one_way_cut();
  /// Of what is under way nothing, half or all is lost.
  void cut(Links links, Duration length) {
    cuts_.cut(std::move(links), length, 50 * random_.below(3));
  }
  void force_leader_change();
  bool letting_up() const { return world_.queue.now() < let_up_until_; }
  void let_up();
  void isolate(const SimNode& node, Duration length) { cut(cuts_.links_of(node), length); }
  Duel::Ports duel_ports();
  void on_elected(SimNode& node);
  void on_commit(SimNode& node, raft::Index before);
  void at_once(const SimNode& node, EventQueue::Action action);
  void set_rates_against(const SimNode& leader);
  void hunt(SimNode& node);
  void strike(SimNode& node);
  void leave_with_a_stalled_voter(const SimNode& leader);
  /// Processes that died by themselves (a failed disk, a crash at a send) start again.
  void revive();

  World& world_;
  std::vector<SimNode*> nodes_;
  SimNetwork& network_;
  const Oracles& oracles_;
  Random random_;
  Random straggler_random_;
  std::vector<FaultClass> choices_;
  Cuts cuts_;
  Duel duel_;
  /// Until then, only a leader change is triggered.
  TrueInstant let_up_until_;
  /// What the newest leader may still commit before the faults leave it alone.
  int young_commits_ = 0;
};

}  // namespace leasehold::sim
