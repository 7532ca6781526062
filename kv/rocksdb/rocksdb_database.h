// One database of a store: RocksDB, the numbers that belong to what is in it, and its readers. Not
// for other rooms.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/leases.h>
#include <leasehold/kv/rocksdb/record_cache.h>
#include <leasehold/kv/sessions.h>
#include <leasehold/kv/slots.h>
#include <leasehold/kv/state_sum.h>
#include <leasehold/kv/users.h>
#include <leasehold/raft/types.h>

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace leasehold::kv {

/// Whose a database is.
struct StoreIdentity {
  std::uint64_t cluster_id = 0;
  raft::NodeId id;
};

/// What a database's counters record says.
struct StoreCounters {
  std::uint64_t applied = 0;
  std::uint64_t revision = 0;
  std::uint64_t keys = 0;
};

/// The settings of every database of a store.
rocksdb::Options database_options(rocksdb::Env* env);
/// None: the database has no such record. Errors: corrupted, unsupported_format, io.
Result<std::optional<StoreIdentity>> read_identity(rocksdb::DB& db);
Result<StoreCounters> read_counters(rocksdb::DB& db, const rocksdb::ReadOptions& options = {});

class Database {
 public:
  /// Opens the database in `path`, or makes it. The numbers are those of its records. Errors:
  /// corrupted, unsupported_format, io.
  static Result<std::unique_ptr<Database>> open(const std::string& path, bool create,
                                                rocksdb::Env* env);
  /// Closes it. What cannot be flushed is lost.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  rocksdb::DB& db() const { return *db_; }
  const std::string& path() const { return path_; }

  /// Writes the owner of the database, durably. Errors: io.
  Result<void> own(StoreIdentity identity);
  /// Writes why it is not served any more, durably. One thread at a time. Errors: io.
  Result<void> distrust(const std::string& why);
  /// Raises durable_ to what flushes have made durable. Any thread. Errors: io, corrupted.
  Result<void> raise_durable();
  /// Whether RocksDB has met a full disk and not recovered. Any thread.
  bool full() const { return full_.load(); }
  /// Lets RocksDB write again after its disk was full. One thread at a time.
  void resume();
  /// Closes it without flushing, and removes its files. Asserts that there are no readers.
  void retire();

  // Readers, which may find a database that is about to be replaced. See
  // rocksdb_pinned.h.
  std::atomic<std::uint32_t>& readers();
  bool read_by_nobody() const;

  /// The numbers of what is in it; all are set by the thread of apply(), but durable_, which also
  /// RocksDB's own threads raise.
  std::atomic<std::uint64_t> applied_{0};
  std::atomic<std::uint64_t> revision_{0};
  std::atomic<std::uint64_t> keys_{0};
  /// Keys that have one, with those that the next batch brings.
  std::atomic<std::uint64_t> fences_{0};
  std::atomic<std::uint64_t> durable_{0};
  Sessions sessions_;
  Leases leases_;
  UserMap users_;        ///< as open() found them
  SlotMap moved_slots_;  ///< as open() found them
  StateSum sum_;         ///< of the records; of the thread of apply()
  CachedRecords records_;
  /// Why the database is not served any more; empty: it is.
  std::string distrust_;

 private:
  class Listener;
  Result<void> load_sum(const StoreCounters& counters);
  explicit Database(std::string path, rocksdb::Env* env) : path_(std::move(path)), env_(env) {}

  /// Threads count themselves in different cache lines, so that they do not wait for each other.
  static constexpr std::size_t kReaderSlots = 32;
  struct alignas(64) Slot {
    std::atomic<std::uint32_t> readers{0};
  };

  const std::string path_;
  rocksdb::Env* const env_;
  std::atomic<bool> full_{false};
  std::unique_ptr<rocksdb::DB> db_;
  std::array<Slot, kReaderSlots> slots_;
};

}  // namespace leasehold::kv
