#include <leasehold/storage/positions.h>

#include <algorithm>

namespace leasehold::storage {

void Positions::add(raft::Index index, std::uint64_t offset, std::uint64_t bytes) {
  if (!runs_.empty() && extend(runs_.back(), index, offset, bytes)) return;
  runs_.push_back({index, offset, bytes, 1});
}

void Positions::put(raft::Index index, std::uint64_t offset, std::uint64_t bytes) {
  const std::size_t place = find(index);
  if (place < runs_.size() && runs_[place].first <= index) return;
  if (place > 0 && extend(runs_[place - 1], index, offset, bytes)) return;
  runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(place), {index, offset, bytes, 1});
}

bool Positions::extend(Run& run, raft::Index index, std::uint64_t offset, std::uint64_t bytes) {
  if (run.last().next() != index || run.offset + run.bytes != offset || run.bytes >= kRunBytes) {
    return false;
  }
  run.bytes += bytes;
  ++run.count;
  return true;
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
