// The replica that a simulated process runs, and what the simulator looks at in it.
#pragma once

#include <leasehold/net/transport.h>
#include <leasehold/raft/core.h>
#include <leasehold/replica/apply.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/process_driver.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// What a process begins with whose groups share promises.
struct SharedProcess {
  raft::ProcessOptions options;
  std::vector<raft::RememberedSupport> remembered;
  replica::SupportStore& store;
  /// Whether its disk makes progress; asked in each turn.
  std::function<bool(lease::Now)> healthy;
};

/// The other groups of the process, in the turns of its first one.
class OtherGroups {
 public:
  virtual ~OtherGroups() = default;
  virtual void give(raft::GroupId group, replica::Event event) = 0;
  /// The process of a node has: for all of them.
  virtual void ended(const replica::PeerEnded& ended) = 0;
  virtual void turns(lease::Now now) = 0;
  virtual raft::PromiseInstant next_deadline() const = 0;
};

/// A Driver of this code, or one of an earlier version (tests/mixed). The first functions are those
/// of replica::Driver, the others show the state of its core.
class RunningReplica {
 public:
  /// As replica::Driver::Ports. All outlive the replica.
  struct Ports {
    net::Transport& transport;
    storage::Storage& storage;
    replica::Applier& applier;
    replica::Snapshots& snapshots;
    replica::LeaseView& view;
    replica::Observer& observer;
    /// Null: the process shares no promises, or is of an earlier version.
    const SharedProcess* shared = nullptr;
    OtherGroups* others = nullptr;  ///< on the promises that are shared
  };

  RunningReplica() = default;
  RunningReplica(const RunningReplica&) = delete;
  RunningReplica& operator=(const RunningReplica&) = delete;
  virtual ~RunningReplica() = default;

  virtual void handle_batch(lease::Now now, std::vector<replica::Event>& events) = 0;
  virtual std::vector<std::function<void()>> take_completions() = 0;
  virtual raft::PromiseInstant next_deadline() const = 0;
  virtual raft::Index applied() const = 0;
  virtual const std::optional<Error>& failure() const = 0;
  /// Completes the calls for what its applier has applied: replica::complete().
  virtual replica::Applied complete(replica::AppliedEntries applied) = 0;

  virtual raft::Role role() const = 0;
  virtual raft::Term term() const = 0;
  virtual raft::Index commit_index() const = 0;
  virtual raft::Index durable_index() const = 0;
  virtual const lease::Timing& timing() const = 0;
  virtual const raft::Membership& membership() const = 0;
  virtual raft::StoredPromise stored_promise() const = 0;
  /// Of its promise; a promise lives while the clock is before it.
  virtual raft::PromiseInstant promise_until() const = 0;
  virtual raft::LogId log_base() const = 0;
  virtual raft::LogId log_last() const = 0;
  /// None: below the base, or above the last entry.
  virtual std::optional<raft::Term> term_at(raft::Index index) const = 0;
  virtual raft::Membership membership_at(raft::Index index) const = 0;
  /// It leads, and a peer gets a snapshot.
  virtual bool sends_snapshot() const = 0;
  /// Null: the process shares no promises.
  virtual replica::ProcessDriver* process() { return nullptr; }
  /// Null: it is of an earlier version. For what only this version can be asked.
  virtual const raft::Core* present_core() const = 0;
};

/// Makes one at the start of a process.
using MakeReplica = std::function<std::unique_ptr<RunningReplica>(
    const replica::DriverOptions& options, raft::InitialState initial,
    const RunningReplica::Ports& ports, lease::Now now)>;

/// Of this code.
std::unique_ptr<RunningReplica> make_replica(const replica::DriverOptions& options,
                                             raft::InitialState initial,
                                             const RunningReplica::Ports& ports, lease::Now now);

}  // namespace leasehold::sim
