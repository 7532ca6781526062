// MemoryLog: the Storage contract without a disk, for tests and for embedding. No threads: the
// caller says when the disk makes progress.
#pragma once

#include <leasehold/raft/log.h>
#include <leasehold/storage/storage.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

namespace leasehold::storage {

/// A log in memory. Batches wait until pump() makes them durable; crash() loses those that wait.
/// One thread at a time. The sink is only called inside pump(), and may call persist() and read()
/// from there.
class MemoryLog final : public Storage {
 public:
  /// An empty log of a group that was formed with `base_membership`.
  explicit MemoryLog(raft::Membership base_membership);

  /// Completions go to `sink`, which outlives this log or its next start().
  void start(StorageSink& sink);

  void persist(raft::PersistBatch batch) override;
  void read(const ReadRequest& request) override;

  /// Makes up to `batches_max` waiting batches durable as one sync, delivers one persisted() for
  /// them, then answers every read that was asked for before the call. Returns whether anything was
  /// delivered.
  bool pump(std::size_t batches_max = static_cast<std::size_t>(-1));
  /// Delivers space(full), as from a full disk, or from one that has space again. The log still
  /// accepts everything.
  void announce_space(bool full);
  /// Delivers failed(error); from now on nothing is persisted and reads are answered with
  /// `stopped`.
  void fail(Error error);
  /// The process died: batches that were not durable are gone, completions are never delivered, and
  /// the log waits for start() again.
  void crash();

  /// The initial state of a core after crash() or at first, with `applied` at 0. Contains the
  /// durable part.
  raft::InitialState initial_state() const;
  /// Where the durable log begins.
  const raft::LogBase& durable_base() const { return durable_.base; }
  /// Durable entries, ascending, from the one after durable_base() on.
  const std::vector<raft::Entry>& durable_entries() const { return durable_.entries; }
  std::size_t batches_waiting() const { return waiting_.size(); }
  std::uint64_t syncs() const { return syncs_; }

 private:
  /// The content of a disk. Invariant: entries[i] has index base.id.index + 1 + i.
  struct Image {
    raft::HardState hard_state;
    raft::LogBase base;
    std::vector<raft::Entry> entries;

    raft::LogId last() const { return entries.empty() ? base.id : entries.back().id; }
    void apply(const raft::PersistBatch& batch);
    void truncate(raft::Index from);
    void cut(const raft::LogBase& to);
  };

  void answer(const ReadRequest& request);

  Image durable_;
  /// The newest entries, durable or not: read() returns these.
  Image newest_;
  std::deque<raft::PersistBatch> waiting_;
  std::deque<ReadRequest> reads_;
  StorageSink* sink_ = nullptr;
  bool failed_ = false;
  std::uint64_t syncs_ = 0;
};

}  // namespace leasehold::storage
