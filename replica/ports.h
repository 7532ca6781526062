// The ports of a Driver in addition to storage and transport: the state machine on its own thread,
// and snapshots.
#pragma once

#include <leasehold/raft/entry.h>
#include <leasehold/raft/ready.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::replica {

/// Applies committed entries on another thread (or at another simulated instant). Answers each
/// call, in order: it publishes the index in the LeaseView, then completes the calls of
/// Ports::callers for these commands, and finally sends one Applied event. The functions of apply.h
/// do the parts.
class Applier {
 public:
  virtual ~Applier() = default;
  virtual void apply(std::vector<raft::Entry> entries) = 0;
  /// Installs the snapshot that Snapshots::store() completed. The answer, in order with the calls
  /// of apply(), is one Applied whose `last` is id.last.index.
  virtual void install(const raft::SnapshotId& id) = 0;
};

/// Snapshots of the state machine: taken, read for a peer, and received from one. They work on
/// another thread (or at other simulated instants); each call that has an answer gets one event.
class Snapshots {
 public:
  virtual ~Snapshots() = default;
  /// Makes the applied state durable, so that the log can be cut: MachineDurable.
  virtual void make_durable() = 0;
  /// Takes a snapshot and keeps it until release(): SnapshotTaken.
  virtual void take() = 0;
  /// Reads `bytes` bytes of a taken snapshot: SnapshotRead.
  virtual void read(std::uint64_t token, std::uint64_t tag, std::uint64_t offset,
                    std::size_t bytes) = 0;
  virtual void release(std::uint64_t tag) = 0;
  /// Stores a chunk of an arriving snapshot: ChunkStored, in order. A chunk of a snapshot other
  /// than the arriving one begins a new one, and only at offset 0; a chunk that does not continue
  /// the stored ones is dropped, and the answer names the offset to continue from. Stored chunks
  /// survive a restart. While a complete snapshot waits to be installed, chunks of others are
  /// refused. The port may put in what the state machine holds already, and answers then for more
  /// than was stored; the answer may take as long.
  virtual void store(const raft::ReceivedChunk& received) = 0;
  /// A snapshot that store() completed is not needed.
  virtual void discard() = 0;
};

}  // namespace leasehold::replica
