// The thread that applies.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/apply.h>
#include <leasehold/node/callers.h>
#include <leasehold/node/driver.h>
#include <leasehold/node/lease_view.h>
#include <leasehold/node/state_machine.h>
#include <leasehold/raft/entry.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

namespace leasehold::node {

/// Applies each call on its own thread, publishes the index, completes the callers, then tells
/// `done` there. Its queue is bounded by DriverOptions::applies_max, and one install().
class ApplyThread final : public Applier {
 public:
  using Done = std::function<void(Result<Applied>)>;
  /// Puts the snapshot that has arrived into the state machine.
  using Install = std::function<Result<void>(const raft::SnapshotId&)>;

  /// `machine`, `view` and `callers` outlive it.
  ApplyThread(StateMachine& machine, LeaseView& view, Callers& callers, raft::NodeId id,
              raft::Incarnation incarnation, Install install, Done done);
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
  Result<AppliedEntries> run(const Call& call);
  void run();

  StateMachine& machine_;
  LeaseView& view_;
  Callers& callers_;
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
