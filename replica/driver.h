// The ordering loop of one replica: it feeds the core, carries out its effects in their order, and
// completes the callers.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/net/transport.h>
#include <leasehold/raft/core.h>
#include <leasehold/replica/counters.h>
#include <leasehold/replica/driver_event.h>
#include <leasehold/replica/lease_view.h>
#include <leasehold/replica/limits.h>
#include <leasehold/replica/observer.h>
#include <leasehold/replica/ports.h>
#include <leasehold/storage/storage.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace leasehold::replica {

class Callers;
class Tap;

struct DriverOptions : Limits {
  raft::CoreOptions core;
};

/// Commands that wait for their result, and reads through the log: all, and those in each list.
/// Each is in one list at most, and in none once it has ended.
struct ProposalPlaces {
  std::size_t all = 0;
  std::size_t held = 0;         ///< until a leader is known, or until the next try
  std::size_t queued = 0;       ///< for the next append of this leader; forwarded ones too
  std::size_t forwarded = 0;    ///< sent to the present leader, and perhaps again
  std::size_t uncommitted = 0;  ///< log entries of this leader, of which the callers may be gone
};

/// A witness (CoreOptions::witness) refuses Propose, Read and WaitApplied at once, with a member to
/// ask as the leader of the answer. Its Applier gets entries like any other; Applier::install()
/// then names the new beginning of the log, and there is nothing to install.
///
/// Passive: one handle(event) at a time, on one thread; no asio, no mutex, no clock, no thread of
/// its own. The production Node and the simulator both drive this class.
class Driver {
 public:
  /// The parts that the driver uses. All outlive it.
  struct Ports {
    net::Transport& transport;
    storage::Storage& storage;
    Applier& applier;
    Snapshots& snapshots;
    LeaseView& view;
    Callers& callers;
    Observer& observer;
  };

  Driver(const DriverOptions& options, raft::InitialState initial, Ports ports, lease::Now now);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Handles one input and carries out all effects that follow from it. `now` was sampled after the
  /// event was in memory.
  void handle(lease::Now now, Event event);
  /// The same for several inputs at once, in order: one set of effects for all of them, so commands
  /// that wait together share an append and a disk write. Leaves `events` empty.
  void handle_batch(lease::Now now, std::vector<Event>& events);

  /// The completions that became due in handle(), in order: of calls that ended in any other way
  /// than by an applied command (see Applier). The caller runs them after handle() has returned,
  /// never inside it, each exactly once.
  std::vector<std::function<void()>> take_completions();

  /// Gives back the memory that earlier turns took and that nothing uses now. Outside of
  /// handle().
  void give_back();

  /// Shows `tap` what passes from the next turn on, in place of the one before; null: nobody looks.
  /// Outside of handle().
  void tap(std::shared_ptr<Tap> tap);

  /// Where promises are shared (CoreOptions::shared): Ports::view shows leases that rest on these.
  void rest_on(const LeaseEnds& ends);
  /// Where promises are shared: what became due in handle(), for the next beat of the process.
  std::vector<raft::Release> take_releases();

  /// When the next Tick is due.
  raft::PromiseInstant next_deadline() const;

  raft::GroupId group() const;
  const raft::Core& core() const;
  raft::Index applied() const;
  const DriverCounters& counters() const;
  /// The number of waiting callers.
  std::size_t pending() const;
  ProposalPlaces proposals() const;
  /// Whether the next Applied lets this driver do something: complete a read, send a command again,
  /// or give the applier more. Otherwise it may be handled together with the next event.
  bool awaits_applied() const;
  /// Snapshots that are on their way to or from this node.
  std::vector<SnapshotTransfer> transfers() const;
  /// Payload bytes of the entries that the log holds, about.
  std::uint64_t log_bytes() const;
  /// The index that the state machine has made durable, as far as this driver knows.
  raft::Index machine_durable() const;
  /// The state machine cannot be made durable: the log is never cut.
  bool log_never_cut() const;
  /// The disk of the log, or of the state machine, is full: the node refuses commands.
  bool disk_full() const;
  /// Why the node has to stop, if it has to.
  const std::optional<Error>& failure() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::replica
