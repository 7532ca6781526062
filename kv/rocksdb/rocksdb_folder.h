// The folder of a store: which of the databases in it is the live one. Not for other rooms.
#pragma once

#include <leasehold/base/result.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace rocksdb {
class Env;
class FileLock;
}  // namespace rocksdb

namespace leasehold::kv {

/// A store's folder holds
///
///   LIVE         which database is the live one; replaced by a rename, so it names one or another
///   LOCK         held by the process that has the store open
///   db-N         a database: the live one, and for a while its successor
///   snapshot-N   the files of a snapshot
///
/// Those that LIVE does not name are leftovers of a crash; open() removes them. One thread at a
/// time calls the methods, except new_snapshot() and remove(): any thread.
class Folder {
 public:
  /// Makes the folder, with its parents, unless it exists, and locks it. Errors: in_use,
  /// unsupported_format, corrupted, io.
  static Result<std::unique_ptr<Folder>> open(const std::string& dir, rocksdb::Env* env);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  /// Whether a database was ever complete here.
  bool has_live() const { return live_ != 0; }
  /// The path of the live database. Asserts has_live().
  std::string live() const;

  /// The path of a database or a snapshot that does not exist yet.
  std::string new_database();
  std::string new_snapshot();
  /// Makes the database that new_database() named last the live one: durable on return, and at
  /// every moment before, the old one is. The database's own files have to be durable. Errors: io;
  /// then either may be live, and the store has to stop.
  Result<void> make_live();

  /// Removes a folder of files; what cannot be removed now is when the store is opened again.
  static void remove(rocksdb::Env* env, const std::string& path);
  rocksdb::Env* env() const { return env_; }
  const std::string& path() const { return dir_; }

 private:
  Folder(std::string dir, rocksdb::Env* env) : dir_(std::move(dir)), env_(env) {}
  Result<void> lock();
  Result<void> load();
  void remove_leftovers();
  Result<void> store(std::string_view content);
  std::string database(std::uint64_t number) const;

  const std::string dir_;
  rocksdb::Env* const env_;
  rocksdb::FileLock* lock_ = nullptr;
  std::uint64_t live_ = 0;    ///< 0: none yet
  std::uint64_t newest_ = 0;  ///< of the databases
  std::atomic<std::uint64_t> snapshots_{0};
};

/// Makes the entries of a folder durable. Errors: io.
Result<void> sync_folder(rocksdb::Env* env, const std::string& path);

}  // namespace leasehold::kv
