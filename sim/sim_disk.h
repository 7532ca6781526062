// One node's log disk: what was written, and what of it would survive a crash now.
#pragma once

#include <leasehold/sim/world.h>
#include <leasehold/storage/storage.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace leasehold::sim {

/// The log and the hard state at one moment. Entry i stands at entries[i - 1].
struct DiskImage {
  raft::HardState hard_state;
  std::vector<raft::Entry> entries;

  void apply(const raft::PersistBatch& batch);
  raft::Index last_index() const { return raft::Index(entries.size()); }
  /// Asserts that there is one.
  const raft::Entry& entry(raft::Index index) const;
  bool holds(raft::LogId id) const {
    return id.index <= last_index() && id.index.value() > 0 && entry(id.index).id == id;
  }
};

/// Runs an action of the process whose disk this is: at once, or when it is no longer frozen; never
/// if it has died by then.
using RunInProcess = std::function<void(EventQueue::Action)>;

/// Storage as production has it: batches become durable in order, everything that waits shares one
/// sync. A crash keeps the synced batches and any number of the waiting ones, in order.
class SimDisk : public storage::Storage {
 public:
  SimDisk(World& world, std::uint64_t node, std::function<void(const raft::PersistBatch&)> watch);

  /// A new process opens the disk. Completions go to `sink`, by way of `run`.
  void open(storage::StorageSink& sink, RunInProcess run);
  /// The process is gone. Returns (waiting batches, of which survived).
  std::pair<std::size_t, std::size_t> crash();
  /// What a starting node is told, but for what the state machine knows.
  raft::InitialState initial_state(const raft::Membership& formed_with) const;

  void persist(raft::PersistBatch batch) override;
  void read(const storage::ReadRequest& request) override;

  /// The next sync takes at least so long.
  void stall_next(Duration length) { stall_next_ = length; }

  /// Everything handed over.
  const DiskImage& written() const { return written_; }
  /// What would survive any crash.
  const DiskImage& durable() const { return durable_; }

 private:
  void start_sync();
  void finish_sync(std::size_t batches);
  Duration draw_sync_time();
  void deliver_entries(const storage::ReadRequest& request);

  World& world_;
  const std::uint64_t node_;
  /// Told of every batch before it is written.
  std::function<void(const raft::PersistBatch&)> watch_;
  Random random_;
  storage::StorageSink* sink_ = nullptr;
  RunInProcess run_;
  /// Rises with each crash: completions of an earlier life are void.
  std::uint64_t life_ = 0;
  bool syncing_ = false;
  bool broken_ = false;
  Duration stall_next_{0};
  DiskImage written_;
  DiskImage durable_;
  /// Written and not durable, oldest first.
  std::deque<raft::PersistBatch> waiting_;
};

}  // namespace leasehold::sim
