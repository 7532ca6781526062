#include <leasehold/base/assert.h>
#include <leasehold/kv/rocksdb/rocksdb_database.h>
#include <leasehold/kv/rocksdb/rocksdb_folder.h>
#include <leasehold/kv/rocksdb/rocksdb_info_log.h>
#include <leasehold/kv/rocksdb/rocksdb_leases.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_sessions.h>
#include <leasehold/kv/rocksdb/rocksdb_slots.h>
#include <leasehold/kv/rocksdb/rocksdb_sum.h>
#include <leasehold/kv/rocksdb/rocksdb_users.h>

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <utility>

namespace leasehold::kv {
namespace {

constexpr std::size_t kMemtableBytes = std::size_t{4} << 20U;
constexpr std::size_t kTableBytes = std::size_t{4} << 20U;
constexpr std::size_t kFirstLevelBytes = std::size_t{16} << 20U;
constexpr std::size_t kCacheBytes = std::size_t{4} << 20U;
constexpr double kFilterBitsPerKey = 10;

/// The keys of the few records of which there is one, and which most batches write again: the
/// memtable remembers for each where its newest version stands, and need not look for the place.
/// That is a tenth of the work of a small batch.
class SingleRecords final : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "leasehold.single-records"; }
  bool InDomain(const rocksdb::Slice& key) const override {
    return key.size() == kCountersKey.size() && key[0] == kCountersKey[0];
  }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override { return key; }
};

}  // namespace

rocksdb::Options database_options(rocksdb::Env* env) {
  rocksdb::Options options;
  options.env = env;
  options.paranoid_checks = true;
  // A failed disk is not tried again; the store itself tries a full disk again.
  options.max_bgerror_resume_count = 0;

  options.write_buffer_size = kMemtableBytes;
  options.max_write_buffer_number = 2;
  options.max_background_jobs = 2;
  options.compression = rocksdb::kNoCompression;
  options.allow_concurrent_memtable_write = false;  // there is one writer
  options.enable_write_thread_adaptive_yield = false;
  options.memtable_insert_with_hint_prefix_extractor = std::make_shared<SingleRecords>();
  // Each write first looks for its key. Where a memtable does not have it, its filter says so
  // without a search: 60 KiB for its 13,000 or so records.
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.015;
  options.max_open_files = 256;

  // Old versions of what is overwritten take a tenth of the live data, not as much again: the
  // levels are measured from the last one up, and few tables are rewritten at a time.
  options.level_compaction_dynamic_level_bytes = true;
  options.max_bytes_for_level_base = kFirstLevelBytes;
  options.target_file_size_base = kTableBytes;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kCacheBytes);
  table.cache_index_and_filter_blocks = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerKey));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));

  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

Result<std::optional<StoreIdentity>> read_identity(rocksdb::DB& db) {
  std::string bytes;
  const rocksdb::Status status = db.Get(rocksdb::ReadOptions(), std::string(kIdentityKey), &bytes);
  if (status.IsNotFound()) return std::optional<StoreIdentity>();
  if (!status.ok()) return status_error("cannot read the identity", status);
  const auto found = decode_whole_record("identity", bytes, 2);
  if (!found) return found.error();
  return std::optional<StoreIdentity>(
      StoreIdentity{found.value()[0], raft::NodeId(found.value()[1])});
}

Result<StoreCounters> read_counters(rocksdb::DB& db, const rocksdb::ReadOptions& options) {
  std::string bytes;
  const rocksdb::Status status = db.Get(options, std::string(kCountersKey), &bytes);
  if (status.IsNotFound()) return StoreCounters{};
  if (!status.ok()) return status_error("cannot read the counters", status);
  const auto found = decode_whole_record("counters", bytes, 3);
  if (!found) return found.error();
  return StoreCounters{found.value()[0], found.value()[1], found.value()[2]};
}

/// Receives events on RocksDB's own threads.
class Database::Listener final : public rocksdb::EventListener {
 public:
  explicit Listener(Database& database) : database_(database) {}
  void OnFlushCompleted(rocksdb::DB* /*db*/, const rocksdb::FlushJobInfo& /*info*/) override {
    // None while open() runs: it reads the numbers itself.
    if (!opened_.load(std::memory_order_acquire)) return;
    // The next read or flush sees an error again.
    static_cast<void>(database_.raise_durable());
  }
  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* error) override {
    if (error->IsNoSpace()) {
      database_.full_.store(true);
    } else if (error->severity() >= rocksdb::Status::Severity::kFatalError) {
      // Space does not heal it.
      database_.full_.store(false);
    }
  }
  /// RocksDB also looks for space by itself.
  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override {
    if (info.new_bg_error.ok()) database_.full_.store(false);
  }
  void opened() { opened_.store(true, std::memory_order_release); }

 private:
  Database& database_;
  std::atomic<bool> opened_{false};
};

Result<std::unique_ptr<Database>> Database::open(const std::string& path, bool create,
                                                 rocksdb::Env* env) {
  auto database = std::unique_ptr<Database>(new Database(path, env));
  const auto listener = std::make_shared<Listener>(*database);
  rocksdb::Options options = database_options(env);
  options.info_log = make_info_log(path, env);
  options.create_if_missing = create;
  options.error_if_exists = create;
  options.listeners.push_back(listener);
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, path, &db);
  if (!status.ok()) return status_error("RocksDB cannot open it", status);
  database->db_.reset(db);
  const auto counters = read_counters(*db);
  if (!counters) return counters.error();
  auto sessions = read_sessions(*db);
  if (!sessions) return sessions.error();
  database->sessions_.replace(std::move(sessions).value());
  auto leases = read_leases(*db);
  if (!leases) return leases.error();
  database->leases_.replace(std::move(leases).value());
  const auto fences = count_fences(*db);
  if (!fences) return fences.error();
  database->fences_ = fences.value();
  auto users = read_users(*db);
  if (!users) return users.error();
  database->users_ = std::move(users).value();
  auto slots = read_slots(*db);
  if (!slots) return slots.error();
  database->moved_slots_ = std::move(slots).value();
  // There is no write-ahead log: everything in the database was flushed.
  database->applied_ = counters.value().applied;
  database->durable_ = counters.value().applied;
  database->revision_ = counters.value().revision;
  database->keys_ = counters.value().keys;
  if (auto loaded = database->load_sum(counters.value()); !loaded) return loaded.error();
  listener->opened();
  return database;
}

/// A build that knows no sums leaves none, or an old one: then everything is read once.
Result<void> Database::load_sum(const StoreCounters& counters) {
  const auto kept = read_sum(*db_);
  if (!kept) return kept.error();
  const rocksdb::Status status =
      db_->Get(rocksdb::ReadOptions(), std::string(kDistrustKey), &distrust_);
  if (!status.ok() && !status.IsNotFound()) return status_error("cannot read a record", status);
  if (kept.value() && kept.value()->applied == counters.applied) {
    sum_ = kept.value()->sum;
    return {};
  }
  const auto scanned = scan(*db_, {}, [](std::uint64_t) { return true; });
  if (!scanned) return scanned.error();
  sum_ = scanned.value()->sum;
  rocksdb::WriteBatch batch;
  put_sum({counters.applied, sum_}, batch);
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  const rocksdb::Status written = db_->Write(unlogged, &batch);
  if (!written.ok()) return status_error("cannot write the sum of the records", written);
  return {};
}

Database::~Database() {
  if (db_) static_cast<void>(db_->Close());
}

Result<void> Database::own(StoreIdentity identity) {
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  rocksdb::Status status = db_->Put(unlogged, std::string(kIdentityKey),
                                    encode_record({identity.cluster_id, identity.id.value()}));
  if (status.ok()) status = db_->Flush(rocksdb::FlushOptions());
  if (!status.ok()) return status_error("cannot write the identity", status);
  return {};
}

Result<void> Database::distrust(const std::string& why) {
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  rocksdb::Status status = db_->Put(unlogged, std::string(kDistrustKey), why);
  if (status.ok()) status = db_->Flush(rocksdb::FlushOptions());
  if (!status.ok()) return status_error("cannot write why the store is not served", status);
  distrust_ = why;
  return {};
}

/// The counters are in every write, and a flush takes whole memtables in their order. So the
/// counters that the tables alone hold, without the memtables, are those of a state that is durable
/// as a whole: RocksDB shows a table only after it, and the manifest that names it, were synced.
Result<void> Database::raise_durable() {
  rocksdb::ReadOptions tables;
  tables.read_tier = rocksdb::kPersistedTier;
  const auto counters = read_counters(*db_, tables);
  if (!counters) return counters.error();
  std::uint64_t durable = durable_.load();
  while (durable < counters.value().applied &&
         !durable_.compare_exchange_weak(durable, counters.value().applied)) {
  }
  return {};
}

void Database::resume() {
  if (db_->Resume().ok()) full_.store(false);
}

void Database::retire() {
  LEASEHOLD_ASSERT(read_by_nobody());
  sessions_.replace({});
  leases_.replace({});
  static_cast<void>(db_->SetDBOptions({{"avoid_flush_during_shutdown", "true"}}));
  static_cast<void>(db_->Close());
  db_.reset();
  Folder::remove(env_, path_);
}

std::atomic<std::uint32_t>& Database::readers() {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t slot = threads.fetch_add(1) % kReaderSlots;
  return slots_[slot].readers;
}

bool Database::read_by_nobody() const {
  return std::all_of(slots_.begin(), slots_.end(),
                     [](const Slot& slot) { return slot.readers.load() == 0; });
}

}  // namespace leasehold::kv
