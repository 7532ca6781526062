// The thread that applies committed entries to the state machine.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/entry.h>
#include <leasehold/replica/apply.h>
#include <leasehold/replica/callers.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/lease_view.h>
#include <leasehold/replica/state_machine.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

namespace leasehold::node {

/// Applies each call on its own thread, publishes the index, completes the callers, then tells
/// `done` there. Its queue is bounded by Limits::applies_max, and one install().
class ApplyThread final : public replica::Applier {
 public:
  using Done = std::function<void(Result<replica::Applied>)>;
  /// Puts the snapshot that has arrived into the state machine.
  using Install = std::function<Result<void>(const raft::SnapshotId&)>;

  /// `machine`, `view` and `callers` outlive it.
  ApplyThread(replica::StateMachine& machine, replica::LeaseView& view, replica::Callers& callers,
              raft::NodeId id, raft::Incarnation incarnation, Install install, Done done);
  /// Calls stop().
  ~ApplyThread() override;
  ApplyThread(const ApplyThread&) = delete;
  ApplyThread& operator=(const ApplyThread&) = delete;

  void apply(std::vector<raft::Entry> entries) override;
  void install(const raft::SnapshotId& id) override;
  /// Ends the call that is under way, forgets the rest, joins the thread. Idempotent.
  void stop();

 private:
  using Call = std::variant<std::vector<raft::Entry>, raft::SnapshotId>;

  void add(Call call);
  Result<replica::AppliedEntries> run(const Call& call);
  void run();

  replica::StateMachine& machine_;
  replica::LeaseView& view_;
  replica::Callers& callers_;
  const raft::NodeId id_;
  const raft::Incarnation incarnation_;
  const Install install_;
  const Done done_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace leasehold::node
