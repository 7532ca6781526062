// The log is cut at the front, and a peer that needs what was cut off gets a snapshot (Raft paper,
// section 7).

#include <leasehold/base/assert.h>
#include <leasehold/raft/core.h>

namespace leasehold::raft {

// Nothing calls any of these yet, and no peer sends a chunk: the log is not cut.

void Core::cut_log(Now /*now*/, Index /*to*/) {
  LEASEHOLD_UNREACHABLE();
}

bool Core::stamp(const SnapshotIntent& /*intent*/, SnapshotChunk& /*chunk*/) const {
  LEASEHOLD_UNREACHABLE();
}

bool Core::current(const SnapshotIntent& /*intent*/) const {
  LEASEHOLD_UNREACHABLE();
}

void Core::snapshot_ended(Now /*now*/, const SnapshotIntent& /*intent*/) {
  LEASEHOLD_UNREACHABLE();
}

void Core::chunk_stored(Now /*now*/, const StoredChunk& /*stored*/) {
  LEASEHOLD_UNREACHABLE();
}

bool Core::snapshot_received(Now /*now*/, const SnapshotId& /*id*/,
                             const Membership& /*membership*/) {
  LEASEHOLD_UNREACHABLE();
}

void Core::handle(NodeId /*from*/, SnapshotChunk& /*m*/) {
  LEASEHOLD_UNREACHABLE();
}

void Core::handle(NodeId /*from*/, const SnapshotReply& /*m*/) {
  LEASEHOLD_UNREACHABLE();
}

}  // namespace leasehold::raft
