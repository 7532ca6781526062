// Batches that wait for the disk, and how several of them become one write.
#pragma once

#include <leasehold/base/boxed.h>
#include <leasehold/storage/segment_store.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace leasehold::storage {

/// A batch that waits for the disk, with what the writer has to know of the log before it.
struct Pending {
  raft::GroupId group;
  raft::PersistBatch batch;
  raft::Term previous_term;  ///< of the entry before the first one
  StateRecord state;         ///< after the batch
  std::size_t bytes = 0;
  /// The confirmed set, if the batch has a base.
  Boxed<raft::Membership> confirmed;
  /// In place of a batch: the foundation of a log without entries, or the end of the replica.
  std::optional<Foundation> foundation;
  bool removed = false;
  /// In place of a batch: what the process remembers. Of no group, unless `removed` is set: then
  /// both are durable at the same instant.
  std::optional<ProcessRecord> process;
  std::uint64_t process_write = 0;

  /// The lowest index that the batch changes; none if it changes no entry.
  std::optional<raft::Index> lowest() const {
    if (batch.truncate_from) return batch.truncate_from;
    if (!batch.entries.empty()) return batch.entries.front().id.index;
    return std::nullopt;
  }
  const raft::Entry* find(raft::Index index) const {
    if (batch.entries.empty() || index < batch.entries.front().id.index) return nullptr;
    const std::uint64_t offset = index - batch.entries.front().id.index;
    return offset < batch.entries.size() ? &batch.entries[offset] : nullptr;
  }
};
using PendingList = std::deque<std::shared_ptr<const Pending>>;

/// Merges what waits into what one sync makes durable: of each group where its log is cut first,
/// what follows, and where it begins. Leaves out entries that a later batch truncates.
Write merge(const std::vector<std::shared_ptr<const Pending>>& waiting);

}  // namespace leasehold::storage
