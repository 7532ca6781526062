// When the leases of each class of a process end (raft/lease_classes.h), for the readers of all its
// lease views.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/raft/lease_classes.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace leasehold::replica {

/// Written by the node's one thread, read by any number of threads without a lock. A class keeps
/// its place, since its number is never used again: a reader that comes late finds the end of the
/// class that it has seen. Grows by 8 bytes for each class that there ever was.
class LeaseEnds {
 public:
  LeaseEnds() = default;
  ~LeaseEnds() {
    for (std::atomic<Chunk*>& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
  }
  LeaseEnds(const LeaseEnds&) = delete;
  LeaseEnds& operator=(const LeaseEnds&) = delete;

  /// Node's thread.
  void publish(raft::LeaseClassId id, raft::HolderInstant end) {
    LEASEHOLD_ASSERT(id <= raft::kLeaseClassMax);
    std::atomic<Chunk*>& place = chunks_[id.value() / kChunk];
    Chunk* chunk = place.load(std::memory_order_relaxed);
    if (chunk == nullptr) {
      chunk = std::make_unique<Chunk>().release();
      place.store(chunk, std::memory_order_release);
    }
    chunk->ends[id.value() % kChunk].store(end.since_origin().count(), std::memory_order_release);
  }
  /// earliest(): nothing was published of it yet.
  raft::HolderInstant end(raft::LeaseClassId id) const {
    const Chunk* const chunk = chunks_[id.value() / kChunk].load(std::memory_order_acquire);
    if (chunk == nullptr) return raft::HolderInstant::earliest();
    return raft::HolderInstant(
        raft::Duration(chunk->ends[id.value() % kChunk].load(std::memory_order_acquire)));
  }

 private:
  static constexpr std::size_t kChunk = 4096;
  struct Chunk {
    Chunk() {
      for (auto& end : ends) {
        end.store(raft::HolderInstant::earliest().since_origin().count(),
                  std::memory_order_relaxed);
      }
    }
    std::array<std::atomic<std::int64_t>, kChunk> ends;
  };

  std::array<std::atomic<Chunk*>, (raft::kLeaseClassMax.value() + 1) / kChunk> chunks_{};
};

}  // namespace leasehold::replica
