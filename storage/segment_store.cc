// Opening is a sequence of steps, each of which a crash may interrupt:
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

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::storage {
namespace {

/// How fast segments grow to their full size.
constexpr std::uint64_t kSegmentGrowth = 4;

std::string name_of(std::uint64_t cluster_id, raft::NodeId id) {
  return fmt::format("node {} of cluster {:016x}", id.value(), cluster_id);
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
    return Error{
        ErrorCode::wrong_cluster,
        fmt::format("it belongs to {}, but this is {}: give this node its own folder, or "
                    "start it with the id, the cluster name and the initial peers it was "
                    "made with. If it was never in a group that formed, delete it",
                    name_of(found.cluster_id, found.id), name_of(options.cluster_id, options.id))};
  }
  const auto names = disk.list();
  if (!names) return names.error();
  for (const std::string& name : names.value()) {
    if (name == fmt::format("{}{}", kMarkName, kNewSuffix)) continue;
    return Error{
        ErrorCode::corrupted,
        "it is not empty and holds no file LEASEHOLD: it is not a log, or has lost its mark"};
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

Error SegmentStore::in_folder(const std::string& dir, const Error& error) {
  const char* advice = error.code == ErrorCode::corrupted
                           ? ". This log cannot be trusted: wipe the node's data folder and let "
                             "the node join again as a new member"
                           : "";
  return {final_code(error.code), fmt::format("the log in {}: {}{}", dir, error.message, advice)};
}

// Opening and closing.

SegmentStore::SegmentStore(const SegmentLogOptions& options, std::unique_ptr<Disk> disk,
                           FolderMark mark)
    : options_(options), disk_(std::move(disk)), mark_(std::move(mark)) {}

Result<std::unique_ptr<SegmentStore>> SegmentStore::open(const SegmentLogOptions& options,
                                                         std::unique_ptr<Disk> disk,
                                                         Sharing sharing) {
  if (auto checked = check_options(options); !checked) return checked.error();
  const std::string path = disk->path();
  auto mark = adopt_mark(*disk, options);
  if (!mark) return in_folder(path, mark.error());
  if (sharing == Sharing::shared) {
    mark.value().format = kSharedLogFormat;
  } else if (mark.value().format != kLogFormat) {
    return in_folder(path, {ErrorCode::wrong_cluster,
                            "it holds the logs of many groups: open it as the log of a host"});
  }
  auto log =
      load_segments(*disk, mark.value(),
                    sharing == Sharing::shared ? std::nullopt : std::optional(options.group));
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

  for (auto& [id, group] : log.groups) {
    FoundGroup& found = found_[id];
    found.hard_state = group.index.state().hard_state;
    found.foundation = std::move(group.foundation);
    found.shape = std::move(group.shape);
    found.memberships = std::move(group.memberships);
    found.payload_bytes = group.payload_bytes;
    groups_.emplace(id.value(), std::move(group.index));
  }
  process_ = std::move(log.process);
  process_segment_ = log.process_segment;
  holders_ = std::move(log.holders);
  sequence_ = log.sequence;
  segments_ = std::move(log.segments);
  current_ = log.current;
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

FoundGroup SegmentStore::take_group(raft::GroupId group) {
  const Lock lock(mutex_);
  const auto found = found_.find(group);
  if (found == found_.end()) return {};
  FoundGroup taken = std::move(found->second);
  found_.erase(found);
  return taken;
}

void SegmentStore::give_back(raft::GroupId group, FoundGroup found) {
  const Lock lock(mutex_);
  if (found.foundation != Foundation{}) found_.insert_or_assign(group, std::move(found));
}

std::vector<raft::Member> SegmentStore::members(raft::GroupId group) {
  const Lock lock(mutex_);
  const auto found = found_.find(group);
  if (found == found_.end()) return {};
  if (!found->second.memberships.empty())
    return found->second.memberships.back().membership.members;
  const Foundation& foundation = found->second.foundation;
  if (foundation.base) return foundation.base->membership.members;
  return foundation.confirmed ? foundation.confirmed->members : std::vector<raft::Member>();
}

std::vector<raft::GroupId> SegmentStore::groups() {
  const Lock lock(mutex_);
  std::vector<raft::GroupId> ids;
  for (const auto& [id, group] : found_) ids.push_back(id);
  return ids;
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
  // On a full disk, overwrite the old mark: it fits one sector, so that after a crash either the
  // old or the new one is there.
  auto old = disk_->open(name);
  if (!old || old.value()->size() != bytes.size()) return made.error();
  auto done = old.value()->write(0, bytes);
  if (done) done = old.value()->sync();
  // Whatever the reason, the content of the file is unknown now.
  return done ? done : Error{ErrorCode::io, done.error().message};
}

// Making and removing segments.

/// Makes a segment and records it in the mark: from now on it has to exist. Errors: kNoSpace, io.
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
      return Error{kNoSpace, fmt::format("its disk has {} bytes left, and {} have to stay free "
                                         "next to a file of {}",
                                         left.value(), options_.free_bytes_min, bytes)};
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
  if (!shared()) body.group = options_.group;
  segment.group = body.group;
  FrameHeader header;
  header.format = mark_.format;
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
    // Removing these frees the space that a full disk waits for.
    if (!dropped_.empty() && !remove_dropped(lock)) return;
    if (stopping_) return;
    if (!segment_wanted()) {
      look_at_space(lock);
    } else if (!prepare(lock)) {
      return;
    }
  }
}

/// No segment is wanted, but other programs may fill the disk. A check that fails is ignored: the
/// next file that is made shows.
void SegmentStore::look_at_space(Lock& lock) {
  if (options_.free_bytes_min == 0) return;
  // "Not full" needs more space than "full", or the state would flap.
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
  // Reported before the writer may touch the reserve.
  if (full && !was_full) listener_.space(true);
  lock.lock();
  if (!made && !full) {
    preparer_failed(lock, made.error());
    return false;
  }
  if (made) segments_.push_back(std::move(made).value());
  const bool whole = ahead() >= kAhead;
  full_ = full || (was_full && !whole);
  urgent_ = urgent_ || (full_ && !full);  // there is some space again: make the rest
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

void SegmentStore::preparer_failed(Lock& lock, const Error& error) {
  prepare_error_ = error;
  prepared_.notify_all();
  lock.unlock();
  listener_.failed(in_folder(path(), error));
  lock.lock();
}

/// Moves the segments at the front that hold nothing of the log any more to dropped_. Under mutex_.
void SegmentStore::drop_front() {
  while (current_ > 0 && !holders_.any(segments_.front().number)) {
    const std::uint64_t salt = segments_.front().salt;
    dropped_.push_back(segment_name(segments_.front().number));
    segments_.pop_front();
    --current_;
    predecessor_ = {salt, segments_.front().first_sequence - 1};
  }
}

}  // namespace leasehold::storage
