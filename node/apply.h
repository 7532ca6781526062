// From committed entries to the state machine: what every Applier does with one call.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/driver.h>
#include <leasehold/node/state_machine.h>
#include <leasehold/raft/entry.h>

#include <vector>

namespace leasehold::node {

/// Strips the envelopes, applies the commands of `entries` to `machine` in one call, and returns
/// the event for the driver: `own` holds the results of the commands that this process (`id`,
/// `incarnation`) proposed, reads through the log (empty commands) included. Publishing `last` in
/// the LeaseView, and only then handing the event over, is the caller's part.
///
/// Error unsupported_format or malformed: a committed command does not decode. The node has to
/// stop, because passing over it would let the replicas drift apart.
Result<Applied> apply_entries(const std::vector<raft::Entry>& entries, raft::NodeId id,
                              raft::Incarnation incarnation, StateMachine& machine);

}  // namespace leasehold::node
