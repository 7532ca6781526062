// From committed entries to the state machine: what every Applier does with one call.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/entry.h>
#include <leasehold/replica/callers.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/state_machine.h>

#include <cstdint>
#include <vector>

namespace leasehold::replica {

/// A command that this process proposed, and what came of it.
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
/// stop, because passing over it would let the replicas drift apart.
Result<AppliedEntries> apply_entries(const std::vector<raft::Entry>& entries, raft::NodeId id,
                                     raft::Incarnation incarnation, StateMachine& machine);

/// Tells those who wait, and gives the event for the driver. After `last` is published in the
/// LeaseView: who was told of a write may read it everywhere on this node.
Applied complete(AppliedEntries applied, Callers& callers);

}  // namespace leasehold::replica
