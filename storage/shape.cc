#include <leasehold/base/assert.h>
#include <leasehold/storage/shape.h>

#include <algorithm>
#include <iterator>

namespace leasehold::storage {

std::optional<raft::Term> Shape::term_at(raft::Index index) const {
  if (index == base_.index) return base_.term;
  if (index < base_.index || index > last_.index) return std::nullopt;
  const auto after = std::partition_point(
      runs_.begin(), runs_.end(), [index](const raft::TermRun& run) { return run.first <= index; });
  LEASEHOLD_ASSERT(after != runs_.begin());
  return std::prev(after)->term;
}

void Shape::truncate(raft::Index from) {
  LEASEHOLD_ASSERT(from > base_.index);
  LEASEHOLD_ASSERT(from <= last_.index.next());
  while (!runs_.empty() && runs_.back().first >= from) runs_.pop_back();
  last_ = {runs_.empty() ? base_.term : runs_.back().term, from.prev()};
}

void Shape::append(raft::LogId id) {
  LEASEHOLD_ASSERT(id.index == last_.index.next());
  LEASEHOLD_ASSERT(id.term >= last_.term);
  LEASEHOLD_ASSERT(id.term > raft::Term(0));
  // A run of the base's own term begins again at this entry: the runs cover what the log holds.
  if (runs_.empty() || runs_.back().term != id.term) runs_.push_back({id.term, id.index});
  last_ = id;
}

void Shape::cut(raft::LogId to) {
  LEASEHOLD_ASSERT(term_at(to.index) == to.term);
  const auto after =
      std::partition_point(runs_.begin(), runs_.end(),
                           [to](const raft::TermRun& run) { return run.first <= to.index.next(); });
  if (to.index == last_.index) {
    runs_.clear();
  } else {
    runs_.erase(runs_.begin(), std::prev(after));
    runs_.front().first = to.index.next();
  }
  base_ = to;
}

}  // namespace leasehold::storage
