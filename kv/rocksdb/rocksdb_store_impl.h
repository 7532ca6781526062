// The inside of RocksdbStore. Not for other rooms.
//
// Threads. apply() and install_snapshot() run on one thread and change what there is; reads run on
// any and pin the database that they read (Pinned). make_durable() and take_snapshot() run on any
// other, and hold replaced_, so that the database under them is not replaced meanwhile.
#pragma once

#include <leasehold/kv/evaluate.h>
#include <leasehold/kv/rocksdb/rocksdb_database.h>
#include <leasehold/kv/rocksdb/rocksdb_folder.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/kv/rocksdb/rocksdb_sum.h>

#include <rocksdb/db.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::kv {

class RocksdbStore::Impl final : private Backend {
 public:
  explicit Impl(Options options) : options_(std::move(options)), events_(options_.events) {
    if (options_.env == nullptr) options_.env = rocksdb::Env::Default();
  }
  ~Impl() override;

  // rocksdb_store.cc
  Result<void> open();
  Result<raft::Index> restore(const replica::Snapshot& snapshot);
  Result<raft::Index> make_durable();
  Result<std::shared_ptr<const replica::Snapshot>> take_snapshot();
  Result<void> install_snapshot(const replica::Snapshot& snapshot);
  Result<void> clear();

  // rocksdb_store_writes.cc
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands, raft::Index last);
  Result<void> leave_gap(const NumberGap& gap);
  void interrupt() { interrupted_.store(true); }
  std::optional<Error> failure() const;

  // rocksdb_store_trust.cc
  Result<std::optional<Scrubbed>> scrub(const std::function<bool(std::uint64_t bytes)>& step) const;
  void distrust(const std::string& why);
  std::string distrusted() const;
  bool rebuilding() const { return waits_.load(); }
  std::uint64_t stored_bytes() const;
  Result<void> open_folder_of_stopped();
  Result<raft::Index> stage_successor(const replica::Snapshot& archive);
  const Comparison& comparison() const { return comparison_; }

  // rocksdb_store_reads.cc
  Result<std::optional<Value>> get(std::string_view key) const { return get(key, Load::whole); }
  Result<std::vector<std::optional<Value>>> get_all(const std::vector<std::string_view>& keys,
                                                    Load load) const;
  Result<std::vector<std::string>> keys_after(std::optional<std::string_view> after,
                                              std::size_t count) const;
  Result<Rows> rows(std::string_view prefix, std::optional<std::string_view> after,
                    std::size_t count, Load load) const;
  Result<SlotRows> slot_rows(const SlotSet& slots, std::optional<std::string_view> after,
                             Load load) const;
  Result<SlotFences> slot_fences(const SlotSet& slots, std::optional<std::string_view> after) const;
  Result<grant::FencingToken> stored_fence(std::string_view key) const;
  Result<std::optional<std::size_t>> length(std::string_view key) const;
  Result<std::vector<replica::SessionTable::Session>> sessions() const;
  Result<std::optional<FoundLease>> find_lease(grant::LeaseId id, std::string_view name) const;
  Result<std::optional<grant::LeaseTable::Lease>> lease_terms(grant::LeaseId id,
                                                              std::string_view name) const;
  Result<std::vector<grant::LeaseTable::Lease>> leases_after(grant::LeaseId after,
                                                             std::size_t count) const;
  Result<LeaseChanges> lease_changes(std::uint64_t cursor) const;

  const EventHistory& events() const { return events_; }
  const Users& users_seen() const { return users_; }
  const Slots& slots_seen() const { return slots_; }
  /// Its numbers belong together, and may be read without a pin: the object is never destroyed
  /// before the store.
  Database& live() const { return *live_.load(std::memory_order_acquire); }

 private:
  // Backend, in rocksdb_store_writes.cc
  Result<std::optional<Value>> load(std::string_view key) override;
  void put(std::string_view key, Value value) override;
  void erase(std::string_view key) override;
  Result<grant::FencingToken> fence(std::string_view key) override;
  void put_fence(std::string_view key, grant::FencingToken token, bool first) override;
  std::size_t fence_count() override { return live().fences_.load(); }
  grant::LeaseTable& leases() override { return live().leases_.begin_step(); }
  Users& users() override { return users_; }
  Slots* slots() override { return &slots_; }
  std::uint64_t ids_above() override { return options_.ids_above; }
  void skip_to(std::uint64_t revision) override { events_.skip_to(revision); }
  void tell(const Revision& revision) override { events_.stage(revision); }
  void compare() override { compare_ = true; }
  void hear(const StateReport& report) override { comparison_.hear(report); }

  // rocksdb_store.cc
  Result<void> open_folder();
  Result<void> check_identity(rocksdb::DB& db) const;
  Result<void> make_first_database();
  Result<std::unique_ptr<Database>> unpack_database(const replica::Snapshot& snapshot,
                                                    bool any_cluster);
  void take_over(std::unique_ptr<Database> database);
  Result<void> flush(Database& database);

  // rocksdb_store_writes.cc
  void forget_touched();
  Result<void> put_touched(rocksdb::WriteBatch& batch, StateSum& sum);
  void take_out_of_cache(CachedRecords::Write& records);
  void put_in_cache(CachedRecords::Write& records);
  Result<void> write_changes(const Counters& counters, raft::Index last);
  template <class Attempt>
  rocksdb::Status with_space(Database& database, const Attempt& attempt);
  void wait_for_space(Database& database);
  void report_full(bool waits);
  Error fail(const Error& error) const;

  // rocksdb_store_trust.cc
  std::optional<Error> refusal() const;
  Result<void> load_successor();
  std::vector<Bytes> apply_until_successor(const std::vector<replica::Command>& commands,
                                           raft::Index last);
  Result<void> switch_to_successor();
  void drop_successor();

  // rocksdb_store_reads.cc
  /// As it is now: from the cache, if it is there.
  Result<std::optional<Value>> get(std::string_view key, Load load) const;
  /// In the database; none: there is no such key. The record stays in `bytes`.
  Result<std::optional<Value>> look_up(std::string_view whole_key, rocksdb::DB& db,
                                       const rocksdb::ReadOptions& options, Load load,
                                       rocksdb::PinnableSlice& bytes) const;

  Options options_;
  std::unique_ptr<Folder> folder_;
  /// The live database is the last one; the others are closed, and only their numbers remain.
  std::vector<std::unique_ptr<Database>> databases_;
  std::atomic<Database*> live_{nullptr};
  /// Held while the live database is replaced, and by a thread that needs it for a long time.
  std::mutex replaced_;
  /// A key that the commands of one apply() have read or changed.
  struct Touched {
    bool changed = false;
    std::optional<Value> value;     ///< if it was changed; none: erased
    std::optional<StateSum> share;  ///< of the record that is stored, if it was read
    bool stored = false;            ///< a record was read
    bool cached = false;            ///< a record was in the cache
  };
  using TouchedKeys = std::map<std::string, Touched, std::less<>>;
  Touched& touch(std::string_view key);
  /// apply()'s thread.
  TouchedKeys touched_;
  TouchedKeys::iterator last_touched_ = touched_.end();  ///< is written next, most of the time
  std::map<std::string, grant::FencingToken, std::less<>> fences_;
  std::size_t changed_bytes_ = 0;  ///< of the values in touched_
  bool compare_ = false;           ///< the last one was CompareState
  Comparison comparison_;
  /// From another member: it takes the place of the live one when its index is to be applied.
  /// apply()'s thread.
  std::unique_ptr<Database> successor_;
  std::atomic<bool> waits_{false};  ///< there is one
  EventHistory events_;
  Users users_;
  Slots slots_;

  std::atomic<bool> interrupted_{false};
  std::mutex full_mutex_;
  int waiting_ = 0;  ///< threads that wait for space; with full_mutex_

  // The first failure. A reader checks the flag first, so that the mutex is never touched while all
  // is well.
  mutable std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  mutable std::optional<Error> failure_;
  std::atomic<bool> distrusted_{false};
  std::string distrust_;  ///< with failure_mutex_
};

/// Repeats `attempt`, which is one of RocksDB's calls, as long as it fails because the disk is
/// full. A write that RocksDB refused was not done, not even in part; and doing it twice would
/// change nothing, because it stores what is, not what changes.
template <class Attempt>
rocksdb::Status RocksdbStore::Impl::with_space(Database& database, const Attempt& attempt) {
  bool waited = false;
  rocksdb::Status status = attempt();
  // Incomplete: RocksDB has no room in memory, because it cannot flush, or may not compact before
  // it has seen space for that.
  while (status.IsNoSpace() || status.IsIncomplete() || (database.full() && status.IsIOError())) {
    if (interrupted_.load()) break;
    if (!std::exchange(waited, true)) report_full(true);
    wait_for_space(database);
    status = attempt();
  }
  if (waited) report_full(false);
  return status;
}

}  // namespace leasehold::kv
