// Giving space back where many groups share the files: what the first segment still holds is copied
// to the end, and then the segment goes. It moves only while most bytes of the files are of no use:
// so each copied byte pays for one that is freed.
#include <leasehold/base/assert.h>
#include <leasehold/storage/segment_store.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace leasehold::storage {
namespace {

/// What one frame copies, about: writes wait for it.
constexpr std::uint64_t kMoveBytes = std::uint64_t{1} << 20U;
/// The log does not care about as many segments of its full size.
constexpr std::uint64_t kSegmentsSpared = 4;

/// What stands in a segment.
class Content final : public SegmentVisitor {
 public:
  Result<void> section(const Section& section) override {
    if (section.process) return {};
    Positions& positions = positions_[section.group.value()];
    const BatchBody& batch = section.batch;
    if (!batch.moved) positions.cut(batch.reset || batch.removed ? raft::Index(0) : batch.first);
    if (batch.removed) foundations_.erase(section.group);
    if (batch.foundation.confirmed) foundations_[section.group] = batch.foundation;
    at_ = &positions;
    return {};
  }
  Result<void> entry(const EntryView& entry, std::uint64_t offset,
                     std::string_view bytes) override {
    at_->put(entry.id.index, offset, bytes.size());
    return {};
  }

  const Foundation& foundation(raft::GroupId group) const { return foundations_.at(group); }
  const Positions& positions(raft::GroupId group) const { return positions_.at(group.value()); }

 private:
  SegmentPositions positions_;
  std::map<raft::GroupId, Foundation> foundations_;
  Positions* at_ = nullptr;
};

/// Appends the entries of `part`, as they stand in the segment, to `to`, until that is full. Gives
/// their number. Errors: corrupted, io.
Result<std::uint32_t> copy_entries(const SegmentExtent& segment, const Positions& positions,
                                   const Part& part, std::uint64_t room, std::string& to) {
  std::uint32_t count = 0;
  std::string bytes;
  raft::Index next = part.first;
  const auto& runs = positions.runs();
  for (std::size_t i = positions.find(part.first); i < runs.size() && next <= part.last; ++i) {
    bytes.resize(runs[i].bytes);
    if (auto read = segment.file->read(runs[i].offset, bytes.data(), bytes.size()); !read) {
      return read.error();
    }
    std::string_view rest(bytes);
    for (raft::Index index = runs[i].first; index <= runs[i].last(); index = index.next()) {
      const std::string_view before = rest;
      const auto entry = take_entry(rest);
      if (!entry || entry.value().id.index != index) {
        return Error{ErrorCode::corrupted, "an entry was damaged since it was written"};
      }
      if (index < next || index > part.last) continue;
      if (count > 0 && to.size() >= room) return count;
      to.append(before.substr(0, before.size() - rest.size()));
      next = next.next();
      ++count;
    }
  }
  if (next <= part.last) return Error{ErrorCode::corrupted, "an entry is not where it was written"};
  return count;
}

}  // namespace

std::optional<SegmentExtent> SegmentStore::front_to_move() {
  if (!shared()) return std::nullopt;
  const Lock lock(mutex_);
  if (current_ == 0) return std::nullopt;
  std::uint64_t used = 0;
  for (std::size_t i = 0; i <= current_; ++i) used += segments_[i].end;
  const std::uint64_t spared = kSegmentsSpared * options_.segment_bytes;
  if (used <= 2 * holders_.bytes() + spared) return std::nullopt;
  // While the disk is full, or may turn out to be, the copies may not use up the reserve: a front
  // that does not fit as a whole gives nothing back. What it holds is known about.
  const std::uint64_t held = holders_.bytes_in(segments_.front().number);
  const bool fits = 2 * held + kSectorBytes <= room_in(segments_[current_]);
  if (!fits && !reserve_is_whole()) return std::nullopt;
  return extent_of(segments_.front());
}

std::vector<SegmentStore::Held> SegmentStore::held_in(std::uint64_t segment) {
  std::vector<Held> found;
  const Lock lock(mutex_);
  for (const auto& [id, index] : groups_) {
    Held held{raft::GroupId(id), index.state(), index.foundation_segment() == segment, {}};
    for (const Part& part : index.parts()) {
      if (part.segment == segment) held.parts.push_back(part);
    }
    if (!held.parts.empty() || held.foundation || index.state_segment() == segment) {
      found.push_back(std::move(held));
    }
  }
  return found;
}

Result<bool> SegmentStore::move_front() {
  const auto front = front_to_move();
  if (!front) return false;
  Content content;
  if (auto visited = visit_segment(*front, content); !visited) {
    return in_folder(path(), visited.error());
  }
  std::vector<Copy> copies;
  std::uint64_t bytes = 0;
  const auto copy = [&](const Held& held, const Part* part) -> Result<void> {
    Copy one;
    one.group = held.group;
    one.body.state = held.state;
    one.body.moved = true;
    one.body.first = part != nullptr ? part->first : held.state.last.index.next();
    if (part == nullptr || part == held.parts.data()) {
      if (held.foundation) one.body.foundation = content.foundation(held.group);
    }
    if (part != nullptr) {
      auto count = copy_entries(*front, content.positions(held.group), *part, kMoveBytes - bytes,
                                one.entries);
      if (!count) return count.error();
      one.body.count = count.value();
    }
    bytes += one.entries.size() + kSectionHeadBytes + kBatchBodyBytes;
    copies.push_back(std::move(one));
    return {};
  };
  for (const Held& held : held_in(front->number)) {
    if (bytes >= kMoveBytes) break;
    Result<void> done;
    if (held.parts.empty()) done = copy(held, nullptr);
    for (const Part& part : held.parts) {
      if (done && bytes < kMoveBytes) done = copy(held, &part);
    }
    if (!done) return in_folder(path(), done.error());
  }
  BatchEncoder encoder(frame_, mark_.format);
  for (Copy& one : copies) {
    encoder.begin(one.group, one.body);
    one.at = encoder.position();
    encoder.add_bytes(one.entries);
  }
  const bool process = process_segment_ == front->number;
  if (process) encoder.add(process_);
  LEASEHOLD_ASSERT(process || !copies.empty());
  if (!may_write_copies()) return false;
  auto segment = write_at_end(encoder);
  if (!segment) return segment.error();
  const Lock lock(mutex_);
  note_copies(*segment.value(), copies);
  if (process) note_process(*segment.value());
  note_end(*segment.value());
  return true;
}

bool SegmentStore::may_write_copies() {
  const Lock lock(mutex_);
  return reserve_is_whole() ||
         align_up(frame_.size(), kFrameAlignment) <= room_in(segments_[current_]);
}

/// Under mutex_, before the end of the segment moves behind the frame.
void SegmentStore::note_copies(Segment& segment, const std::vector<Copy>& copies) {
  for (const Copy& one : copies) {
    GroupIndex& index = groups_.at(one.group.value());
    index.set_state(one.body.state, segment.number, holders_);
    if (one.body.foundation.confirmed) index.set_foundation(segment.number, holders_);
    if (one.body.count == 0) continue;
    const raft::Index last(one.body.first.value() + one.body.count - 1);
    index.move(one.body.first, last, segment.number, holders_);
    Positions& positions = (*segment.positions)[one.group.value()];
    std::string_view rest(one.entries);
    for (raft::Index at = one.body.first; at <= last; at = at.next()) {
      const std::uint64_t offset = segment.end + one.at + (one.entries.size() - rest.size());
      const std::size_t before = rest.size();
      const auto entry = take_entry(rest);
      LEASEHOLD_ASSERT(entry);  // it was read like this just now
      positions.put(at, offset, before - rest.size());
    }
  }
}

}  // namespace leasehold::storage
