#include <leasehold/base/assert.h>
#include <leasehold/replica/entry_cache.h>

#include <algorithm>

namespace leasehold::replica {

void EntryCache::append(const raft::Entry& entry) {
  LEASEHOLD_ASSERT(empty() || entry.id.index == entries_.back().id.index.next());
  bytes_ += weight(entry);
  entries_.push_back(entry);
}

void EntryCache::truncate(raft::Index from) {
  while (!empty() && entries_.back().id.index >= from) {
    bytes_ -= weight(entries_.back());
    entries_.pop_back();
  }
}

void EntryCache::trim(raft::Index durable, raft::Index handed) {
  while (bytes_ > bytes_max_ && !empty()) {
    const raft::Index oldest = first();
    if (oldest > durable) return;
    if (oldest > handed && bytes_ <= 2 * bytes_max_) return;
    bytes_ -= weight(entries_.front());
    entries_.pop_front();
  }
}

std::size_t EntryCache::copy(raft::Index first_index, raft::Index last, std::size_t bytes_max,
                             std::vector<raft::Entry>& out) const {
  LEASEHOLD_ASSERT(contains(first_index));
  const raft::Index end = std::min(last, entries_.back().id.index);
  std::size_t bytes = 0;
  for (raft::Index index = first_index; index <= end; index = index.next()) {
    const raft::Entry& entry = entries_[static_cast<std::size_t>(index - first())];
    if (index > first_index && bytes + entry.payload.size() > bytes_max) break;
    bytes += entry.payload.size();
    out.push_back(entry);
  }
  return bytes;
}

}  // namespace leasehold::replica
