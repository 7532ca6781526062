// The segments of one log while it is open: written at the end, read anywhere.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/storage/disk.h>
#include <leasehold/storage/folder.h>
#include <leasehold/storage/segment_load.h>
#include <leasehold/storage/segment_log.h>
#include <leasehold/storage/segment_record.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::storage {

/// What one sync makes durable.
struct WriteGroup {
  /// `count` is taken from the entries, the confirmed set from the log when there is a base.
  BatchBody body;
  std::vector<const raft::Entry*> entries;
};

/// Collects entries up to the limits of a request.
class Collector {
 public:
  explicit Collector(const ReadRequest& request) : request_(request), next_(request.first) {}

  raft::Index next() const { return next_; }
  bool full() const { return full_ || next_ > request_.last; }
  std::size_t bytes_max() const { return request_.bytes_max; }
  void add(raft::Entry entry);
  /// What was collected; not_found if there is nothing.
  Result<std::vector<raft::Entry>> finish();

 private:
  const ReadRequest& request_;
  raft::Index next_;
  std::vector<raft::Entry> entries_;
  std::size_t bytes_ = 0;
  bool full_ = false;
};

/// Where the entries of a part of the log stood at one moment. These bytes are never overwritten.
struct ReadPlan {
  struct Part {
    std::shared_ptr<DiskFile> file;
    std::uint64_t number = 0;
    std::uint64_t salt = 0;
    std::uint64_t end = 0;
    raft::Index first;
    raft::Index last;
    /// None: the positions are not in memory.
    std::optional<std::vector<Run>> runs;
  };
  std::vector<Part> parts;
};

/// Threads: one user at a time for the calls before start(); after it one thread writes (append(),
/// rest()), and others may plan() and read(). A thread of its own, the preparer, makes segments and
/// removes them.
class SegmentStore {
 public:
  /// Segments whose positions are kept in memory in addition to the newest one's. Some 2 MiB each
  /// when every batch has one tiny entry, far less otherwise.
  static constexpr std::size_t kPositionsMax = 4;
  /// Segments that are made ahead of the one that is being written. The last of them is the
  /// reserve: it is entered only when another one stands behind it, or when the disk is known to be
  /// full.
  static constexpr std::size_t kAhead = 2;

  /// What the preparer reports, from its own thread.
  struct Listener {
    /// The disk is full (reported before the reserve is touched), or the reserve is whole again.
    std::function<void(bool full)> space = [](bool) {};
    /// A segment could not be made, or one could not be removed, for another reason than space.
    std::function<void(const Error& error)> failed = [](const Error&) {};
  };

  /// Errors: as SegmentLog::open.
  static Result<std::unique_ptr<SegmentStore>> open(const SegmentLogOptions& options,
                                                    std::unique_ptr<Disk> disk);
  /// Closes cleanly, unless a write has failed.
  ~SegmentStore();
  SegmentStore(const SegmentStore&) = delete;
  SegmentStore& operator=(const SegmentStore&) = delete;

  const NodeIdentity& identity() const { return identity_; }
  const std::string& path() const { return disk_->path(); }
  std::uint64_t place() const { return disk_->place(); }

  // The log as open() found it; lay() changes the foundation.
  const raft::HardState& hard_state() const { return hard_state_; }
  const Foundation& foundation() const { return foundation_; }
  const Shape& shape() const { return shape_; }
  const std::vector<raft::MembershipAt>& memberships() const { return memberships_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }

  /// Replaces the foundation of a log without entries; before start(). Durable on return. Errors:
  /// invalid_argument (too large), io.
  Result<void> lay(Foundation foundation);

  /// Starts to make segments ahead, and to remove what a cut has left.
  void start(Listener listener);
  /// Ends the preparer, after the last append: no more calls of the listener.
  void stop();
  /// Writes and syncs. Errors: kNoSpace (the disk is full, and the group does not fit into the
  /// segments that are made: nothing was written, and a smaller group may fit), io (nothing more
  /// may be written).
  Result<void> append(const WriteGroup& group);
  /// How large a group may be in memory, if it has at least `bytes_min`, to fit into the segments
  /// that are made: no limit while the disk has space. Any thread.
  std::size_t group_bytes_max(std::size_t bytes_min);
  /// Call when there is nothing to write for now: writes a mark behind the last frame, which says
  /// that the frame is durable. Errors: io.
  Result<void> rest();
  /// Successful syncs of frames so far. Any thread.
  std::uint64_t syncs() const { return syncs_.load(std::memory_order_relaxed); }

  /// Where the entries from `first` to `last` stand, or a prefix of them that has at least
  /// `bytes_max` bytes of payload; nothing when `first` was cut off. Any thread.
  ReadPlan plan(raft::Index first, raft::Index last, std::size_t bytes_max);
  /// Adds the planned entries until `out` is full. Errors: corrupted, io.
  Result<void> read(ReadPlan& plan, Collector& out);

 private:
  using Lock = std::unique_lock<std::mutex>;

  SegmentStore(const SegmentLogOptions& options, std::unique_ptr<Disk> disk, FolderMark mark);
  /// Adds the folder to the message, and for damage what to do.
  static Error in_folder(const std::string& dir, const Error& error);

  // segment_store.cc
  Result<void> adopt(LoadedLog log);
  Result<Segment> make_segment(std::uint64_t number, std::uint64_t previous_salt,
                               std::uint64_t bytes_min);
  Result<void> write_mark();
  Result<void> repair(const std::vector<Repair>& repairs);
  void prepare_loop();
  void look_at_space(Lock& lock);
  bool prepare(Lock& lock);
  bool remove_dropped(Lock& lock);
  void preparer_failed(Lock& lock, const Error& error);
  void drop_front();
  std::size_t ahead() const { return segments_.size() - 1 - current_; }
  bool segment_wanted() const { return ahead() < kAhead || bytes_wanted_ > 0; }

  // segment_write.cc
  FrameHeader next_header(const Segment& segment) const;
  Segment& current_segment();
  Result<Segment*> room_for(std::uint64_t frame_bytes);
  Result<void> write_frame(Segment& segment);
  void written(Segment& segment, const WriteGroup& group, std::uint64_t entries_at);

  // segment_read.cc
  void bound_positions();
  Result<void> find_runs(ReadPlan::Part& part);
  void keep_positions(std::uint64_t number, const Positions& positions);
  Result<void> read_runs(const ReadPlan::Part& part, Collector& out);

  const SegmentLogOptions options_;
  std::unique_ptr<Disk> disk_;
  FolderMark mark_;
  NodeIdentity identity_;
  raft::HardState hard_state_;
  Foundation foundation_;
  Shape shape_;
  std::vector<raft::MembershipAt> memberships_;
  std::uint64_t payload_bytes_ = 0;
  Listener listener_;

  // Of the writer.
  std::string frame_;
  std::uint64_t sequence_ = 0;
  std::uint64_t marked_ = 0;  ///< the sequence that the newest mark names
  bool healthy_ = false;
  std::atomic<std::uint64_t> syncs_{0};

  std::mutex mutex_;
  std::condition_variable prepare_wanted_;
  std::condition_variable prepared_;
  // Under mutex_. The writer alone moves `current_` and the end of the segment that it names.
  std::deque<Segment> segments_;
  std::size_t current_ = 0;
  std::uint64_t bytes_wanted_ = 0;  ///< above 0: another segment is wanted, of at least this size
  std::optional<Error> prepare_error_;
  std::uint64_t attempts_ = 0;  ///< finished attempts to make a segment
  bool urgent_ = false;         ///< the writer waits: try now, even if the disk is full
  bool full_ = false;           ///< and the listener knows
  raft::Index base_;
  std::uint64_t base_segment_ = 0;    ///< the segment in which the newest base stands
  std::vector<std::string> dropped_;  ///< the names of segments that are not of the log any more
  Predecessor predecessor_;           ///< of the first segment that is
  std::uint64_t uses_ = 0;
  bool stopping_ = false;

  std::thread preparer_;
};

}  // namespace leasehold::storage
