// Opening is a row of steps, each of which a crash may interrupt:
//
//   1. read the mark, or make one with a new uuid; compare it with the caller
//   2. read and judge every segment; nothing was touched so far
//   3. write the mark with the next incarnation
//   4. repair what a crash left: write the last frame again (a sync that failed may have left it in
//      memory only, marked as written), put zeroes over a torn one, sync
//   5. remove what a cut left
//   6. make the first segment if there is none
//
// A cut is durable by its frame. Then the mark forgets the segments in front, then they are
// removed: a crash between leaves segments that hold nothing of the log, or files that the mark
// does not name.
#include <leasehold/base/assert.h>
#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/segment_store.h>

#include <algorithm>
#include <limits>
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
  return {final_code(error.code), std::move(message)};
}

/// The mark of a folder that may be used by this node; a new one if the folder is blank.
Result<FolderMark> adopt_mark(const Disk& disk, const SegmentLogOptions& options) {
  const auto bytes = disk.load(std::string(kMarkName), kMarkBytes + 1);
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

/// How large a frame fits at the end of `segment`, with a mark behind it.
std::uint64_t room_in(const Segment& segment) {
  const std::uint64_t end = segment.file->size() / kSectorBytes * kSectorBytes;
  return end < segment.end + kSectorBytes ? 0 : end - kSectorBytes - segment.end;
}

Result<void> check_options(const SegmentLogOptions& options) {
  const auto invalid = [](const char* message) {
    return Error{ErrorCode::invalid_argument, message};
  };
  if (options.id == raft::kNobody) return invalid("the node id has to be above 0");
  if (options.queue_bytes_max == 0 || options.sync_bytes_max == 0 || options.reads_max == 0) {
    return invalid("the limits of the log have to be above 0");
  }
  if (options.space_retry.count() <= 0) return invalid("space_retry has to be above 0");
  if (options.space_look.count() <= 0) return invalid("space_look has to be above 0");
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
  predecessor_ = mark_.predecessor;
  if (auto written = write_mark(); !written) return written;
  identity_ = {mark_.cluster_id, mark_.id, mark_.uuid, mark_.incarnation};

  hard_state_ = log.hard_state;
  foundation_ = std::move(log.foundation);
  shape_ = std::move(log.shape);
  memberships_ = std::move(log.memberships);
  sequence_ = log.sequence;
  segments_ = std::move(log.segments);
  current_ = log.current;
  base_ = shape_.base().index;
  base_segment_ = log.base_segment;
  payload_bytes_ = log.payload_bytes;
  if (auto repaired = repair(log.repairs); !repaired) return repaired;
  for (const std::string& name : log.leftovers) {
    if (auto removed = disk_->remove(name); !removed) return removed;
  }
  if (segments_.empty()) {
    auto first = make_segment(mark_.first_segment, 0, 0);
    if (!first) return first.error();
    segments_.push_back(std::move(first).value());
    segments_.back().positions.emplace();
    segments_.back().first_sequence = sequence_ + 1;
  }
  // A crash may have come between a cut and what follows from it.
  drop_front();
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

void SegmentStore::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  prepare_wanted_.notify_all();
  if (preparer_.joinable()) preparer_.join();
}

SegmentStore::~SegmentStore() {
  stop();
  if (!healthy_ || prepare_error_) return;
  const Segment& current = segments_[current_];
  mark_.closed = ClosedAt{current.number, current.end, sequence_};
  // If this fails, the next open treats the log as after a crash, which is right too.
  static_cast<void>(write_mark());
}

Result<void> SegmentStore::write_mark() {
  const std::string bytes = encode_mark(mark_);
  const std::string name(kMarkName);
  const auto made = disk_->create(name, bytes, bytes.size());
  if (made) return {};
  if (made.error().code != kNoSpace) return made.error();
  // On a full disk the old one gives its space: it lies inside one sector, so that a crash leaves
  // the one or the other.
  auto old = disk_->open(name);
  if (!old || old.value()->size() != bytes.size()) return made.error();
  auto done = old.value()->write(0, bytes);
  if (done) done = old.value()->sync();
  // Whatever the reason, it is not known what is there now.
  return done ? done : Error{ErrorCode::io, done.error().message};
}

// Making and removing segments.

/// Makes a segment and says so in the mark: from now on it has to be there. Errors: kNoSpace, io.
Result<Segment> SegmentStore::make_segment(std::uint64_t number, std::uint64_t previous_salt,
                                           std::uint64_t bytes_min) {
  std::uint64_t bytes = options_.first_segment_bytes;
  for (std::uint64_t n = 1; n < number && bytes < options_.segment_bytes; ++n) {
    bytes = std::min(bytes * kSegmentGrowth, options_.segment_bytes);
  }
  bytes = std::max(bytes, align_up(bytes_min, kSegmentBytesMin));

  if (options_.free_bytes_min > 0) {
    const auto left = disk_->free_bytes();
    if (!left) return Error{ErrorCode::io, left.error().message};
    if (left.value() < options_.free_bytes_min + bytes) {
      return Error{kNoSpace, "its disk has " + std::to_string(left.value()) + " bytes left, and " +
                                 std::to_string(options_.free_bytes_min) +
                                 " have to stay free beside a file of " + std::to_string(bytes)};
    }
  }
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

void SegmentStore::start(Listener listener) {
  listener_ = std::move(listener);
  preparer_ = std::thread([this] { prepare_loop(); });
}

void SegmentStore::prepare_loop() {
  const auto work = [this] {
    return stopping_ || !dropped_.empty() || (segment_wanted() && (!full_ || urgent_));
  };
  Lock lock(mutex_);
  for (;;) {
    if (full_) {
      prepare_wanted_.wait_for(lock, options_.space_retry, work);
    } else if (options_.free_bytes_min > 0) {
      prepare_wanted_.wait_for(lock, options_.space_look, work);
    } else {
      prepare_wanted_.wait(lock, work);
    }
    // What this gives back is what a full disk waits for.
    if (!dropped_.empty() && !remove_dropped(lock)) return;
    if (stopping_) return;
    if (!segment_wanted()) {
      look_at_space(lock);
    } else if (!prepare(lock)) {
      return;
    }
  }
}

/// Everything is made, and somebody else may fill the disk. A look that fails says nothing: the
/// next file that is made finds out.
void SegmentStore::look_at_space(Lock& lock) {
  if (options_.free_bytes_min == 0) return;
  // More than what makes it full, or it would be both in turn.
  const std::uint64_t enough = options_.free_bytes_min + (full_ ? options_.segment_bytes : 0);
  lock.unlock();
  const auto left = disk_->free_bytes();
  lock.lock();
  const bool full = left ? left.value() < enough : full_;
  if (full == full_) return;
  full_ = full;
  lock.unlock();
  listener_.space(full);
  lock.lock();
}

/// Makes one segment. False: the log has failed.
bool SegmentStore::prepare(Lock& lock) {
  const std::uint64_t number = segments_.back().number + 1;
  const std::uint64_t salt = segments_.back().salt;
  const std::uint64_t bytes = std::exchange(bytes_wanted_, 0);
  const bool was_full = full_;
  urgent_ = false;
  lock.unlock();
  auto made = make_segment(number, salt, bytes);
  const bool full = !made && made.error().code == kNoSpace;
  // Told before the writer may touch the reserve.
  if (full && !was_full) listener_.space(true);
  lock.lock();
  if (!made && !full) {
    preparer_failed(lock, made.error());
    return false;
  }
  if (made) segments_.push_back(std::move(made).value());
  const bool whole = ahead() >= kAhead;
  full_ = full || (was_full && !whole);
  urgent_ = urgent_ || (full_ && !full);  // there is some space again: on with the rest
  ++attempts_;
  prepared_.notify_all();
  if (was_full && !full_) {
    lock.unlock();
    listener_.space(false);
    lock.lock();
  }
  return true;
}

/// Removes the segments that a cut has left. False: the log has failed.
bool SegmentStore::remove_dropped(Lock& lock) {
  const std::vector<std::string> names = std::exchange(dropped_, {});
  mark_.first_segment = segments_.front().number;
  mark_.predecessor = predecessor_;
  lock.unlock();
  auto done = write_mark();
  for (const std::string& name : names) {
    if (done) done = disk_->remove(name);
  }
  lock.lock();
  if (done) return true;
  preparer_failed(lock, done.error());
  return false;
}

void SegmentStore::preparer_failed(Lock& lock, Error error) {
  prepare_error_ = error;
  prepared_.notify_all();
  lock.unlock();
  listener_.failed(in_folder(path(), error));
  lock.lock();
}

/// Sets aside for removal what lies in front and holds nothing of the log any more. Under mutex_.
void SegmentStore::drop_front() {
  while (segments_.front().number < base_segment_ && !segments_.front().has_entries()) {
    LEASEHOLD_ASSERT(current_ > 0);
    const std::uint64_t salt = segments_.front().salt;
    dropped_.push_back(segment_name(segments_.front().number));
    segments_.pop_front();
    --current_;
    predecessor_ = {salt, segments_.front().first_sequence - 1};
  }
}

// Writing.

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
      // One that was made ahead may be too small for a large frame: it stays without frames.
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
    // One to write to, or any that stands behind the reserve.
    bytes_wanted_ = exists ? 1 : kFramesBegin + align_up(frame_bytes, kSectorBytes) + kSectorBytes;
    urgent_ = true;
    prepare_wanted_.notify_all();
    prepared_.wait(lock, [&] { return attempts_ != attempts || prepare_error_; });
    // What was made may do, even if the disk stays full because it is no whole reserve.
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
    // Entries that were never here: the frame itself says that the log begins behind them.
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

// Reading.

ReadPlan SegmentStore::plan(raft::Index first, raft::Index last, std::size_t bytes_max) {
  ReadPlan plan;
  std::uint64_t bytes = 0;
  const Lock lock(mutex_);
  if (first <= base_) return plan;
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
  if (number < segments_.front().number) return;  // the log was cut since
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
