// Writing: a frame goes to the end of the newest segment that has room for it, and is synced. This
// file also decides when to enter a segment that was made ahead, and when the last of them, the
// reserve.
#include <leasehold/base/assert.h>
#include <leasehold/storage/segment_store.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace leasehold::storage {
namespace {

/// A frame's buffer that is larger is freed.
constexpr std::size_t kFrameKeptBytes = std::size_t{1} << 20U;

/// How large a frame fits at the end of `segment`, with a mark behind it.
std::uint64_t room_in(const Segment& segment) {
  const std::uint64_t end = segment.file->size() / kSectorBytes * kSectorBytes;
  return end < segment.end + kSectorBytes ? 0 : end - kSectorBytes - segment.end;
}

}  // namespace

FrameHeader SegmentStore::next_header(const Segment& segment) const {
  FrameHeader header;
  header.kind = FrameKind::batch;
  header.salt = segment.salt;
  header.sequence = sequence_ + 1;
  header.synced_through = sequence_;
  return header;
}

/// The reference stays good while the preparing thread adds segments behind it; the look-up itself
/// would not.
Segment& SegmentStore::current_segment() {
  const Lock lock(mutex_);
  return segments_[current_];
}

/// The segment whose end takes a frame and, behind it, a mark.
Result<Segment*> SegmentStore::room_for(std::uint64_t frame_bytes) {
  Lock lock(mutex_);
  for (;;) {
    std::size_t place = current_;
    while (place < segments_.size() && room_in(segments_[place]) < frame_bytes) ++place;
    if (place == current_) return &segments_[current_];
    if (prepare_error_) return *prepare_error_;
    const bool exists = place < segments_.size();
    if (exists && (full_ || place + 1 < segments_.size())) {
      // A segment that was made ahead may be too small for a large frame: it stays without frames.
      while (current_ < place) {
        ++current_;
        segments_[current_].first_sequence = sequence_ + 1;
        segments_[current_].positions.emplace();
        bound_positions();
      }
      bytes_wanted_ = 0;
      prepare_wanted_.notify_all();
      return &segments_[current_];
    }
    const bool was_full = full_;
    const std::uint64_t attempts = attempts_;
    const std::uint64_t newest = segments_.back().number;
    // One to write to, or any behind the reserve.
    bytes_wanted_ = exists ? 1 : kFramesBegin + align_up(frame_bytes, kSectorBytes) + kSectorBytes;
    urgent_ = true;
    prepare_wanted_.notify_all();
    prepared_.wait(lock, [&] { return attempts_ != attempts || prepare_error_; });
    // The segment that was made may be large enough, even if the disk counts as full because the
    // reserve is not whole.
    if (!exists && was_full && full_ && segments_.back().number == newest) {
      return Error{kNoSpace,
                   "the disk is full, and the space that was set aside is used up: free some space "
                   "on it, then start the node again"};
    }
  }
}

std::size_t SegmentStore::group_bytes_max(std::size_t bytes_min) {
  const Lock lock(mutex_);
  if (!full_) return std::numeric_limits<std::size_t>::max();
  for (std::size_t place = current_; place < segments_.size(); ++place) {
    const std::uint64_t room = room_in(segments_[place]);
    if (room >= bytes_min) return room;
  }
  return bytes_min;
}

/// Writes frame_ at the end of `segment` and syncs.
Result<void> SegmentStore::write_frame(Segment& segment) {
  LEASEHOLD_ASSERT(healthy_);
  auto done = segment.file->write(segment.end, frame_);
  if (done) done = segment.file->sync();
  if (!done) {
    healthy_ = false;
    return in_folder(
        path(),
        {done.error().code, done.error().message +
                                ". It is not known what is on the disk, and the write is not tried "
                                "again: check the disk, then start the node again"});
  }
  syncs_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<void> SegmentStore::lay(Foundation foundation) {
  LEASEHOLD_ASSERT(!preparer_.joinable());
  Segment& segment = segments_[current_];
  WriteGroup group;
  BatchBody& body = group.body;
  body.foundation = foundation;
  body.state = {hard_state_, shape_.last()};
  if (foundation.base) {
    const raft::LogId base = foundation.base->id;
    body.state.last = base;
    // The group has had this term, but nobody has voted in it.
    body.state.hard_state.term = std::max(hard_state_.term, base.term);
    // This node never had these entries: the frame itself says that the log begins behind them.
    body.reset = base.index > raft::Index(0);
  }
  body.first = body.state.last.index.next();
  body.previous_term = body.state.last.term;
  BatchEncoder encoder(frame_, body);
  encoder.finish(next_header(segment));
  if (room_in(segment) < frame_.size()) {
    return in_folder(path(), {ErrorCode::invalid_argument, "the set of members is too large"});
  }
  if (auto done = write_frame(segment); !done) return done;
  written(segment, group, segment.end + frame_.size());
  hard_state_ = body.state.hard_state;
  if (foundation.base) shape_ = Shape(foundation.base->id, {}, foundation.base->id);
  foundation_ = std::move(foundation);
  return rest();
}

Result<void> SegmentStore::append(const WriteGroup& group) {
  std::uint64_t bytes = kFrameHeaderBytes + kBatchBodyBytes;
  for (const raft::Entry* entry : group.entries) bytes += kEntryHeadBytes + entry->payload.size();
  frame_.reserve(align_up(bytes, kFrameAlignment));
  BatchBody body = group.body;
  body.count = static_cast<std::uint32_t>(group.entries.size());
  if (body.foundation.base) body.foundation.confirmed = foundation_.confirmed;
  BatchEncoder encoder(frame_, body);
  const std::uint64_t entries_at = encoder.position();
  for (const raft::Entry* entry : group.entries) encoder.add(*entry);

  const auto room = room_for(align_up(frame_.size(), kFrameAlignment));
  if (!room) {
    const ErrorCode code = room.error().code;
    if (code != kNoSpace) healthy_ = false;
    return Error{code, in_folder(path(), room.error()).message};
  }
  Segment& segment = *room.value();
  encoder.finish(next_header(segment));
  if (auto done = write_frame(segment); !done) return done;
  written(segment, group, segment.end + entries_at);
  return {};
}

/// The frame of `group` is durable: the first of its entries stands at `entries_at`.
void SegmentStore::written(Segment& segment, const WriteGroup& group, std::uint64_t entries_at) {
  const Lock lock(mutex_);
  ++sequence_;
  for (auto at = segments_.rbegin(); at != segments_.rend(); ++at) {
    if (group.body.reset) at->clear();
    at->truncate(group.body.first);
    if (at->has_entries()) break;
  }
  for (const raft::Entry* entry : group.entries) {
    const std::uint64_t bytes = kEntryHeadBytes + entry->payload.size();
    segment.add(entry->id.index, entries_at, bytes);
    entries_at += bytes;
  }
  segment.end += frame_.size();
  if (frame_.capacity() > kFrameKeptBytes) frame_ = std::string();
  if (!group.body.foundation.base) return;
  base_ = group.body.foundation.base->id.index;
  base_segment_ = segment.number;
  for (Segment& each : segments_) each.cut(base_);
  drop_front();
  if (!dropped_.empty()) prepare_wanted_.notify_all();
}

Result<void> SegmentStore::rest() {
  LEASEHOLD_ASSERT(healthy_);
  if (marked_ == sequence_) return {};
  Segment& segment = current_segment();
  FrameHeader header;
  header.kind = FrameKind::mark;
  header.salt = segment.salt;
  header.sequence = sequence_;
  header.synced_through = sequence_;
  auto written = segment.file->write(align_up(segment.end, kSectorBytes), encode_frame(header, {}));
  if (!written) {
    healthy_ = false;
    return in_folder(path(), written.error());
  }
  marked_ = sequence_;
  return {};
}

}  // namespace leasehold::storage
