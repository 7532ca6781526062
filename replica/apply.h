// From committed entries to the state machine: the parts of one call of every Applier.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/entry.h>
#include <leasehold/replica/callers.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/state_machine.h>

#include <cstdint>
#include <vector>

namespace leasehold::replica {

/// A command that this process proposed, and its result.
struct AppliedCommand {
  std::uint64_t sequence = 0;
  raft::LogId id;
  Bytes result;  ///< empty for a read through the log
};
struct AppliedEntries {
  raft::Index last;
  std::vector<AppliedCommand> own;
};

/// Strips the envelopes and applies the commands of `entries` to `machine` in one call. `own` are
/// the commands that this process (`id`, `incarnation`) proposed, reads through the log (empty
/// commands) included.
///
/// Error unsupported_format or malformed: a committed command does not decode. The node has to
/// stop: skipping the command would make the replicas differ.
Result<AppliedEntries> apply_entries(const std::vector<raft::Entry>& entries, raft::NodeId id,
                                     raft::Incarnation incarnation, StateMachine& machine);

/// Completes the waiting callers, and returns the event for the driver. Call it after `last` is
/// published in the LeaseView: a caller whose write is complete may read it everywhere on this
/// node.
Applied complete(AppliedEntries applied, Callers& callers);

}  // namespace leasehold::replica
