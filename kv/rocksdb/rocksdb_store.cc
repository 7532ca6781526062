// Threads. apply() and install_snapshot() run on one thread and change what there is; reads run on
// any and pin the database that they read (Pinned). make_durable() and take_snapshot() run on any
// other, and hold replaced_, so that the database under them is not replaced meanwhile.
#include <leasehold/base/assert.h>
#include <leasehold/kv/evaluate.h>
#include <leasehold/kv/give_way.h>
#include <leasehold/kv/rocksdb/rocksdb_database.h>
#include <leasehold/kv/rocksdb/rocksdb_folder.h>
#include <leasehold/kv/rocksdb/rocksdb_leases.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_rows.h>
#include <leasehold/kv/rocksdb/rocksdb_sessions.h>
#include <leasehold/kv/rocksdb/rocksdb_snapshot.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>

#include <rocksdb/snapshot.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace leasehold::kv {
namespace {

/// Values and sessions that one apply() collects before it writes them, give or take one command.
constexpr std::size_t kChangedBytesMax = std::size_t{16} << 20U;
/// How long a wait for space goes without asking whether it shall end.
constexpr std::chrono::milliseconds kWaitStep{20};

std::string name_of(std::uint64_t cluster, raft::NodeId node) {
  std::string hex(16, '0');
  for (std::size_t i = hex.size(); i-- > 0; cluster >>= 4U) {
    hex[i] = "0123456789abcdef"[cluster & 0xfU];
  }
  return "node " + std::to_string(node.value()) + " of cluster " + hex;
}

Result<void> validate(const RocksdbStoreOptions& options) {
  if (options.dir.empty() || options.id == raft::kNobody) {
    return Error{ErrorCode::invalid_argument, "the store needs a folder and a node id above 0"};
  }
  if (options.full_retry <= std::chrono::milliseconds(0)) {
    return Error{ErrorCode::invalid_argument, "a full disk is tried again after more than 0 ms"};
  }
  return {};
}

/// The database that is live now, which stays open as long as this lives.
///
/// A reader counts itself at the database that it found, and then looks whether that is still the
/// live one. The thread that replaces it first stores the new one, then waits until nobody is
/// counted at the old one. Both in one total order: so either the reader sees the new one and goes
/// there, or the other thread sees the reader. The old one's object stays, so counting is always
/// allowed.
class Pinned {
 public:
  explicit Pinned(const std::atomic<Database*>& live) {
    for (;;) {
      database_ = live.load();
      readers_ = &database_->readers();
      readers_->fetch_add(1);
      if (live.load() == database_) return;
      readers_->fetch_sub(1);
    }
  }
  ~Pinned() { readers_->fetch_sub(1, std::memory_order_release); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  rocksdb::DB& db() const { return database_->db(); }
  const Sessions& sessions() const { return database_->sessions_; }
  const Leases& leases() const { return database_->leases_; }

 private:
  Database* database_;
  std::atomic<std::uint32_t>* readers_;
};

}  // namespace

class RocksdbStore::Impl final : private Backend {
 public:
  explicit Impl(Options options) : options_(std::move(options)), events_(options_.events) {
    if (options_.env == nullptr) options_.env = rocksdb::Env::Default();
  }
  ~Impl() override;

  Result<void> open();
  Result<raft::Index> restore(const replica::Snapshot& snapshot);
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands, raft::Index last);
  Result<std::optional<Value>> get(std::string_view key) const;
  Result<std::vector<std::optional<Value>>> get_all(const std::vector<std::string_view>& keys,
                                                    Load load) const;
  Result<std::vector<std::string>> keys_after(std::optional<std::string_view> after,
                                              std::size_t count) const;
  Result<Rows> rows(std::string_view prefix, std::optional<std::string_view> after,
                    std::size_t count, Load load) const;
  Result<bool> exists(std::string_view key) const;
  const EventHistory& events() const { return events_; }
  Result<std::vector<replica::SessionTable::Session>> sessions() const;
  Result<std::optional<FoundLease>> find_lease(grant::LeaseId id, std::string_view name) const;
  Result<std::vector<grant::LeaseTable::Lease>> leases_after(grant::LeaseId after,
                                                             std::size_t count) const;
  Result<LeaseChanges> lease_changes(std::uint64_t cursor) const;
  Result<raft::Index> make_durable();
  Result<std::shared_ptr<const replica::Snapshot>> take_snapshot();
  Result<void> install_snapshot(const replica::Snapshot& snapshot);
  void interrupt() { interrupted_.store(true); }

  /// Its numbers belong together, and may be read without a pin: the object is never destroyed
  /// before the store.
  Database& live() const { return *live_.load(std::memory_order_acquire); }

 private:
  Result<std::optional<Value>> load(std::string_view key) override;
  void put(std::string_view key, Value value) override;
  void erase(std::string_view key) override;
  Result<grant::FencingToken> fence(std::string_view key) override;
  void put_fence(std::string_view key, grant::FencingToken token) override;
  grant::LeaseTable& leases() override { return live().leases_.begin_step(); }
  void tell(const Revision& revision) override { events_.stage(revision); }

  Result<std::optional<Value>> get(std::string_view key, rocksdb::DB& db,
                                   const rocksdb::ReadOptions& options) const;
  Result<void> open_folder();
  Result<void> check_identity(rocksdb::DB& db) const;
  Result<void> make_first_database();
  Result<std::unique_ptr<Database>> unpack_database(const replica::Snapshot& snapshot,
                                                    bool any_cluster);
  void take_over(std::unique_ptr<Database> database);
  Result<void> write_changes(const Counters& counters, raft::Index last);
  Result<void> flush(Database& database);
  template <class Attempt>
  rocksdb::Status with_space(Database& database, const Attempt& attempt);
  void wait_for_space(Database& database);
  void report_full(bool waits);
  Error fail(const Error& error) const;
  std::optional<Error> failure() const;

  Options options_;
  std::unique_ptr<Folder> folder_;
  /// The live database is the last one; the others are closed and empty but for their numbers.
  std::vector<std::unique_ptr<Database>> databases_;
  std::atomic<Database*> live_{nullptr};
  /// Held while the live database is replaced, and by those who need it for long.
  std::mutex replaced_;
  /// What the commands of one apply() have changed so far; none: erased. apply()'s thread.
  std::map<std::string, std::optional<Value>, std::less<>> changes_;
  std::map<std::string, grant::FencingToken, std::less<>> fences_;
  std::size_t changed_bytes_ = 0;  ///< of the values in changes_
  EventHistory events_;

  std::atomic<bool> interrupted_{false};
  std::mutex full_mutex_;
  int waiting_ = 0;  ///< threads that wait for space; with full_mutex_

  // The first failure. A reader checks the flag first, so that the mutex is never touched while all
  // is well.
  mutable std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  mutable std::optional<Error> failure_;
};

Result<void> RocksdbStore::Impl::open() {
  if (auto opened = open_folder(); !opened) return opened;
  if (!folder_->has_live()) return make_first_database();
  auto database = Database::open(folder_->live(), false, options_.env);
  if (!database) return database.error();
  if (auto checked = check_identity(database.value()->db()); !checked) return checked;
  take_over(std::move(database).value());
  return {};
}

Result<void> RocksdbStore::Impl::open_folder() {
  if (auto valid = validate(options_); !valid) return valid;
  auto folder = Folder::open(options_.dir, options_.env);
  if (!folder) return folder.error();
  folder_ = std::move(folder).value();
  return {};
}

Result<void> RocksdbStore::Impl::make_first_database() {
  auto database = Database::open(folder_->new_database(), true, options_.env);
  if (!database) return database.error();
  if (auto owned = database.value()->own({options_.cluster_id, options_.id}); !owned) return owned;
  if (auto made = folder_->make_live(); !made) return made;
  take_over(std::move(database).value());
  return {};
}

Result<void> RocksdbStore::Impl::check_identity(rocksdb::DB& db) const {
  const auto found = read_identity(db);
  if (!found) return found.error();
  if (!found.value()) return Error{ErrorCode::corrupted, "the identity record is missing"};
  const StoreIdentity& owner = *found.value();
  if (owner.cluster_id == options_.cluster_id && owner.id == options_.id) return {};
  return Error{ErrorCode::wrong_cluster,
               "it belongs to " + name_of(owner.cluster_id, owner.id) + ", but this is " +
                   name_of(options_.cluster_id, options_.id) +
                   ": give this node its own folder, or start it with the id, the cluster name and "
                   "the initial peers it was made with"};
}

RocksdbStore::Impl::~Impl() {
  // What cannot be flushed is applied again from the log.
  if (databases_.empty() || failed_.load() || live().full()) return;
  static_cast<void>(live().db().Flush(rocksdb::FlushOptions()));
}

// ---- Snapshots ----

/// Flushes until everything applied before the call is durable.
Result<void> RocksdbStore::Impl::flush(Database& database) {
  const std::uint64_t applied = database.applied_.load();
  Result<void> raised;
  const rocksdb::Status status = with_space(database, [&] {
    const rocksdb::Status flushed = database.db().Flush(rocksdb::FlushOptions());
    if (!flushed.ok()) return flushed;
    // Flush() is not to be believed: while another thread's Resume() fails, it answers ok without
    // having flushed anything. What the tables hold is.
    raised = database.raise_durable();
    if (!raised || database.durable_.load() >= applied) return rocksdb::Status::OK();
    return rocksdb::Status::NoSpace("a flush was given up");
  });
  if (!status.ok()) return fail(status_error("a flush failed", status));
  if (!raised) return fail(raised.error());
  return {};
}

Result<raft::Index> RocksdbStore::Impl::make_durable() {
  if (auto failed = failure()) return *failed;
  const std::lock_guard lock(replaced_);
  Database& database = live();
  if (database.durable_.load() < database.applied_.load()) {
    if (auto flushed = flush(database); !flushed) return flushed.error();
  }
  return raft::Index(database.durable_.load());
}

Result<std::shared_ptr<const replica::Snapshot>> RocksdbStore::Impl::take_snapshot() {
  if (auto failed = failure()) return *failed;
  const std::lock_guard lock(replaced_);
  Database& database = live();
  // By itself first, so that nothing but the hard links and a copy of the manifest is left.
  if (auto flushed = flush(database); !flushed) return flushed.error();
  auto taken = take_checkpoint(database, folder_->new_snapshot(), options_.env);
  if (!taken) return in_folder(options_.dir, taken.error());
  return taken;
}

Result<void> RocksdbStore::Impl::install_snapshot(const replica::Snapshot& snapshot) {
  if (auto failed = failure()) return *failed;
  LEASEHOLD_ASSERT(changes_.empty());
  if (snapshot.last().value() < live().applied_.load()) {
    return Error{ErrorCode::invalid_argument,
                 "the snapshot is of index " + std::to_string(snapshot.last().value()) +
                     ", and index " + std::to_string(live().applied_.load()) + " is applied"};
  }
  auto made = unpack_database(snapshot, false);
  if (!made) return made.error();
  if (auto switched = folder_->make_live(); !switched) return fail(switched.error());
  take_over(std::move(made).value());
  return {};
}

Result<raft::Index> RocksdbStore::Impl::restore(const replica::Snapshot& snapshot) {
  if (auto opened = open_folder(); !opened) return opened.error();
  if (folder_->has_live()) {
    return Error{ErrorCode::in_use, "there is a store already: choose a new folder"};
  }
  auto made = unpack_database(snapshot, true);
  if (!made) return made.error();
  if (auto switched = folder_->make_live(); !switched) return switched.error();
  take_over(std::move(made).value());
  return raft::Index(live().applied_.load());
}

/// Everything that can be wrong is found before anything is replaced.
Result<std::unique_ptr<Database>> RocksdbStore::Impl::unpack_database(
    const replica::Snapshot& snapshot, bool any_cluster) {
  const auto head = read_head(snapshot);
  if (!head) return head.error();
  if (!any_cluster && head.value().cluster_id != options_.cluster_id) {
    return Error{ErrorCode::wrong_cluster,
                 "the snapshot was taken by a " +
                     name_of(head.value().cluster_id, raft::kNobody).substr(5) + ", but this is " +
                     name_of(options_.cluster_id, options_.id)};
  }
  const std::string path = folder_->new_database();
  if (auto unpacked = unpack(snapshot, head.value(), path, options_.env); !unpacked) {
    return unpacked.error();
  }
  auto opened = open_unpacked(head.value(), path, {options_.cluster_id, options_.id}, options_.env);
  if (!opened) Folder::remove(options_.env, path);
  return opened;
}

/// Shows readers the new database, waits for those of the old one, and removes it.
void RocksdbStore::Impl::take_over(std::unique_ptr<Database> database) {
  const std::lock_guard lock(replaced_);
  if (live_.load() != nullptr) database->leases_.follow(live().leases_);
  databases_.push_back(std::move(database));
  Database* const old = live_.exchange(databases_.back().get());
  events_.restart(live().revision_.load());
  if (old == nullptr) return;
  // As long as the longest read: none of them blocks on anything but the disk.
  while (!old->read_by_nobody()) std::this_thread::yield();
  old->retire();
}

// ---- A full disk ----

/// Repeats `attempt`, which is one of RocksDB's calls, as long as it fails because the disk is
/// full. A write that RocksDB refused was not done, not even in part; and doing it twice would
/// change nothing, because it stores what is, not what changes.
template <class Attempt>
rocksdb::Status RocksdbStore::Impl::with_space(Database& database, const Attempt& attempt) {
  bool waited = false;
  rocksdb::Status status = attempt();
  // Incomplete: RocksDB has no room in memory, because it cannot flush.
  while (status.IsNoSpace() || (database.full() && (status.IsIncomplete() || status.IsIOError()))) {
    if (interrupted_.load()) break;
    if (!std::exchange(waited, true)) report_full(true);
    wait_for_space(database);
    status = attempt();
  }
  if (waited) report_full(false);
  return status;
}

void RocksdbStore::Impl::wait_for_space(Database& database) {
  for (auto left = options_.full_retry; left > left.zero() && !interrupted_.load();
       left -= kWaitStep) {
    const auto step = std::chrono::microseconds(std::min(left, kWaitStep));
    options_.env->SleepForMicroseconds(static_cast<int>(step.count()));
  }
  const std::lock_guard lock(full_mutex_);
  if (database.full()) database.resume();
}

void RocksdbStore::Impl::report_full(bool waits) {
  const std::lock_guard lock(full_mutex_);
  waiting_ += waits ? 1 : -1;
  const bool changed = waiting_ == (waits ? 1 : 0);
  if (changed && options_.on_full) options_.on_full(waits);
}

/// Remembers the first failure and tells the owner; returns what to answer.
Error RocksdbStore::Impl::fail(const Error& error) const {
  Error named = in_folder(options_.dir, error);
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return *failure_;
    failure_ = named;
    failed_.store(true, std::memory_order_release);
  }
  if (options_.on_failure) options_.on_failure(named);
  return named;
}

std::optional<Error> RocksdbStore::Impl::failure() const {
  if (!failed_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

// The evaluation's view: this apply()'s own changes, then the database.

Result<std::optional<Value>> RocksdbStore::Impl::load(std::string_view key) {
  const auto changed = changes_.find(key);
  if (changed != changes_.end()) return changed->second;
  return get(key);
}

void RocksdbStore::Impl::put(std::string_view key, Value value) {
  changed_bytes_ += value.bytes.size();
  changes_.insert_or_assign(std::string(key), std::move(value));
}

void RocksdbStore::Impl::erase(std::string_view key) {
  changes_.insert_or_assign(std::string(key), std::nullopt);
}

Result<grant::FencingToken> RocksdbStore::Impl::fence(std::string_view key) {
  const auto changed = fences_.find(key);
  if (changed != fences_.end()) return changed->second;
  return read_fence(live().db(), key);
}

void RocksdbStore::Impl::put_fence(std::string_view key, grant::FencingToken token) {
  fences_.insert_or_assign(std::string(key), token);
}

std::vector<Bytes> RocksdbStore::Impl::apply(const std::vector<replica::Command>& commands,
                                             raft::Index last) {
  Database& database = live();
  raft::Index previous(database.applied_.load(std::memory_order_relaxed));
  LEASEHOLD_ASSERT(last > previous);
  std::vector<Bytes> replies;
  replies.reserve(commands.size());
  std::optional<Error> failed = failure();
  Counters counters{database.revision_.load(std::memory_order_relaxed),
                    database.keys_.load(std::memory_order_relaxed)};
  for (const replica::Command& command : commands) {
    LEASEHOLD_ASSERT(command.id.index > previous);
    previous = command.id.index;
    if (failed) break;
    auto reply = evaluate(command.bytes, command.id.term, *this, database.sessions_, counters);
    database.leases_.end_step();
    if (reply) {
      replies.push_back(std::move(reply).value());
    } else {
      failed = fail(reply.error());
    }
    // A short command may write a long value (SetRange): what waits in memory is bounded.
    const std::size_t waiting =
        changed_bytes_ + session_bytes(database.sessions_) + database.leases_.unsaved_bytes();
    if (!failed && waiting > kChangedBytesMax) {
      if (auto written = write_changes(counters, command.id.index); !written) {
        failed = fail(written.error());
      }
    }
  }
  LEASEHOLD_ASSERT(previous <= last);
  if (!failed) {
    if (auto written = write_changes(counters, last); !written) failed = fail(written.error());
  }
  if (failed) {
    changes_.clear();
    events_.unstage();
    // What was written of this call is unknown, so none of its results is to be believed.
    replies.assign(commands.size(),
                   encode_reply(ErrorReply{ErrorKind::store_failed, failed->message}));
    return replies;
  }
  database.revision_.store(counters.revision, std::memory_order_release);
  database.keys_.store(counters.keys, std::memory_order_release);
  database.applied_.store(last.value(), std::memory_order_release);
  return replies;
}

Result<void> RocksdbStore::Impl::write_changes(const Counters& counters, raft::Index last) {
  rocksdb::WriteBatch batch;
  // A batch in memory without limits takes every record.
  for (const auto& [key, value] : changes_) {
    if (!value) {
      LEASEHOLD_ASSERT(batch.Delete(data_key(key)).ok());
      continue;
    }
    const std::string whole_key = data_key(key);
    const std::string head = encode_value_head(*value);
    const rocksdb::Slice key_part(whole_key);
    const rocksdb::Slice parts[] = {head, {value->bytes.data(), value->bytes.size()}};
    LEASEHOLD_ASSERT(
        batch.Put(rocksdb::SliceParts(&key_part, 1), rocksdb::SliceParts(parts, 2)).ok());
  }
  Database& database = live();
  put_sessions(database.sessions_, batch);
  put_leases(database.leases_, batch);
  for (const auto& [key, token] : fences_) kv::put_fence(key, token, batch);
  LEASEHOLD_ASSERT(batch
                       .Put(std::string(kCountersKey),
                            encode_record({last.value(), counters.revision, counters.keys}))
                       .ok());
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  const rocksdb::Status status =
      with_space(database, [&] { return database.db().Write(options, &batch); });
  if (!status.ok()) return status_error("a write failed", status);
  changes_.clear();
  changed_bytes_ = 0;
  fences_.clear();
  database.sessions_.saved();
  database.leases_.saved();
  events_.publish();
  return {};
}

Result<std::optional<Value>> RocksdbStore::Impl::get(std::string_view key) const {
  if (auto failed = failure()) return *failed;
  const Pinned pinned(live_);
  return get(key, pinned.db(), rocksdb::ReadOptions());
}

Result<std::optional<Value>> RocksdbStore::Impl::get(std::string_view key, rocksdb::DB& db,
                                                     const rocksdb::ReadOptions& options) const {
  rocksdb::PinnableSlice bytes;
  const rocksdb::Status status = db.Get(options, db.DefaultColumnFamily(), data_key(key), &bytes);
  if (status.IsNotFound()) return std::optional<Value>();
  if (!status.ok()) return fail(status_error("a read failed", status));
  auto value = decode_value({bytes.data(), bytes.size()});
  if (!value) return fail(value.error());
  return std::optional<Value>(std::move(value).value());
}

Result<std::vector<std::optional<Value>>> RocksdbStore::Impl::get_all(
    const std::vector<std::string_view>& keys, Load load) const {
  if (auto failed = failure()) return *failed;
  const Pinned pinned(live_);
  rocksdb::ManagedSnapshot snapshot(&pinned.db());
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.snapshot();
  std::vector<std::optional<Value>> out;
  out.reserve(keys.size());
  std::size_t bytes = 0;
  GiveWay way;
  for (const std::string_view key : keys) {
    way.step();
    auto value = get(key, pinned.db(), options);
    if (!value) return value.error();
    out.push_back(std::move(value).value());
    if (!out.back()) continue;
    if (load == Load::revisions) out.back()->bytes = Bytes();
    bytes += out.back()->bytes.size();
    if (bytes > kReplyBytesMax) return values_too_large();
  }
  return out;
}

Result<std::vector<std::string>> RocksdbStore::Impl::keys_after(
    std::optional<std::string_view> after, std::size_t count) const {
  if (auto failed = failure()) return *failed;
  const Pinned pinned(live_);
  auto keys = read_keys(pinned.db(), after, count);
  if (!keys) return fail(keys.error());
  return keys;
}

Result<Rows> RocksdbStore::Impl::rows(std::string_view prefix,
                                      std::optional<std::string_view> after, std::size_t count,
                                      Load load) const {
  if (auto failed = failure()) return *failed;
  const Pinned pinned(live_);
  auto rows = read_rows(pinned.db(), prefix, after, count, load);
  if (!rows) return fail(rows.error());
  return rows;
}

Result<bool> RocksdbStore::Impl::exists(std::string_view key) const {
  if (auto failed = failure()) return *failed;
  const Pinned pinned(live_);
  rocksdb::PinnableSlice bytes;
  const rocksdb::Status status = pinned.db().Get(
      rocksdb::ReadOptions(), pinned.db().DefaultColumnFamily(), data_key(key), &bytes);
  if (status.ok() || status.IsNotFound()) return status.ok();
  return fail(status_error("a read failed", status));
}

Result<std::vector<replica::SessionTable::Session>> RocksdbStore::Impl::sessions() const {
  if (auto failed = failure()) return *failed;
  return Pinned(live_).sessions().list();
}

Result<std::optional<FoundLease>> RocksdbStore::Impl::find_lease(grant::LeaseId id,
                                                                 std::string_view name) const {
  if (auto failed = failure()) return *failed;
  const Pinned pinned(live_);
  auto found = kv::find_lease(pinned.db(), id, name);
  if (!found) return fail(found.error());
  return found;
}

Result<std::vector<grant::LeaseTable::Lease>> RocksdbStore::Impl::leases_after(
    grant::LeaseId after, std::size_t count) const {
  if (auto failed = failure()) return *failed;
  const Pinned pinned(live_);
  auto found = kv::leases_after(pinned.db(), after, count);
  if (!found) return fail(found.error());
  return found;
}

Result<LeaseChanges> RocksdbStore::Impl::lease_changes(std::uint64_t cursor) const {
  if (auto failed = failure()) return *failed;
  return Pinned(live_).leases().changes(cursor);
}

Result<std::unique_ptr<RocksdbStore>> RocksdbStore::open(Options options) {
  const std::string dir = options.dir;
  auto impl = std::make_unique<Impl>(std::move(options));
  if (auto opened = impl->open(); !opened) return in_folder(dir, opened.error());
  return std::unique_ptr<RocksdbStore>(new RocksdbStore(std::move(impl)));
}

Result<std::shared_ptr<const replica::Snapshot>> RocksdbStore::open_archive(const std::string& path,
                                                                            std::uint64_t offset) {
  return open_archive_file(path, offset, rocksdb::Env::Default());
}
Result<ArchiveInfo> RocksdbStore::describe(const replica::Snapshot& archive) {
  const auto head = read_head(archive);
  if (!head) return head.error();
  return ArchiveInfo{head.value().cluster_id, raft::Index(head.value().applied),
                     head.value().revision, head.value().keys};
}
Result<ArchiveInfo> RocksdbStore::verify(const replica::Snapshot& archive) {
  const auto head = read_head(archive);
  if (!head) return head.error();
  if (auto whole = verify_blocks(archive, head.value()); !whole) return whole.error();
  return describe(archive);
}
Result<raft::Index> RocksdbStore::restore(Options options, const replica::Snapshot& snapshot) {
  const std::string dir = options.dir;
  Impl impl(std::move(options));
  auto restored = impl.restore(snapshot);
  if (!restored && restored.error().code == ErrorCode::corrupted) {
    return Error{ErrorCode::corrupted,
                 "cannot restore to " + dir + ": " + restored.error().message};
  }
  if (!restored) return in_folder(dir, restored.error());
  return restored;
}

RocksdbStore::RocksdbStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RocksdbStore::~RocksdbStore() = default;

raft::Index RocksdbStore::durable_index() const {
  return raft::Index(impl_->live().durable_.load());
}
std::vector<Bytes> RocksdbStore::apply(const std::vector<replica::Command>& commands,
                                       raft::Index last) {
  return impl_->apply(commands, last);
}
Result<std::optional<Value>> RocksdbStore::get(std::string_view key) const {
  return impl_->get(key);
}
Result<std::vector<std::optional<Value>>> RocksdbStore::get_all(
    const std::vector<std::string_view>& keys, Load load) const {
  return impl_->get_all(keys, load);
}
Result<std::vector<std::string>> RocksdbStore::keys_after(std::optional<std::string_view> after,
                                                          std::size_t count) const {
  return impl_->keys_after(after, count);
}
Result<Rows> RocksdbStore::rows(std::string_view prefix, std::optional<std::string_view> after,
                                std::size_t count, Load load) const {
  return impl_->rows(prefix, after, count, load);
}
Result<bool> RocksdbStore::exists(std::string_view key) const {
  return impl_->exists(key);
}
Result<std::vector<replica::SessionTable::Session>> RocksdbStore::sessions() const {
  return impl_->sessions();
}
Result<std::optional<FoundLease>> RocksdbStore::find_lease(grant::LeaseId id,
                                                           std::string_view name) const {
  return impl_->find_lease(id, name);
}
Result<std::vector<grant::LeaseTable::Lease>> RocksdbStore::leases_after(grant::LeaseId after,
                                                                         std::size_t count) const {
  return impl_->leases_after(after, count);
}
Result<LeaseChanges> RocksdbStore::lease_changes(std::uint64_t cursor) const {
  return impl_->lease_changes(cursor);
}
const EventHistory& RocksdbStore::events() const {
  return impl_->events();
}
std::uint64_t RocksdbStore::size() const {
  return impl_->live().keys_.load(std::memory_order_acquire);
}
std::uint64_t RocksdbStore::revision() const {
  return impl_->live().revision_.load(std::memory_order_acquire);
}
raft::Index RocksdbStore::applied_index() const {
  return raft::Index(impl_->live().applied_.load(std::memory_order_acquire));
}
Result<raft::Index> RocksdbStore::make_durable() {
  return impl_->make_durable();
}
Result<std::shared_ptr<const replica::Snapshot>> RocksdbStore::take_snapshot() {
  return impl_->take_snapshot();
}
Result<void> RocksdbStore::install_snapshot(const replica::Snapshot& snapshot) {
  return impl_->install_snapshot(snapshot);
}
void RocksdbStore::interrupt() {
  impl_->interrupt();
}

}  // namespace leasehold::kv
