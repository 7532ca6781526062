// The folder and the database of a log, opened and checked.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/storage/folder.h>
#include <leasehold/storage/rocksdb_load.h>
#include <leasehold/storage/rocksdb_log.h>

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace leasehold::storage {

/// Reads from any thread; write() from one at a time.
class Database {
 public:
  /// Errors: as RocksdbLog::open.
  static Result<std::unique_ptr<Database>> open(const RocksdbLogOptions& options);
  /// Closes cleanly, unless a write has failed.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const NodeIdentity& identity() const { return identity_; }
  /// What open() found; the caller keeps it up to date.
  LoadedLog& log() { return log_; }
  const std::string& path() const { return folder_.path(); }

  /// Writes and syncs. After an error the database takes no further write.
  Result<void> write(rocksdb::WriteBatch& batch);
  /// A consistent view of everything written so far.
  std::unique_ptr<rocksdb::Iterator> iterator() const;
  /// Successful writes so far. Any thread.
  std::uint64_t syncs() const { return syncs_.load(std::memory_order_relaxed); }

 private:
  class WalWatch;

  Database(Folder folder, FolderMark mark, RocksdbLogOptions options);
  Result<void> open_database(bool create);
  Result<void> check_identity(bool create);
  Result<void> begin_wal();
  Result<void> mark_newest_wal();
  void close();

  Folder folder_;
  FolderMark mark_;
  RocksdbLogOptions options_;
  NodeIdentity identity_;
  LoadedLog log_;
  std::shared_ptr<WalWatch> watch_;
  std::unique_ptr<rocksdb::DB> db_;
  bool healthy_ = false;
  std::atomic<std::uint64_t> syncs_{0};
};

}  // namespace leasehold::storage
