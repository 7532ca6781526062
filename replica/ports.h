// What a Driver acts upon besides storage and transport: the state machine on its own thread, and
// snapshots.
#pragma once

#include <leasehold/raft/entry.h>
#include <leasehold/raft/ready.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::replica {

/// Applies committed entries on another thread (or at another simulated instant). Answers each
/// call, in order: it shows the index in the LeaseView, then completes those of Ports::callers
/// whose commands these were, and hands over one Applied event at last. The functions of apply.h do
/// the parts.
class Applier {
 public:
  virtual ~Applier() = default;
  virtual void apply(std::vector<raft::Entry> entries) = 0;
  /// Installs the snapshot that Snapshots::store() completed; answered, in order with the calls of
  /// apply(), with one Applied whose `last` is id.last.index.
  virtual void install(const raft::SnapshotId& id) = 0;
};

/// Snapshots of the state machine: taken, read for a peer, and received from one. The work is done
/// on another thread (or at other simulated instants); each call that has an answer gets one event.
class Snapshots {
 public:
  virtual ~Snapshots() = default;
  /// Makes what is applied durable, so that the log can be cut: MachineDurable.
  virtual void make_durable() = 0;
  /// Takes a snapshot and keeps it until release(): SnapshotTaken.
  virtual void take() = 0;
  /// Reads `bytes` bytes of a taken snapshot: SnapshotRead.
  virtual void read(std::uint64_t token, std::uint64_t tag, std::uint64_t offset,
                    std::size_t bytes) = 0;
  virtual void release(std::uint64_t tag) = 0;
  /// Stores a chunk of an arriving snapshot: ChunkStored, in order. A chunk of another snapshot
  /// than the one that is arriving begins a new one, and only at offset 0; one that does not
  /// continue what is stored is left out, and the answer says from where to go on. What has arrived
  /// survives a restart. While a complete one waits to be installed, chunks of others are refused.
  virtual void store(const raft::ReceivedChunk& received) = 0;
  /// A snapshot that store() completed is not needed.
  virtual void discard() = 0;
};

}  // namespace leasehold::replica
