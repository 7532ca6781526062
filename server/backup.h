// Backups: snapshots of the running store, written to files.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/node/group.h>
#include <leasehold/server/front/backup_calls.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace leasehold::server {

/// What one Backups::read() returns at most: little beside the memory of a client's replies.
inline constexpr std::size_t kBackupReadBytesMax = std::size_t{256} << 10U;

/// Writes backups (docs/formats/backup.md) to the folder `backups` of a data directory, one at a
/// time, on a thread of its own, while the store goes on. Any thread.
class Backups {
 public:
  using Notice = std::function<void(const std::string&)>;
  using Done = std::function<void(Result<BackupDone>)>;

  struct Options {
    std::string data_dir;
    std::string cluster;  ///< name
    raft::NodeId id;
    lease::Duration timeout{};  ///< to learn what has to be in a backup
    /// How the node learns that: by a lease, or by a quorum if lease reads are off.
    raft::ReadMode mode = raft::ReadMode::lease;
    std::size_t backups_max = 100;  ///< in the folder; at this number no other is begun
    Notice notice;  ///< takes sentences for a person; on the backup's thread. May be empty
  };

  /// `node` and `store` outlive it. Removes the remains of interrupted backups.
  Backups(node::Group& node, kv::RocksdbStore& store, Options options);
  ~Backups();
  Backups(const Backups&) = delete;
  Backups& operator=(const Backups&) = delete;

  /// Writes a snapshot to the file `name`, which must not exist, and answers on a thread of its
  /// own, or at once if it cannot begin. Everything that was acknowledged before the call, by any
  /// node, is in it, unless a stale one is wanted. The file has its name when it is whole and
  /// durable.
  ///
  /// Errors: invalid_argument (the name), in_use (it exists), overloaded (another backup is being
  /// written, the leader changed, or a slot moves that has to be settled), unavailable (no leader),
  /// stopped, io (a full disk among others: then nothing is left behind), and those of taking a
  /// snapshot.
  void start(std::string_view name, BackupWanted wanted, const Done& done);
  /// The bytes of the whole backup `name` from `offset` on, at most kBackupReadBytesMax; none: its
  /// end. Errors: invalid_argument (the name), not_found, io.
  Result<std::string> read(std::string_view name, std::uint64_t offset) const;
  /// The backup that is being written.
  std::optional<BackupProgress> progress() const;
  /// Ends a backup that is being written, and refuses others. Idempotent. A node that has stopped
  /// makes this quick.
  void stop();

 private:
  Result<std::string> path_of(std::string_view name) const;
  Result<std::string> new_path_of(std::string_view name) const;
  Result<BackupDone> write(const std::string& path, BackupWanted wanted);
  Result<void> make_folder() const;
  Result<void> wait_for_all_acknowledged();
  Result<void> check_number() const;
  Result<void> check_space(std::uint64_t bytes) const;
  Result<std::uint64_t> copy(const std::string& manifest, const replica::Snapshot& snapshot,
                             const std::string& fresh, const std::string& path);
  void remove_leftovers() const;

  node::Group& node_;
  kv::RocksdbStore& store_;
  const Options options_;
  const std::string folder_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> size_{0};  ///< of the backup that is being written; 0: not known yet

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool busy_ = false;
  std::string name_;  ///< of the backup that is being written
  std::thread thread_;
};

}  // namespace leasehold::server
