// Applies committed entries to the state machine of a group, on a thread of a pool.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/node_work_pool.h>
#include <leasehold/raft/entry.h>
#include <leasehold/replica/apply.h>
#include <leasehold/replica/callers.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/lease_view.h>
#include <leasehold/replica/state_machine.h>

#include <functional>
#include <vector>

namespace leasehold::node {

/// Applies each call, publishes the index, completes the callers, then tells `done`, all on a
/// thread of the pool. What waits is bounded by Limits::applies_max, and one install().
class GroupApplier final : public replica::Applier {
 public:
  using Done = std::function<void(Result<replica::Applied>)>;
  /// Puts the snapshot that has arrived into the state machine.
  using Install = std::function<Result<void>(const raft::SnapshotId&)>;

  /// `pool`, `machine`, `view` and `callers` outlive it.
  GroupApplier(WorkPool& pool, replica::StateMachine& machine, replica::LeaseView& view,
               replica::Callers& callers, raft::NodeId id, raft::Incarnation incarnation,
               Install install, Done done);

  void apply(std::vector<raft::Entry> entries) override;
  void install(const raft::SnapshotId& id) override;
  /// Ends the call that is under way, and forgets the rest. Idempotent.
  void stop() { line_.leave(); }

 private:
  void finish(Result<replica::AppliedEntries> applied);

  replica::StateMachine& machine_;
  replica::LeaseView& view_;
  replica::Callers& callers_;
  const raft::NodeId id_;
  const raft::Incarnation incarnation_;
  const Install install_;
  const Done done_;
  /// Of the line's tasks: nothing is applied behind a failure.
  bool failed_ = false;
  WorkPool::Line line_;
};

}  // namespace leasehold::node
