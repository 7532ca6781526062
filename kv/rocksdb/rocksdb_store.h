// RocksdbStore: the key-value store on RocksDB, without a write-ahead log: the Raft log is one.
// Format: docs/formats/kv.md.
#pragma once

#include <leasehold/kv/comparison.h>
#include <leasehold/kv/rocksdb/record_cache.h>
#include <leasehold/kv/store.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace leasehold::kv {

struct RocksdbStoreOptions {
  /// The store's own folder. Made, with its parents, if it does not exist.
  std::string dir;
  std::uint64_t cluster_id = 0;
  raft::NodeId id;  ///< of this node, above 0
  /// Called once, on the thread that noticed it, when the disk fails: the node has to stop. May be
  /// empty.
  std::function<void(Error)> on_failure;
  /// Called when a write begins to wait for space on a full disk (true), and when none waits any
  /// more (false). On the threads that write; must be quick. May be empty.
  std::function<void(bool)> on_full;
  /// How often a full disk is tried again; above 0.
  std::chrono::milliseconds full_retry{500};
  /// See Backend. The same at all replicas, always.
  std::uint64_t ids_above = 0;
  /// Where the records of keys that are read are kept. Stores of a process may share it. Null: each
  /// read looks in the database.
  std::shared_ptr<RecordCache> cache;
  /// The limits of the history for watchers.
  EventHistory::Limits events;
  /// The files below, for tests; null: the machine's.
  rocksdb::Env* env = nullptr;
};

/// The head of an archive (docs/formats/snapshot.md).
struct ArchiveInfo {
  std::uint64_t cluster_id = 0;  ///< of the archived store
  raft::Index last;              ///< the last entry whose effect is in it
  std::uint64_t revision = 0;
  std::uint64_t keys = 0;
  friend bool operator==(const ArchiveInfo&, const ArchiveInfo&) = default;
};

/// What a state leaves out, so that no number comes again that was given in what it lacks.
struct NumberGap {
  raft::Index last;             ///< what the state is at behind the gap; above what is applied
  std::uint64_t revisions = 0;  ///< and so fencing tokens
  std::uint64_t ids = 0;        ///< of leases and of sessions, as far as the store chooses them
};

/// What a scrub has found at one instant.
struct Scrubbed {
  raft::Index index;  ///< applied at that instant
  StateSum kept;      ///< what apply() has kept
  StateSum stored;    ///< of the records that are on the disk
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;
};

/// See store.h. Each apply() is one atomic write of its data, the applied index and the revision
/// into memory, which RocksDB flushes in its own time. After a crash durable_index() is that of the
/// last flush; the destructor flushes, so that a planned restart applies nothing again.
///
/// A full disk is no failure: apply(), make_durable() and take_snapshot() wait until there is space
/// again, and reads continue. interrupt() ends the wait.
class RocksdbStore final : public Store {
 public:
  using Options = RocksdbStoreOptions;

  /// Errors, each naming the directory and what to do: invalid_argument, in_use, wrong_cluster (it
  /// belongs to another cluster or node), unsupported_format (with both numbers), corrupted, io.
  static Result<std::unique_ptr<RocksdbStore>> open(Options options);
  ~RocksdbStore() override;
  RocksdbStore(const RocksdbStore&) = delete;
  RocksdbStore& operator=(const RocksdbStore&) = delete;

  /// The index that was durable at open(), or was flushed since, by make_durable() or by RocksDB
  /// itself.
  raft::Index durable_index() const override;
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override;

  Result<std::optional<Value>> get(std::string_view key) const override;
  Result<std::vector<std::optional<Value>>> get_all(const std::vector<std::string_view>& keys,
                                                    Load load) const override;
  Result<std::vector<std::string>> keys_after(std::optional<std::string_view> after,
                                              std::size_t count) const override;
  Result<Rows> rows(std::string_view prefix, std::optional<std::string_view> after,
                    std::size_t count, Load load) const override;
  Result<SlotRows> slot_rows(const SlotSet& slots, std::optional<std::string_view> after,
                             Load load) const override;
  Result<SlotFences> slot_fences(const SlotSet& slots,
                                 std::optional<std::string_view> after) const override;
  Result<grant::FencingToken> fence(std::string_view key) const override;
  Result<std::optional<std::size_t>> length(std::string_view key) const override;
  Result<std::vector<replica::SessionTable::Session>> sessions() const override;
  Result<std::optional<FoundLease>> find_lease(grant::LeaseId id,
                                               std::string_view name) const override;
  Result<std::optional<grant::LeaseTable::Lease>> lease_terms(grant::LeaseId id,
                                                              std::string_view name) const override;
  Result<std::vector<grant::LeaseTable::Lease>> leases_after(grant::LeaseId after,
                                                             std::size_t count) const override;
  Result<LeaseChanges> lease_changes(std::uint64_t cursor) const override;
  const EventHistory& events() const override;
  const Users& users() const override;
  const Slots& slots() const override;
  std::uint64_t size() const override;
  std::uint64_t fences() const override;
  std::uint64_t revision() const override;
  raft::Index applied_index() const override;

  std::optional<Error> failure() const override;
  /// Errors: io, corrupted (the store has failed).
  Result<raft::Index> make_durable() override;
  /// The archive of a checkpoint (docs/formats/snapshot.md). It takes space only for data that is
  /// overwritten later; its files are removed with it, or when the store is opened again.
  Result<std::shared_ptr<const replica::Snapshot>> take_snapshot() override;
  /// Also: wrong_cluster (another cluster's snapshot), unsupported_format (with both numbers),
  /// invalid_argument (older than what is applied). After an io error about LIVE the store has
  /// failed; after every other error the old state remains.
  Result<void> install_snapshot(const replica::Snapshot& snapshot) override;

  /// Everything is gone, durably, as if the store had never been used; readers and listeners see
  /// it as they see another state. While nothing is applied. Errors: io, corrupted; then it has
  /// failed, or is as it was.
  Result<void> clear();

  /// For the state of a group that goes on without what it has lost
  /// (docs/decisions/0035): the numbers that are given from here on are behind the gap. On the
  /// thread of apply(), or while nothing is applied. Errors: invalid_argument (there are no such
  /// numbers), io, corrupted (the store has failed).
  Result<void> leave_gap(const NumberGap& gap);

  /// Ends every wait for space on a full disk, now and later: a waiting command fails as on any
  /// disk error, and is applied again from the log at the next start. For a node that stops. Any
  /// thread.
  void interrupt();

  // Whether the state is the group's (docs/decisions/0020).

  /// What the replicas have said of their states.
  const Comparison& comparison() const;
  /// Reads every record as it is at one instant, in files that are checked against their checksums,
  /// and sums them up. Any thread, as long as that takes: `step` gets the bytes read so far, after
  /// every few, may sleep, and says whether to go on. None: it said no, or another database has
  /// become the live one. Errors: corrupted, io.
  Result<std::optional<Scrubbed>> scrub(const std::function<bool(std::uint64_t bytes)>& step) const;
  /// From now on, and after a restart, every read is refused and every command answered with
  /// store_failed; the commands are still applied, and no snapshot is taken. Another state ends it:
  /// install_snapshot(), or what stage_successor() has left. Any thread.
  void distrust(const std::string& why);
  /// Why; empty: it is trusted.
  std::string distrusted() const;
  /// The state of another member waits for its index.
  bool rebuilding() const;
  /// Bytes of the records that a scrub reads, about.
  std::uint64_t stored_bytes() const;
  /// Whether stage_successor() may be called. Errors: in_use (a process has it open),
  /// invalid_argument (there is no store), io.
  static Result<void> check_rebuildable(const std::string& dir);
  /// For a store that no process has open: leaves the state of another member, which takes the
  /// place of this one in the next process, when all commands up to its index have come again. What
  /// is there now is kept until then. Returns that index. Errors: as open() and describe(),
  /// wrong_cluster, invalid_argument (it is older than what is here).
  static Result<raft::Index> stage_successor(const std::string& dir,
                                             const replica::Snapshot& archive);

  // Archives: from take_snapshot(), or read back from a file. Errors: corrupted, unsupported_format
  // (with both numbers), io.

  /// The archive in a file, after its first `offset` bytes.
  static Result<std::shared_ptr<const replica::Snapshot>> open_archive(const std::string& path,
                                                                       std::uint64_t offset = 0);
  /// Reads the head and the length only.
  static Result<ArchiveInfo> describe(const replica::Snapshot& archive);
  /// Reads all of it: every block is as it was written.
  static Result<ArchiveInfo> verify(const replica::Snapshot& archive);
  /// Its records of slots, with no other file on the disk. Reads little of it.
  static Result<SlotMap> slots_of(const replica::Snapshot& archive);

  /// Makes a new store from a snapshot of any cluster. `options.dir` must not exist or be empty;
  /// after an error its content is of no use. Returns the applied index. Errors: as open() and
  /// install_snapshot(), and in_use when there is a store already.
  static Result<raft::Index> restore(Options options, const replica::Snapshot& snapshot);

 private:
  class Impl;
  explicit RocksdbStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::kv
