#include <leasehold/storage/positions.h>

#include <algorithm>

namespace leasehold::storage {

void Positions::add(raft::Index index, std::uint64_t offset, std::uint64_t bytes) {
  if (!runs_.empty()) {
    Run& run = runs_.back();
    if (run.offset + run.bytes == offset && run.bytes < kRunBytes) {
      run.bytes += bytes;
      ++run.count;
      return;
    }
  }
  runs_.push_back({index, offset, bytes, 1});
}

void Positions::cut(raft::Index from) {
  while (!runs_.empty() && runs_.back().first >= from) runs_.pop_back();
  if (runs_.empty() || runs_.back().last() < from) return;
  runs_.back().count = from - runs_.back().first;
}

std::size_t Positions::find(raft::Index index) const {
  const auto at = std::partition_point(runs_.begin(), runs_.end(),
                                       [index](const Run& run) { return run.last() < index; });
  return static_cast<std::size_t>(at - runs_.begin());
}

}  // namespace leasehold::storage
