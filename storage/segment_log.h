// SegmentLog: the durable log in files of its own, and what a node must know of itself before it
// has a log.
//
// One directory holds one node: its identity, how its group was formed, and the log of the group.
// Formats: docs/formats/log.md.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/log.h>
#include <leasehold/storage/disk.h>
#include <leasehold/storage/storage.h>
#include <leasehold/storage/sync_times.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::storage {

class GroupLog;

/// Who a directory belongs to.
struct NodeIdentity {
  std::uint64_t cluster_id = 0;
  raft::NodeId id;
  raft::Uuid uuid;  ///< random, made when the directory was first opened; a wiped one has another
  raft::Incarnation incarnation;  ///< of this open(); rises with each, durably, and starts at 1
};

/// Sizes of segments are multiples of this.
inline constexpr std::uint64_t kSegmentBytesMin = 4096;

struct SegmentLogOptions {
  /// The log's own folder. Made, with its parents, if it does not exist. It must hold nothing else.
  std::string dir;
  raft::GroupId group;
  std::uint64_t cluster_id = 0;
  raft::NodeId id;  ///< of this node, above 0
  /// Bytes that wait for the disk, bookkeeping included. Above half of this the log is behind():
  /// its callers give it no commands and no entries. Above all of it the log ends with failed()
  /// (overloaded): what one caller gives at once has to fit into the other half.
  std::size_t queue_bytes_max = 256U << 20U;
  /// What one sync covers at most; one batch may exceed it.
  std::size_t sync_bytes_max = 16U << 20U;
  /// Reads that wait. Above this limit a read is answered with overloaded.
  std::size_t reads_max = 4096;
  /// Size of a file of the log; a batch that is larger gets a larger one. The next two files are
  /// made while one is being filled, so the disk holds up to twice this much that is still empty:
  /// the second one is the reserve for a disk that becomes full. Opening reads one file at a time
  /// into memory.
  std::uint64_t segment_bytes = 16U << 20U;
  /// Size of the first one. Each next one is four times as large, up to segment_bytes: a new node
  /// starts at once, however slow its disk.
  std::uint64_t first_segment_bytes = 256U << 10U;
  /// With less free space than this, the disk counts as full: no file of the log is made that would
  /// leave less. It is for the state machine on the same disk, which has to be able to store what
  /// was applied before the log can be cut: the default is sixteen memtables of the one that ships.
  /// 0: the log takes all there is.
  std::uint64_t free_bytes_min = 64U << 20U;
  /// How often the free space is looked at while no file has to be made: others may use it up.
  /// Above 0; without meaning when free_bytes_min is 0.
  std::chrono::milliseconds space_look{250};
  /// Notes how long each sync of a frame takes; outlives the log. Null: nobody does.
  SyncTimes* sync_times = nullptr;
  /// The pause before the log tries again to make a file, when there was no space for it. Above 0.
  std::chrono::milliseconds space_retry{1000};
};

/// The log of one group in segments: files of fixed size, filled with zeroes before they are used.
/// A write overwrites zeroes, so its sync stores data and nothing else. Damage is distinguished
/// from a torn write and refused (docs/formats/log.md says how, and what cannot be distinguished).
///
/// Life: open() → (confirm_set() → form(), or join(), when formed() is false) →
/// take_initial_state() → start() → persist() and read() → destructor. Everything is called on one
/// thread at a time; syncs() on any. The calls before start() block on the disk, those after it
/// never do.
///
/// Threads: start() makes one writer, which makes everything that waits durable with one sync, one
/// reader, and one that makes and removes files. The sink's persisted() arrives on the writer,
/// entries_read() on the reader, space() on the thread of the files, failed() on any of the first
/// two. The destructor makes what persist() took durable (unless the log has failed), delivers its
/// completions, answers reads that wait with `stopped`, and joins the threads; the sink outlives
/// it.
///
/// A write or a sync that fails is never tried again: what the kernel still holds is unknown.
///
/// The log notices a full disk when it makes a file, which happens two files ahead, and when it
/// checks the free space now and then (free_bytes_min; space again means room for one file more).
/// The sink hears space(true) before the last of them, the reserve, is touched; from then on the
/// log accepts batches until the reserve is used up, and fails only then. It tries to make a file
/// again from time to time, and whenever a cut has given space back; when the reserve is whole
/// again, the sink hears space(false).
///
/// A cut gives back the files that lie wholly below the base, on the thread that makes files.
class SegmentLog final : public Storage {
 public:
  /// The log itself, as those of many groups are: what is said here of each call goes for its own.
  GroupLog& group();

  using Options = SegmentLogOptions;

  /// Opens or makes the directory, checks that it is this node's, and reads the whole log. Every
  /// entry that was ever reported as persisted is there, or this is refused.
  ///
  /// Errors, each naming the directory and what to do: invalid_argument (options), in_use (another
  /// process has it open), wrong_cluster (it is another cluster's or node's), unsupported_format
  /// (written by another build; names both format numbers), corrupted (damaged, or not a Leasehold
  /// directory), io.
  static Result<std::unique_ptr<SegmentLog>> open(const Options& options);
  /// The same on a disk of the caller's; `dir` is not used.
  static Result<std::unique_ptr<SegmentLog>> open(const Options& options,
                                                  std::unique_ptr<Disk> disk);
  ~SegmentLog() override;
  SegmentLog(const SegmentLog&) = delete;
  SegmentLog& operator=(const SegmentLog&) = delete;

  const NodeIdentity& identity() const;
  /// Of the folder's lock: see lock_place.h.
  std::uint64_t place() const;

  // Formation. Only before start().

  /// The one set of initial members that this node has confirmed; empty: none yet.
  const std::vector<raft::Member>& confirmed_set() const;
  /// The settings that were confirmed with it; none: by a build that knew none.
  const std::optional<raft::GroupSettings>& confirmed_settings() const;
  /// Confirms `members` (not empty, ids unique, this node among them under its uuid), and the
  /// settings that the group begins with. Durable on
  /// return. Confirming the same set again is a success without a write. Errors: wrong_cluster when
  /// another set was confirmed (it stays), invalid_argument, io (the log is of no further use).
  Result<void> confirm_set(std::vector<raft::Member> members,
                           const std::optional<raft::GroupSettings>& settings = {});
  /// Forms the group: the confirmed set, all of them voters, becomes the membership at `base`,
  /// where the log begins: at nothing, or behind what the members were restored from. Durable on
  /// return; a success without a write when already formed. Errors: invalid_argument when no set
  /// was confirmed, io.
  Result<void> form(raft::LogId base = {});
  /// Instead of confirm_set() and form(): this node joins a group that exists, and knows none of
  /// its members yet. Its log begins at nothing, with an empty membership. Durable on return; a
  /// success without a write when it has joined already. Errors: wrong_cluster when a set was
  /// confirmed here or the group was formed, io.
  Result<void> join();
  bool formed() const;
  /// The log began with join().
  bool joined() const;

  /// What the core starts from. `applied` is 0 here: only the state machine knows it. Asserts
  /// formed(). Call it once, before start().
  raft::InitialState take_initial_state();

  /// Starts the threads; completions go to `sink`, which outlives this log. Asserts formed().
  void start(StorageSink& sink);

  void persist(raft::PersistBatch batch) override;
  void read(const ReadRequest& request) override;
  bool behind() const override;

  /// Syncs since open(). Any thread.
  std::uint64_t syncs() const;

 private:
  class Impl;
  explicit SegmentLog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::storage
