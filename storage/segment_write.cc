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

}  // namespace

std::uint64_t SegmentStore::room_in(const Segment& segment) {
  const std::uint64_t end = segment.file->size() / kSectorBytes * kSectorBytes;
  return end < segment.end + kSectorBytes ? 0 : end - kSectorBytes - segment.end;
}

FrameHeader SegmentStore::next_header(const Segment& segment) const {
  FrameHeader header;
  header.format = mark_.format;
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
    if (!preparer_.joinable()) {
      return Error{ErrorCode::invalid_argument, "the set of members is too large"};
    }
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

std::size_t SegmentStore::write_bytes_max(std::size_t bytes_min) {
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
  const SyncTimes::Begun begun(options_.sync_times);
  if (done) done = segment.file->sync();
  if (!done) {
    healthy_ = false;
    return in_folder(
        path(),
        {done.error().code, done.error().message +
                                ". It is not known what is on the disk, and the write is not tried "
                                "again: check the disk, then start the node again"});
  }
  begun.note();
  syncs_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<void> SegmentStore::append(const Write& write) {
  LEASEHOLD_ASSERT(shared() || (write.groups.size() == 1 && !write.process));
  std::uint64_t bytes = kFrameHeaderBytes;
  for (const GroupWrite& group : write.groups) {
    bytes += kSectionHeadBytes + kBatchBodyBytes;
    for (const raft::Entry* entry : group.entries) bytes += kEntryHeadBytes + entry->payload.size();
  }
  frame_.reserve(align_up(bytes, kFrameAlignment));
  BatchEncoder encoder(frame_, mark_.format);
  std::vector<std::uint64_t> entries_at;
  for (const GroupWrite& group : write.groups) {
    BatchBody body = group.body;
    body.count = static_cast<std::uint32_t>(group.entries.size());
    encoder.begin(group.group, body);
    entries_at.push_back(encoder.position());
    for (const raft::Entry* entry : group.entries) encoder.add(*entry);
  }
  if (write.process) encoder.add(*write.process);
  auto segment = write_at_end(encoder);
  if (!segment) return segment.error();
  const Lock lock(mutex_);
  for (std::uint64_t& at : entries_at) at += segment.value()->end;
  note_written(*segment.value(), write, entries_at);
  return {};
}

/// Finds room for the frame, and makes it durable.
Result<Segment*> SegmentStore::write_at_end(BatchEncoder& encoder) {
  const auto room = room_for(align_up(frame_.size(), kFrameAlignment));
  if (!room) {
    const ErrorCode code = room.error().code;
    if (code == ErrorCode::io || code == ErrorCode::corrupted) healthy_ = false;
    return Error{code, in_folder(path(), room.error()).message};
  }
  encoder.finish(next_header(*room.value()));
  if (auto done = write_frame(*room.value()); !done) return done.error();
  return room;
}

/// The frame is durable. Under mutex_.
void SegmentStore::note_written(Segment& segment, const Write& write,
                                const std::vector<std::uint64_t>& entries_at) {
  for (std::size_t i = 0; i < write.groups.size(); ++i) {
    note_group(segment, write.groups[i], entries_at[i]);
  }
  if (write.process) {
    process_ = *write.process;
    note_process(segment);
  }
  note_end(segment);
}

void SegmentStore::note_process(const Segment& segment) {
  holders_.add(segment.number, 0);
  if (process_segment_ != 0) holders_.remove(process_segment_, 0);
  process_segment_ = segment.number;
}

void SegmentStore::note_end(Segment& segment) {
  ++sequence_;
  segment.end += frame_.size();
  if (frame_.capacity() > kFrameKeptBytes) frame_ = std::string();
  drop_front();
  if (!dropped_.empty()) prepare_wanted_.notify_all();
}

/// The entries of the section stand at `entries_at`, one behind the other.
void SegmentStore::note_group(Segment& segment, const GroupWrite& write, std::uint64_t entries_at) {
  const BatchBody& body = write.body;
  GroupIndex& index = groups_[write.group.value()];
  Positions& positions = (*segment.positions)[write.group.value()];
  const raft::Index from = body.reset || body.removed ? raft::Index(0) : body.first;
  index.truncate(from, holders_);
  positions.cut(from);
  if (body.removed) {
    index.remove(holders_);
    groups_.erase(write.group.value());
    segment.positions->erase(write.group.value());
    return;
  }
  index.set_state(body.state, segment.number, holders_);
  if (body.foundation.confirmed) index.set_foundation(segment.number, holders_);
  for (const raft::Entry* entry : write.entries) {
    const std::uint64_t bytes = kEntryHeadBytes + entry->payload.size();
    index.add(entry->id.index, bytes, segment.number, holders_);
    positions.add(entry->id.index, entries_at, bytes);
    entries_at += bytes;
  }
  if (body.foundation.base) index.cut(body.foundation.base->id.index, holders_);
}

Result<void> SegmentStore::rest() {
  LEASEHOLD_ASSERT(healthy_);
  if (marked_ == sequence_) return {};
  Segment& segment = current_segment();
  FrameHeader header;
  header.format = mark_.format;
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
