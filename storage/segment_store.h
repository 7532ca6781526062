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
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace leasehold::storage {

/// What one sync makes durable of one group.
struct GroupWrite {
  raft::GroupId group;
  /// `count` is taken from the entries, the confirmed set from the log when there is a base.
  BatchBody body;
  std::vector<const raft::Entry*> entries;
};

/// What one sync makes durable. In the log of one group: of that group.
struct Write {
  std::vector<GroupWrite> groups;
  std::optional<ProcessRecord> process;
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
    SegmentExtent extent;
    raft::Index first;
    raft::Index last;
    /// None: the positions are not in memory.
    std::optional<std::vector<Run>> runs;
  };
  raft::GroupId group;
  std::vector<Part> parts;
};

/// What open() found of a group.
struct FoundGroup {
  raft::HardState hard_state;
  Foundation foundation;
  Shape shape;
  std::vector<raft::MembershipAt> memberships;
  std::uint64_t payload_bytes = 0;
};

/// What a folder is opened as.
enum class Sharing : std::uint8_t {
  one_group,  ///< the log of one group
  shared,     ///< the logs of many; a folder that held one group's becomes such a one for good
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
                                                    std::unique_ptr<Disk> disk, Sharing sharing);
  /// Closes cleanly, unless a write has failed.
  ~SegmentStore();
  SegmentStore(const SegmentStore&) = delete;
  SegmentStore& operator=(const SegmentStore&) = delete;

  const NodeIdentity& identity() const { return identity_; }
  const std::string& path() const { return disk_->path(); }
  std::uint64_t place() const { return disk_->place(); }

  bool shared() const { return mark_.format == kSharedLogFormat; }

  // The log as open() found it.
  /// Takes what was found of the group: nothing, of a group that is new.
  FoundGroup take_group(raft::GroupId group);
  /// As it was taken, and nothing was appended to it since but what lays a foundation.
  void give_back(raft::GroupId group, FoundGroup found);
  /// Of a group that was found and not taken: the members that its log names last.
  std::vector<raft::Member> members(raft::GroupId group);
  std::vector<raft::GroupId> groups();
  const ProcessRecord& process() const { return process_; }

  /// Starts to make segments ahead, and to remove what a cut has left.
  void start(Listener listener);
  /// Ends the preparer, after the last append: no more calls of the listener.
  void stop();
  /// Writes and syncs. Errors: kNoSpace (the disk is full, and the write does not fit into the
  /// segments that are made: nothing was written, and a smaller one may fit), io (nothing more
  /// may be written).
  Result<void> append(const Write& write);
  /// How large a write may be in memory, if it has at least `bytes_min`, to fit into the segments
  /// that are made: no limit while the disk has space. Any thread.
  std::size_t write_bytes_max(std::size_t bytes_min);
  /// Copies a part of what the first segment still holds to the end, if that is worth it: where
  /// most of the log's files is of no use any more. False: there was nothing to do. Errors: as
  /// append(), corrupted.
  Result<bool> move_front();
  /// Call when there is nothing to write for now: writes a mark behind the last frame, which says
  /// that the frame is durable. Errors: io.
  Result<void> rest();
  /// Successful syncs of frames so far. Any thread.
  std::uint64_t syncs() const { return syncs_.load(std::memory_order_relaxed); }

  /// Where the entries from `first` to `last` of the group stand, or a prefix of them that has at
  /// least `bytes_max` bytes of payload; nothing when `first` was cut off. Any thread.
  ReadPlan plan(raft::GroupId group, raft::Index first, raft::Index last, std::size_t bytes_max);
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
  bool reserve_is_whole() const { return !full_ && ahead() >= kAhead; }

  // segment_write.cc
  /// How large a frame fits at the end of `segment`, with a mark behind it.
  static std::uint64_t room_in(const Segment& segment);
  FrameHeader next_header(const Segment& segment) const;
  Segment& current_segment();
  Result<Segment*> room_for(std::uint64_t frame_bytes);
  Result<void> write_frame(Segment& segment);
  Result<Segment*> write_at_end(BatchEncoder& encoder);
  void note_process(const Segment& segment);
  void note_end(Segment& segment);
  void note_written(Segment& segment, const Write& write,
                    const std::vector<std::uint64_t>& entries_at);
  void note_group(Segment& segment, const GroupWrite& write, std::uint64_t entries_at);

  // segment_move.cc
  /// What a segment still holds of one group.
  struct Held {
    raft::GroupId group;
    StateRecord state;
    bool foundation = false;
    std::vector<Part> parts;
  };
  /// A section of copies.
  struct Copy {
    raft::GroupId group;
    BatchBody body;
    std::string entries;
    std::uint64_t at = 0;  ///< of the entries in the frame
  };
  std::optional<SegmentExtent> front_to_move();
  /// Whether the frame leaves the reserve alone.
  bool may_write_copies();
  std::vector<Held> held_in(std::uint64_t segment);
  void note_copies(Segment& segment, const std::vector<Copy>& copies);

  // segment_read.cc
  static SegmentExtent extent_of(const Segment& segment);
  void bound_positions();
  Result<void> find_runs(raft::GroupId group, ReadPlan::Part& part);
  void keep_positions(std::uint64_t number, const SegmentPositions& positions);
  Result<void> read_runs(const ReadPlan::Part& part, Collector& out);

  const SegmentLogOptions options_;
  std::unique_ptr<Disk> disk_;
  FolderMark mark_;
  NodeIdentity identity_;
  std::map<raft::GroupId, FoundGroup> found_;
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
  std::unordered_map<std::uint64_t, GroupIndex> groups_;
  ProcessRecord process_;
  std::uint64_t process_segment_ = 0;  ///< in which it stands; 0: nowhere
  Holders holders_;
  std::vector<std::string> dropped_;  ///< the names of segments that are not of the log any more
  Predecessor predecessor_;           ///< of the first segment that is
  std::uint64_t uses_ = 0;
  bool stopping_ = false;

  std::thread preparer_;
};

}  // namespace leasehold::storage
