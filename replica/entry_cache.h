// The newest entries of the log, in memory: for healthy followers and for the applier.
#pragma once

#include <leasehold/base/ring.h>
#include <leasehold/raft/entry.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <vector>

namespace leasehold::replica {

/// A run of entries without a gap that ends with the last entry given to the storage.
class EntryCache {
 public:
  /// What an entry counts beside its payload: the same on every machine, so that a simulated run
  /// is the same, too.
  static constexpr std::size_t kEntryBytes = 56;
  static_assert(sizeof(raft::Entry) <= kEntryBytes);

  /// `bytes_max`: see Limits::cache_bytes_max. Each entry counts its payload and itself.
  explicit EntryCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  bool empty() const { return entries_.empty(); }
  std::size_t bytes() const { return bytes_; }
  bool contains(raft::Index index) const {
    return !empty() && index >= first() && index <= entries_.back().id.index;
  }
  /// The oldest entry kept. Not for an empty cache.
  raft::Index first() const { return entries_.front().id.index; }

  /// Adds the entry behind the last; its index follows without a gap.
  void append(const raft::Entry& entry);
  /// Removes `from` and everything above it.
  void truncate(raft::Index from);
  void clear() {
    entries_.clear();
    bytes_ = 0;
  }
  /// Gives back its memory. Everything is durable.
  void give_back() {
    clear();
    entries_.give_back();
  }
  /// Removes the oldest entries until the limit is met. An entry above `durable` stays in spite of
  /// the limit, because no other copy of it is sure to exist. An entry above `handed` (not yet
  /// given to the applier) stays up to twice the limit; above that the applier reads it back from
  /// the disk, so that a slow state machine cannot fill the memory.
  void trim(raft::Index durable, raft::Index handed);
  /// Appends the entries first..last to `out`, as many as fit into `bytes_max` of payload but at
  /// least one. `first` is in the cache. Returns the payload bytes.
  std::size_t copy(raft::Index first, raft::Index last, std::size_t bytes_max,
                   std::vector<raft::Entry>& out) const;

 private:
  static std::size_t weight(const raft::Entry& entry) { return kEntryBytes + entry.payload.size(); }

  std::size_t bytes_max_;
  /// Invariant: indices rise by one.
  Ring<raft::Entry> entries_;
  /// Invariant: the sum of weight() over entries_.
  std::size_t bytes_ = 0;
};

}  // namespace leasehold::replica
