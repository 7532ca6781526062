// Receives a snapshot that the leader sends.
#pragma once

#include <leasehold/replica/driver_context.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace leasehold::replica {

/// Chunks go to the Snapshots port in order, a bounded number at a time; one that comes too early
/// is dropped, and the leader sends it again.
class SnapshotReceiver {
 public:
  explicit SnapshotReceiver(DriverContext& context) : context_(context) {}

  void received(lease::Now now, const raft::ReceivedChunk& received);
  void stored(lease::Now now, ChunkStored& event);
  /// The snapshot that is arriving, for people.
  void status(std::vector<SnapshotTransfer>& out) const;

 private:
  DriverContext& context_;
  std::size_t storing_ = 0;
  /// The newest snapshot of which a chunk was stored.
  std::optional<SnapshotTransfer> transfer_;
};

}  // namespace leasehold::replica
