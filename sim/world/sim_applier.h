// Applies committed entries to a node's registers, at a later simulated instant.
#pragma once

#include <leasehold/node/witness_machine.h>
#include <leasehold/replica/apply.h>
#include <leasehold/replica/driver.h>
#include <leasehold/sim/world/register_machine.h>
#include <leasehold/sim/world/sim_disk.h>
#include <leasehold/sim/world/sim_snapshots.h>

#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace leasehold::sim {

/// One process's apply thread. Answers each call, in order, with one Applied event.
class SimApplier : public replica::Applier {
 public:
  struct Ports {
    RegisterMachine& machine;
    /// What install() installs.
    std::optional<StagedSnapshot>& staged;
    replica::LeaseView& view;
    RunInProcess run;
    std::function<void(replica::Event)> post;
    /// RunningReplica::complete().
    std::function<replica::Applied(replica::AppliedEntries)> complete;
    /// Called with each call before anything is applied, and with each run after it.
    std::function<void(const std::vector<raft::Entry>&)> asked;
    std::function<void(const std::vector<raft::Entry>&)> applied;
    /// The same of a snapshot. It is durable when the second is called, and the third is called
    /// when the callers know.
    std::function<void(const raft::SnapshotId&)> install_asked;
    std::function<void(const raft::SnapshotId&)> installed;
    std::function<void()> install_known;
    /// Null, or in place of `machine`.
    node::WitnessMachine* witness = nullptr;
  };
  SimApplier(World& world, raft::NodeId node, raft::Incarnation incarnation, Ports ports);

  void apply(std::vector<raft::Entry> entries) override;
  void install(const raft::SnapshotId& id) override;
  /// A snapshot waits to be installed, or is being installed.
  bool installing() const { return installs_ > 0; }

 private:
  /// One call: entries, or a snapshot in their place.
  struct Call {
    std::vector<raft::Entry> entries;
    std::optional<raft::SnapshotId> snapshot;
  };
  void add(Call call);
  void start_next();
  void finish();
  replica::StateMachine& machine();
  void install_now(const raft::SnapshotId& id);
  void installed(const raft::SnapshotId& id);
  void end(replica::Applied answer);

  World& world_;
  const raft::NodeId node_;
  const raft::Incarnation incarnation_;
  Ports ports_;
  Random random_;
  bool busy_ = false;
  int installs_ = 0;
  /// Bounded by Limits::applies_max.
  std::deque<Call> waiting_;
};

}  // namespace leasehold::sim
