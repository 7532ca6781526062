#include <leasehold/base/assert.h>
#include <leasehold/storage/group_index.h>

#include <algorithm>
#include <utility>

namespace leasehold::storage {
namespace {

/// What the newest state of a group, or its foundation, takes: about.
constexpr std::uint64_t kRecordBytes = 256;

Part piece_of(const Part& part, raft::Index first, raft::Index last) {
  LEASEHOLD_ASSERT(first >= part.first && last <= part.last && first <= last);
  const auto share =
      static_cast<double>(last - first + 1) / static_cast<double>(part.last - part.first + 1);
  return {part.segment, first, last,
          static_cast<std::uint64_t>(static_cast<double>(part.bytes) * share)};
}

}  // namespace

void Holders::add(std::uint64_t segment, std::uint64_t bytes) {
  Held& held = held_[segment];
  ++held.count;
  held.bytes += bytes;
  bytes_ += bytes;
}

void Holders::remove(std::uint64_t segment, std::uint64_t bytes) {
  const auto found = held_.find(segment);
  LEASEHOLD_ASSERT(found != held_.end() && bytes <= found->second.bytes);
  found->second.bytes -= bytes;
  if (--found->second.count == 0) held_.erase(found);
  bytes_ -= bytes;
}

void Holders::resize(std::uint64_t segment, std::uint64_t before, std::uint64_t after) {
  const auto found = held_.find(segment);
  LEASEHOLD_ASSERT(found != held_.end() && before <= found->second.bytes);
  found->second.bytes = found->second.bytes - before + after;
  bytes_ = bytes_ - before + after;
}

std::uint64_t Holders::bytes_in(std::uint64_t segment) const {
  const auto found = held_.find(segment);
  return found == held_.end() ? 0 : found->second.bytes;
}

std::size_t GroupIndex::find(raft::Index index) const {
  const auto at = std::partition_point(parts_.begin(), parts_.end(),
                                       [index](const Part& part) { return part.last < index; });
  return static_cast<std::size_t>(at - parts_.begin());
}

void GroupIndex::refer(std::uint64_t& to, std::uint64_t segment, Holders& holders) {
  if (to == segment) return;
  if (segment != 0) holders.add(segment, kRecordBytes);
  if (to != 0) holders.remove(to, kRecordBytes);
  to = segment;
}

/// What remains of the part.
void GroupIndex::shrink(Part& part, raft::Index first, raft::Index last, Holders& holders) {
  const Part left = piece_of(part, first, last);
  holders.resize(part.segment, part.bytes, left.bytes);
  part = left;
}

void GroupIndex::set_state(const StateRecord& state, std::uint64_t segment, Holders& holders) {
  state_ = state;
  refer(state_segment_, segment, holders);
}

void GroupIndex::set_foundation(std::uint64_t segment, Holders& holders) {
  refer(foundation_segment_, segment, holders);
}

void GroupIndex::add(raft::Index index, std::uint64_t bytes, std::uint64_t segment,
                     Holders& holders) {
  if (!parts_.empty()) {
    Part& part = parts_.back();
    LEASEHOLD_ASSERT(part.last.next() == index);
    if (part.segment == segment) {
      holders.resize(segment, part.bytes, part.bytes + bytes);
      part.last = index;
      part.bytes += bytes;
      return;
    }
  }
  parts_.push_back({segment, index, index, bytes});
  holders.add(segment, bytes);
}

void GroupIndex::move(raft::Index first, raft::Index last, std::uint64_t segment,
                      Holders& holders) {
  const std::size_t at = find(first);
  LEASEHOLD_ASSERT(at < parts_.size() && first >= parts_[at].first && last <= parts_[at].last);
  LEASEHOLD_ASSERT(first <= last);
  const Part whole = parts_[at];
  std::vector<Part> pieces;
  const auto piece = [&](raft::Index from, raft::Index to, std::uint64_t where) {
    if (from > to) return;
    pieces.push_back(piece_of(whole, from, to));
    pieces.back().segment = where;
  };
  piece(whole.first, first.prev(), whole.segment);
  piece(first, last, segment);
  piece(last.next(), whole.last, whole.segment);
  for (const Part& part : pieces) holders.add(part.segment, part.bytes);
  holders.remove(whole.segment, whole.bytes);
  const auto place = parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(at));
  parts_.insert(place, pieces.begin(), pieces.end());
  join(holders);
}

/// Neighbours in one segment become one part.
void GroupIndex::join(Holders& holders) {
  std::vector<Part> joined;
  for (const Part& part : parts_) {
    if (joined.empty() || joined.back().segment != part.segment) {
      joined.push_back(part);
      continue;
    }
    Part& before = joined.back();
    holders.remove(part.segment, part.bytes);
    holders.resize(before.segment, before.bytes, before.bytes + part.bytes);
    before.last = part.last;
    before.bytes += part.bytes;
  }
  parts_ = std::move(joined);
}

void GroupIndex::truncate(raft::Index from, Holders& holders) {
  while (!parts_.empty() && parts_.back().first >= from) {
    holders.remove(parts_.back().segment, parts_.back().bytes);
    parts_.pop_back();
  }
  if (!parts_.empty() && parts_.back().last >= from) {
    shrink(parts_.back(), parts_.back().first, from.prev(), holders);
  }
}

void GroupIndex::cut(raft::Index base, Holders& holders) {
  LEASEHOLD_ASSERT(base >= base_);
  base_ = base;
  const std::size_t gone = find(base.next());
  for (std::size_t i = 0; i < gone; ++i) holders.remove(parts_[i].segment, parts_[i].bytes);
  parts_.erase(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(gone));
  if (parts_.empty() || parts_.front().first > base) return;
  shrink(parts_.front(), base.next(), parts_.front().last, holders);
}

void GroupIndex::clear(Holders& holders) {
  truncate(raft::Index(0), holders);
  LEASEHOLD_ASSERT(parts_.empty());
}

void GroupIndex::remove(Holders& holders) {
  clear(holders);
  refer(state_segment_, 0, holders);
  refer(foundation_segment_, 0, holders);
}

}  // namespace leasehold::storage
