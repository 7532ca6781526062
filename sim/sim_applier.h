// Applies committed entries to a node's registers, at a later simulated instant.
#pragma once

#include <leasehold/node/driver.h>
#include <leasehold/sim/register_machine.h>
#include <leasehold/sim/sim_disk.h>

#include <deque>
#include <functional>
#include <vector>

namespace leasehold::sim {

/// One process's apply thread. Answers each call, in order, with one Applied event.
class SimApplier : public node::Applier {
 public:
  struct Ports {
    RegisterMachine& machine;
    node::LeaseView& view;
    RunInProcess run;
    std::function<void(node::Event)> post;
    /// Told of each call before anything is applied, and of each run after it.
    std::function<void(const std::vector<raft::Entry>&)> asked;
    std::function<void(const std::vector<raft::Entry>&)> applied;
  };
  SimApplier(World& world, raft::NodeId node, raft::Incarnation incarnation, Ports ports);

  void apply(std::vector<raft::Entry> entries) override;
  void install(const raft::SnapshotId& id) override;

 private:
  void start_next();
  void finish();

  World& world_;
  const raft::NodeId node_;
  const raft::Incarnation incarnation_;
  Ports ports_;
  Random random_;
  bool busy_ = false;
  /// Bounded by DriverOptions::applies_max.
  std::deque<std::vector<raft::Entry>> waiting_;
};

}  // namespace leasehold::sim
