// A RocksDB that is replicated: each node has one, and all apply the same commands in the same
// order.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/replica/state_machine.h>
#include <rocksdb/db.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

/// The commands of the store, as they stand in the log.
leasehold::Bytes put(const std::string& key, const std::string& value);
/// Removes all keys from `first` on that are below `end`.
leasehold::Bytes remove_range(const std::string& first, const std::string& end);

class Store final : public leasehold::replica::StateMachine {
 public:
  /// Errors: io, corrupted.
  static leasehold::Result<std::unique_ptr<Store>> open(const std::string& folder);

  /// Up to `limit` keys from `first` on that are below `end`, with their values, as they are at one
  /// instant. Any thread, once a read point justifies it.
  std::vector<std::pair<std::string, std::string>> range(const std::string& first,
                                                         const std::string& end,
                                                         std::size_t limit) const;

  leasehold::raft::Index durable_index() const override { return durable_; }
  std::vector<leasehold::Bytes> apply(const std::vector<leasehold::replica::Command>& commands,
                                      leasehold::raft::Index last) override;
  leasehold::Result<leasehold::raft::Index> make_durable() override;
  leasehold::Result<std::shared_ptr<const leasehold::replica::Snapshot>> take_snapshot() override;
  leasehold::Result<void> install_snapshot(const leasehold::replica::Snapshot& snapshot) override;

 private:
  /// The keys are in a column family of their own, so that another one can take its place in one
  /// step.
  using Keys = std::shared_ptr<rocksdb::ColumnFamilyHandle>;

  Store(std::string folder, std::unique_ptr<rocksdb::DB> db)
      : folder_(std::move(folder)), db_(std::move(db)) {}
  leasehold::Result<void> find_keys(const std::vector<rocksdb::ColumnFamilyHandle*>& found);
  leasehold::Result<Keys> make_keys(const std::string& name);
  leasehold::Result<void> switch_to(const Keys& keys);
  Keys keys() const {
    const std::lock_guard lock(mutex_);
    return keys_;
  }

  const std::string folder_;
  const std::unique_ptr<rocksdb::DB> db_;
  mutable std::mutex mutex_;
  Keys keys_;                         ///< under mutex_
  leasehold::raft::Index durable_{};  ///< as it was found
  int snapshots_ = 0;                 ///< that were taken: each has a file of its own
};
