// One node's log disk: what was written, and what of it would survive a crash now.
#pragma once

#include <leasehold/sim/world/world.h>
#include <leasehold/storage/storage.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// The log and the hard state at one moment.
struct DiskImage {
  raft::HardState hard_state;
  /// Where the log begins; none: it was never cut.
  std::optional<raft::LogBase> base;
  /// The entry behind the base comes first.
  std::deque<raft::Entry> entries;

  void apply(const raft::PersistBatch& batch);
  raft::LogId base_id() const { return base ? base->id : raft::LogId{}; }
  raft::Index last_index() const { return raft::Index(base_id().index.value() + entries.size()); }
  /// Asserts that there is one: above the base, not above the last.
  const raft::Entry& entry(raft::Index index) const;
  /// Whether this log holds the entry, or begins behind it. What is below a base is covered by a
  /// state machine or a snapshot; that the base itself is a committed entry is judged elsewhere.
  bool holds(raft::LogId id) const {
    if (id.index < base_id().index) return true;
    if (id.index == base_id().index) return id == base_id();
    return id.index <= last_index() && entry(id.index).id == id;
  }

 private:
  void cut(const raft::LogBase& to);
};

/// Runs an action of the process whose disk this is: at once, or when it is no longer frozen; never
/// if it has died by then.
using RunInProcess = std::function<void(EventQueue::Action)>;

/// Storage as production has it: batches become durable in order, everything that waits shares one
/// sync. A crash keeps the synced batches and any number of the waiting ones, in order. A full disk
/// still takes what fits into a reserve.
class SimDisk : public storage::Storage {
 public:
  /// `salt`: of what is drawn.
  SimDisk(World& world, std::uint64_t node, std::function<void(const raft::PersistBatch&)> watch,
          std::uint64_t salt = 0);

  /// A new process opens the disk. Completions go to `sink`, by way of `run`.
  void open(storage::StorageSink& sink, RunInProcess run);
  /// The process is gone. Returns (waiting batches, of which survived).
  std::pair<std::size_t, std::size_t> crash();
  /// What a starting node gets from the disk; the state machine's part is left out.
  raft::InitialState initial_state(const raft::Membership& formed_with) const;

  void persist(raft::PersistBatch batch) override;
  void read(const storage::ReadRequest& request) override;

  /// The disk is full for this time, except for a reserve of a few batches.
  void fill(Duration length);
  bool full() const { return full_; }
  /// The disk and its reserve are full: no process can run here.
  bool exhausted() const { return full_ && reserve_ == 0; }
  /// There is space again, even before the end of the full time.
  void empty();
  /// The faults have ended: there is space, and a sync that is stalled ends soon.
  void heal();

  /// How many batches this process has given to the disk, and how many of them are durable.
  std::pair<std::uint64_t, std::uint64_t> progress() const {
    return {given_, given_ - waiting_.size()};
  }

  /// The next sync takes at least this long.
  void stall_next(Duration length) { stall_next_ = length; }

  /// Everything that the disk has received.
  const DiskImage& written() const { return written_; }
  /// What would survive any crash.
  const DiskImage& durable() const { return durable_; }

 private:
  void start_sync();
  /// The sync under way ends after `length`, in place of its earlier end.
  void end_sync_after(Duration length);
  void finish_sync(std::size_t batches);
  Duration draw_sync_time();
  void deliver_entries(const storage::ReadRequest& request);
  void tell_space();
  void use_reserve(const raft::PersistBatch& batch);

  World& world_;
  const std::uint64_t node_;
  /// Called with every batch before it is written.
  std::function<void(const raft::PersistBatch&)> watch_;
  Random random_;
  storage::StorageSink* sink_ = nullptr;
  RunInProcess run_;
  /// Rises with each crash: completions of an earlier life are void.
  std::uint64_t life_ = 0;
  bool syncing_ = false;
  /// Of the sync under way: how many batches it makes durable, when it ends, and how often that was
  /// decided since the start.
  std::size_t sync_batches_ = 0;
  TrueInstant sync_ends_;
  std::uint64_t sync_decisions_ = 0;
  bool broken_ = false;
  bool full_ = false;
  /// Rises with each filling and each emptying.
  std::uint64_t fillings_ = 0;
  /// What may still be written while the disk is full, in bytes.
  std::uint64_t reserve_ = 0;
  Duration stall_next_{0};
  std::uint64_t given_ = 0;  ///< batches
  DiskImage written_;
  DiskImage durable_;
  /// Written and not durable, oldest first.
  std::deque<raft::PersistBatch> waiting_;
};

}  // namespace leasehold::sim
