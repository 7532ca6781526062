// The counters of a Driver, and the snapshots under way.
#pragma once

#include <leasehold/raft/types.h>

#include <cstdint>

namespace leasehold::replica {

/// Counters since the start. Read on the node's thread.
struct DriverCounters {
  std::uint64_t proposals = 0;            ///< commands taken from this node's own callers
  std::uint64_t proposals_forwarded = 0;  ///< of these, sent to the leader
  std::uint64_t proposals_resent = 0;     ///< to the same leader again: no answer came
  std::uint64_t forwards_received = 0;    ///< commands that followers sent here
  std::uint64_t forwards_refused = 0;     ///< of these: not leader, duplicate or overloaded
  std::uint64_t reads_lease = 0;          ///< answered on this thread, by basis
  std::uint64_t reads_quorum = 0;
  std::uint64_t reads_leader = 0;
  std::uint64_t reads_log = 0;
  std::uint64_t reads_stale = 0;  ///< by the age of the state: Read::max_age
  std::uint64_t reads_refused = 0;
  std::uint64_t appends_sent = 0;       ///< append messages with entries
  std::uint64_t heartbeats_sent = 0;    ///< append messages without
  std::uint64_t batches_persisted = 0;  ///< batches given to storage
  std::uint64_t elections_won = 0;
  std::uint64_t log_cuts = 0;
  std::uint64_t snapshots_taken = 0;      ///< by this node's state machine, for peers
  std::uint64_t snapshots_sent = 0;       ///< whole, to one peer each
  std::uint64_t snapshots_installed = 0;  ///< here
  std::uint64_t chunks_sent = 0;
  std::uint64_t chunk_bytes_sent = 0;
  std::uint64_t chunks_received = 0;
  std::uint64_t chunks_dropped = 0;  ///< received, but there was no room: see chunks_storing_max
  std::uint64_t snapshot_bytes_copied = 0;  ///< of arriving snapshots, which were here already
};

/// A snapshot that is being transferred, for people.
struct SnapshotTransfer {
  raft::NodeId peer;        ///< the other end
  bool sending = false;     ///< from this node to the peer; else to this node
  raft::Index last;         ///< the last entry that is in it
  std::uint64_t bytes = 0;  ///< that have arrived
  std::uint64_t size = 0;   ///< of the whole, above 0
  friend bool operator==(const SnapshotTransfer&, const SnapshotTransfer&) = default;
};

}  // namespace leasehold::replica
