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
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::storage {

/// What one sync makes durable.
struct WriteGroup {
  BatchBody body;  ///< `count` is taken from the entries
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
  /// What was collected; not_found if it is nothing.
  Result<std::vector<raft::Entry>> finish();

 private:
  const ReadRequest& request_;
  raft::Index next_;
  std::vector<raft::Entry> entries_;
  std::size_t bytes_ = 0;
  bool full_ = false;
};

/// Where the entries of a part of the log stood at one moment. Nothing that stands there is ever
/// overwritten.
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
/// rest()), and others may plan() and read(). A thread of its own makes the next segment.
class SegmentStore {
 public:
  /// Segments whose positions are kept in memory beside the newest one's. Some 2 MiB each when
  /// every batch has one tiny entry, far less otherwise.
  static constexpr std::size_t kPositionsMax = 4;

  /// Errors: as SegmentLog::open.
  static Result<std::unique_ptr<SegmentStore>> open(const SegmentLogOptions& options,
                                                    std::unique_ptr<Disk> disk);
  /// Closes cleanly, unless a write has failed.
  ~SegmentStore();
  SegmentStore(const SegmentStore&) = delete;
  SegmentStore& operator=(const SegmentStore&) = delete;

  const NodeIdentity& identity() const { return identity_; }
  const std::string& path() const { return disk_->path(); }
  const StateBody& state() const { return state_; }
  const Shape& shape() const { return shape_; }
  const std::vector<raft::MembershipAt>& memberships() const { return memberships_; }

  /// Replaces the state of a log without entries. Durable on return. Errors: io.
  Result<void> write_state(StateBody state);

  /// Starts to make segments ahead.
  void start();
  /// Writes and syncs. After an error nothing more may be written. Errors: io.
  Result<void> append(const WriteGroup& group);
  /// There is nothing to write for now: leaves a mark behind the last frame which says that it is
  /// durable. Errors: io.
  Result<void> rest();
  /// Successful syncs of frames so far. Any thread.
  std::uint64_t syncs() const { return syncs_.load(std::memory_order_relaxed); }

  /// Where the entries from `first` to `last` stand, or a prefix of them that has at least
  /// `bytes_max` bytes of payload. Any thread.
  ReadPlan plan(raft::Index first, raft::Index last, std::size_t bytes_max);
  /// Adds the planned entries until `out` is full. Errors: corrupted, io.
  Result<void> read(ReadPlan& plan, Collector& out);

 private:
  using Lock = std::unique_lock<std::mutex>;

  SegmentStore(const SegmentLogOptions& options, std::unique_ptr<Disk> disk, FolderMark mark);
  Result<void> adopt(LoadedLog log);
  Result<Segment> make_segment(std::uint64_t number, std::uint64_t previous_salt,
                               std::uint64_t bytes_min);
  Result<void> write_mark();
  Result<void> repair(const std::vector<Repair>& repairs);
  FrameHeader next_header(FrameKind kind, const Segment& segment) const;
  Segment& current_segment();
  Result<Segment*> room_for(std::uint64_t frame_bytes);
  Result<void> write_frame(Segment& segment);
  void written(Segment& segment, const WriteGroup& group);
  void prepare_loop();
  void bound_positions();
  Result<void> find_runs(ReadPlan::Part& part);
  void keep_positions(std::uint64_t number, const Positions& positions);
  Result<void> read_runs(const ReadPlan::Part& part, Collector& out);

  const SegmentLogOptions options_;
  std::unique_ptr<Disk> disk_;
  FolderMark mark_;
  NodeIdentity identity_;
  StateBody state_;
  Shape shape_;
  std::vector<raft::MembershipAt> memberships_;

  // The writer's.
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
  std::uint64_t bytes_wanted_ = 0;  ///< the next segment has at least so many
  std::optional<Error> prepare_error_;
  std::uint64_t uses_ = 0;
  bool stopping_ = false;

  std::thread preparer_;
};

}  // namespace leasehold::storage
