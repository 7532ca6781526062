// Opening is a row of steps, each of which a crash may interrupt:
//
//   1. read the mark, or make one with a new uuid; compare it with the caller
//   2. read and judge every segment; nothing was touched so far
//   3. write the mark with the next incarnation
//   4. repair what a crash left: write the last frame again (a sync that failed may have left it in
//      memory only, marked as written), put zeroes over a torn one, sync
//   5. make the first segment if there is none
#include <leasehold/base/assert.h>
#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/segment_store.h>

#include <algorithm>
#include <utility>

namespace leasehold::storage {
namespace {

/// How fast segments grow to their full size.
constexpr std::uint64_t kSegmentGrowth = 4;
/// What one read takes in, when many small runs stand side by side.
constexpr std::uint64_t kReadBytes = std::uint64_t{256} << 10U;
/// A frame's buffer that is larger is given back.
constexpr std::size_t kFrameKeptBytes = std::size_t{1} << 20U;

std::string name_of(std::uint64_t cluster_id, raft::NodeId id) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex(16, '0');
  for (std::size_t i = hex.size(); i-- > 0; cluster_id >>= 4U) hex[i] = kDigits[cluster_id & 0xfU];
  return "node " + std::to_string(id.value()) + " of cluster " + hex;
}

/// Says which folder, and for damage what to do.
Error in_folder(const std::string& dir, const Error& error) {
  std::string message = "the log in " + dir + ": " + error.message;
  if (error.code == ErrorCode::corrupted) {
    message +=
        ". This log cannot be trusted: wipe the node's data folder and let the node join again as "
        "a new member";
  }
  return {error.code, std::move(message)};
}

/// The mark of a folder that may be used by this node; a new one if the folder is blank.
Result<FolderMark> adopt_mark(const Disk& disk, const SegmentLogOptions& options) {
  const auto bytes = disk.load(std::string(kMarkName), kMarkBytesMax);
  if (!bytes) return bytes.error();
  if (bytes.value()) {
    auto mark = decode_mark(*bytes.value());
    if (!mark) return mark;
    const auto& found = mark.value();
    if (found.cluster_id == options.cluster_id && found.id == options.id) return mark;
    return Error{ErrorCode::wrong_cluster,
                 "it belongs to " + name_of(found.cluster_id, found.id) + ", but this is " +
                     name_of(options.cluster_id, options.id) +
                     ": give this node its own folder, or start it with the id, the cluster name "
                     "and the initial peers it was made with"};
  }
  const auto names = disk.list();
  if (!names) return names.error();
  for (const std::string& name : names.value()) {
    if (name == std::string(kMarkName) + std::string(kNewSuffix)) continue;
    return Error{ErrorCode::corrupted,
                 "it is not empty and holds no file LEASEHOLD: it is no log, or has lost its mark"};
  }
  FolderMark mark;
  mark.cluster_id = options.cluster_id;
  mark.id = options.id;
  if (auto filled = fill_random(&mark.uuid, sizeof(mark.uuid)); !filled) return filled.error();
  return mark;
}

Result<void> check_options(const SegmentLogOptions& options) {
  const auto invalid = [](const char* message) {
    return Error{ErrorCode::invalid_argument, message};
  };
  if (options.id == raft::kNobody) return invalid("the node id has to be above 0");
  if (options.queue_bytes_max == 0 || options.sync_bytes_max == 0 || options.reads_max == 0) {
    return invalid("the limits of the log have to be above 0");
  }
  const auto whole = [](std::uint64_t bytes) {
    return bytes >= kSegmentBytesMin && bytes % kSegmentBytesMin == 0;
  };
  if (!whole(options.first_segment_bytes) || !whole(options.segment_bytes) ||
      options.first_segment_bytes > options.segment_bytes) {
    return invalid(
        "the sizes of segments have to be multiples of 4 KiB, the first one not the larger");
  }
  return {};
}

}  // namespace

// Collector.

void Collector::add(raft::Entry entry) {
  bytes_ += entry.payload.size();
  full_ = !entries_.empty() && bytes_ > request_.bytes_max;
  if (full_) return;
  entries_.push_back(std::move(entry));
  next_ = next_.next();
}

Result<std::vector<raft::Entry>> Collector::finish() {
  if (!entries_.empty()) return std::move(entries_);
  return Error{ErrorCode::not_found, "entry " + std::to_string(request_.first.value()) +
                                         " is not in the log: it was cut or truncated"};
}

// Opening and closing.

SegmentStore::SegmentStore(const SegmentLogOptions& options, std::unique_ptr<Disk> disk,
                           FolderMark mark)
    : options_(options), disk_(std::move(disk)), mark_(std::move(mark)) {}

Result<std::unique_ptr<SegmentStore>> SegmentStore::open(const SegmentLogOptions& options,
                                                         std::unique_ptr<Disk> disk) {
  if (auto checked = check_options(options); !checked) return checked.error();
  const std::string path = disk->path();
  auto mark = adopt_mark(*disk, options);
  if (!mark) return in_folder(path, mark.error());
  auto log = load_segments(*disk, mark.value(), options.group);
  if (!log) return in_folder(path, log.error());
  std::unique_ptr<SegmentStore> store(
      new SegmentStore(options, std::move(disk), std::move(mark).value()));
  if (auto adopted = store->adopt(std::move(log).value()); !adopted) {
    return in_folder(path, adopted.error());
  }
  return store;
}

Result<void> SegmentStore::adopt(LoadedLog log) {
  mark_.incarnation = mark_.incarnation.next();
  mark_.closed.reset();
  if (!log.segments.empty()) mark_.last_segment = log.segments.back().number;
  if (auto written = write_mark(); !written) return written;
  identity_ = {mark_.cluster_id, mark_.id, mark_.uuid, mark_.incarnation};

  state_ = std::move(log.state);
  shape_ = std::move(log.shape);
  memberships_ = std::move(log.memberships);
  sequence_ = log.sequence;
  segments_ = std::move(log.segments);
  current_ = log.current;
  if (auto repaired = repair(log.repairs); !repaired) return repaired;
  if (segments_.empty()) {
    auto first = make_segment(mark_.first_segment, 0, 0);
    if (!first) return first.error();
    segments_.push_back(std::move(first).value());
    segments_.back().positions.emplace();
  }
  healthy_ = true;
  return rest();
}

Result<void> SegmentStore::repair(const std::vector<Repair>& repairs) {
  for (const Repair& repair : repairs) {
    DiskFile& file = *segments_[repair.segment].file;
    auto done = file.write(repair.offset, repair.bytes);
    if (done) done = file.sync();
    if (!done) return done;
  }
  return {};
}

SegmentStore::~SegmentStore() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  prepare_wanted_.notify_all();
  if (preparer_.joinable()) preparer_.join();
  if (!healthy_) return;
  const Segment& current = segments_[current_];
  mark_.closed = ClosedAt{current.number, current.end, sequence_};
  // If this fails, the next open treats the log as after a crash, which is right too.
  static_cast<void>(write_mark());
}

Result<void> SegmentStore::write_mark() {
  const std::string bytes = encode_mark(mark_);
  const auto made = disk_->create(std::string(kMarkName), bytes, bytes.size());
  return made ? Result<void>() : made.error();
}

// Making segments.

/// Makes a segment and says so in the mark: from now on it has to be there.
Result<Segment> SegmentStore::make_segment(std::uint64_t number, std::uint64_t previous_salt,
                                           std::uint64_t bytes_min) {
  std::uint64_t bytes = options_.first_segment_bytes;
  for (std::uint64_t n = 1; n < number && bytes < options_.segment_bytes; ++n) {
    bytes = std::min(bytes * kSegmentGrowth, options_.segment_bytes);
  }
  bytes = std::max(bytes, align_up(bytes_min, kSegmentBytesMin));

  Segment segment;
  segment.number = number;
  if (auto filled = fill_random(&segment.salt, sizeof(segment.salt)); !filled) {
    return filled.error();
  }
  HeadBody body;
  body.segment = number;
  body.segment_bytes = bytes;
  body.previous_salt = previous_salt;
  body.cluster_id = mark_.cluster_id;
  body.id = mark_.id;
  body.uuid = mark_.uuid;
  body.group = options_.group;
  FrameHeader header;
  header.kind = FrameKind::head;
  header.salt = segment.salt;
  auto file = disk_->create(segment_name(number), encode_frame(header, encode_head(body)), bytes);
  if (!file) return file.error();
  segment.file = std::move(file).value();
  mark_.last_segment = number;
  if (auto written = write_mark(); !written) return written.error();
  return segment;
}

void SegmentStore::start() {
  preparer_ = std::thread([this] { prepare_loop(); });
}

void SegmentStore::prepare_loop() {
  Lock lock(mutex_);
  for (;;) {
    prepare_wanted_.wait(lock, [this] {
      return stopping_ || (current_ + 1 == segments_.size() && !prepare_error_);
    });
    if (stopping_) return;
    const std::uint64_t number = segments_.back().number + 1;
    const std::uint64_t salt = segments_.back().salt;
    const std::uint64_t bytes = std::exchange(bytes_wanted_, 0);
    lock.unlock();
    auto made = make_segment(number, salt, bytes);
    lock.lock();
    if (made) {
      segments_.push_back(std::move(made).value());
    } else {
      prepare_error_ = made.error();
    }
    prepared_.notify_all();
  }
}

// Writing.

FrameHeader SegmentStore::next_header(FrameKind kind, const Segment& segment) const {
  FrameHeader header;
  header.kind = kind;
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
  const auto fits = [frame_bytes](const Segment& segment) {
    return align_up(segment.end + frame_bytes, kSectorBytes) + kSectorBytes <= segment.file->size();
  };
  Lock lock(mutex_);
  if (fits(segments_[current_])) return &segments_[current_];
  // Making the next one failed before, for want of space perhaps: it is tried once more.
  prepare_error_.reset();
  do {
    bytes_wanted_ = kFramesBegin + align_up(frame_bytes, kSectorBytes) + kSectorBytes;
    prepare_wanted_.notify_all();
    prepared_.wait(
        lock, [this] { return current_ + 1 < segments_.size() || prepare_error_.has_value(); });
    if (current_ + 1 == segments_.size()) {
      return Error{prepare_error_->code,
                   "cannot make the next segment: " + prepare_error_->message};
    }
    // One that was made ahead may be too small for a large frame: it stays without frames.
    ++current_;
    segments_[current_].positions.emplace();
    bound_positions();
  } while (!fits(segments_[current_]));
  bytes_wanted_ = 0;
  prepare_wanted_.notify_all();
  return &segments_[current_];
}

/// Writes frame_ at the end of `segment` and syncs.
Result<void> SegmentStore::write_frame(Segment& segment) {
  LEASEHOLD_ASSERT(healthy_);
  auto done = segment.file->write(segment.end, frame_);
  if (done) done = segment.file->sync();
  if (!done) {
    healthy_ = false;
    return in_folder(path(), done.error());
  }
  syncs_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<void> SegmentStore::write_state(StateBody state) {
  LEASEHOLD_ASSERT(!preparer_.joinable());
  Segment& segment = segments_[current_];
  frame_ = encode_frame(next_header(FrameKind::state, segment), encode_state(state));
  if (align_up(segment.end + frame_.size(), kSectorBytes) + kSectorBytes > segment.file->size()) {
    return in_folder(path(), {ErrorCode::invalid_argument, "the set of members is too large"});
  }
  if (auto done = write_frame(segment); !done) return done;
  ++sequence_;
  segment.end += frame_.size();
  if (state.base && !state_.base) shape_ = Shape(state.base->base, {}, state.base->base);
  state_ = std::move(state);
  return rest();
}

Result<void> SegmentStore::append(const WriteGroup& group) {
  std::uint64_t bytes = kFrameHeaderBytes + kBatchBodyBytes;
  for (const raft::Entry* entry : group.entries) bytes += kEntryHeadBytes + entry->payload.size();
  const auto room = room_for(align_up(bytes, kFrameAlignment));
  if (!room) {
    healthy_ = false;
    return in_folder(path(), room.error());
  }
  Segment& segment = *room.value();

  frame_.reserve(align_up(bytes, kFrameAlignment));
  BatchBody body = group.body;
  body.count = static_cast<std::uint32_t>(group.entries.size());
  BatchEncoder encoder(frame_, body);
  for (const raft::Entry* entry : group.entries) encoder.add(*entry);
  encoder.finish(next_header(FrameKind::batch, segment));
  if (auto done = write_frame(segment); !done) return done;
  written(segment, group);
  return {};
}

void SegmentStore::written(Segment& segment, const WriteGroup& group) {
  const Lock lock(mutex_);
  ++sequence_;
  for (auto at = segments_.rbegin(); at != segments_.rend(); ++at) {
    at->cut(group.body.first);
    if (at->has_entries()) break;
  }
  std::uint64_t offset = segment.end + kFrameHeaderBytes + kBatchBodyBytes;
  for (const raft::Entry* entry : group.entries) {
    const std::uint64_t bytes = kEntryHeadBytes + entry->payload.size();
    segment.add(entry->id.index, offset, bytes);
    offset += bytes;
  }
  segment.end += frame_.size();
  if (frame_.capacity() > kFrameKeptBytes) frame_ = std::string();
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

// Reading.

ReadPlan SegmentStore::plan(raft::Index first, raft::Index last, std::size_t bytes_max) {
  ReadPlan plan;
  std::uint64_t bytes = 0;
  const Lock lock(mutex_);
  for (Segment& segment : segments_) {
    if (!segment.has_entries() || segment.last < first) continue;
    if (segment.first > last || bytes > bytes_max) break;
    ReadPlan::Part part;
    part.file = segment.file;
    part.number = segment.number;
    part.salt = segment.salt;
    part.end = segment.end;
    part.first = std::max(first, segment.first);
    part.last = std::min(last, segment.last);
    if (segment.positions) {
      segment.used = ++uses_;
      const auto& runs = segment.positions->runs();
      part.runs.emplace();
      for (std::size_t i = segment.positions->find(part.first); i < runs.size(); ++i) {
        if (runs[i].first > part.last || bytes > bytes_max) break;
        part.runs->push_back(runs[i]);
        bytes += runs[i].bytes - runs[i].count * kEntryHeadBytes;
      }
    }
    plan.parts.push_back(std::move(part));
  }
  return plan;
}

Result<void> SegmentStore::read(ReadPlan& plan, Collector& out) {
  for (ReadPlan::Part& part : plan.parts) {
    if (out.full()) break;
    auto done = part.runs ? Result<void>() : find_runs(part);
    if (done) done = read_runs(part, out);
    if (!done) return in_folder(path(), done.error());
    // A part that was planned up to the bytes asked for ends early: what follows has a gap.
    if (!out.full() && out.next() <= part.last) break;
  }
  return {};
}

Result<void> SegmentStore::find_runs(ReadPlan::Part& part) {
  auto read = read_positions(*part.file, part.number, part.salt, part.end);
  if (!read) return read.error();
  Positions positions = std::move(read).value();
  keep_positions(part.number, positions);
  const auto& runs = positions.runs();
  part.runs.emplace(runs.begin() + static_cast<std::ptrdiff_t>(positions.find(part.first)),
                    runs.end());
  return {};
}

void SegmentStore::keep_positions(std::uint64_t number, const Positions& positions) {
  const Lock lock(mutex_);
  Segment& segment = segments_[number - segments_.front().number];
  if (segment.positions) return;
  segment.positions = positions;
  // Entries may have been cut since.
  segment.positions->cut(segment.last.next());
  segment.used = ++uses_;
  bound_positions();
}

void SegmentStore::bound_positions() {
  for (;;) {
    std::size_t kept = 0;
    Segment* oldest = nullptr;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      Segment& segment = segments_[i];
      if (i == current_ || !segment.positions) continue;
      ++kept;
      if (oldest == nullptr || segment.used < oldest->used) oldest = &segment;
    }
    if (kept <= kPositionsMax) return;
    oldest->positions.reset();
  }
}

Result<void> SegmentStore::read_runs(const ReadPlan::Part& part, Collector& out) {
  const std::vector<Run>& runs = *part.runs;
  std::string bytes;
  for (std::size_t at = 0; at < runs.size() && !out.full() && runs[at].first <= part.last;) {
    const std::uint64_t from = runs[at].offset;
    std::size_t end = at + 1;
    while (end < runs.size() && runs[end].offset + runs[end].bytes - from <= kReadBytes) ++end;
    bytes.resize(runs[end - 1].offset + runs[end - 1].bytes - from);
    if (auto done = part.file->read(from, bytes.data(), bytes.size()); !done) return done;
    for (; at < end; ++at) {
      std::string_view rest =
          std::string_view(bytes).substr(runs[at].offset - from, runs[at].bytes);
      for (std::uint64_t i = 0; i < runs[at].count; ++i) {
        const raft::Index index(runs[at].first.value() + i);
        const auto entry = take_entry(rest);
        if (!entry || entry.value().id.index != index) {
          return Error{ErrorCode::corrupted, "the file " + segment_name(part.number) + ", byte " +
                                                 std::to_string(runs[at].offset) + ": entry " +
                                                 std::to_string(index.value()) +
                                                 " was damaged since it was written"};
        }
        if (index < out.next() || index > part.last || out.full()) continue;
        out.add({entry.value().id, entry.value().kind, Bytes(entry.value().payload)});
      }
    }
  }
  return {};
}

}  // namespace leasehold::storage
