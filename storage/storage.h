// The durable log and hard state of one group, behind an asynchronous interface.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/log.h>
#include <leasehold/raft/ready.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::storage {

/// Asks for the entries first..last, in order, as many as fit into `bytes_max` of payload but at
/// least one.
struct ReadRequest {
  std::uint64_t token = 0;  ///< the caller's; echoed in the completion
  raft::Index first;
  raft::Index last;
  std::size_t bytes_max = 0;
};

/// Receives completions. Called on a thread of the storage's choice: the receiver passes them to
/// its own loop.
class StorageSink {
 public:
  virtual ~StorageSink() = default;
  /// Batch `id` and all before it are durable. Rises from call to call; ids may be skipped, because
  /// one sync covers all waiting batches. Id 0: the foundation of the log is (GroupLog).
  virtual void persisted(raft::ReadyId id) = 0;
  /// A prefix of the requested entries, never empty on success. It finds entries of batches that
  /// were given to persist() before the read, durable or not. Error not_found: the log was cut,
  /// truncated or reset meanwhile.
  virtual void entries_read(std::uint64_t token, Result<std::vector<raft::Entry>> entries) = 0;
  /// The disk is full, or has space again. While it is full the log still accepts everything, using
  /// its reserve, but the node should stop appending commands: when the reserve is used up,
  /// failed() follows.
  virtual void space(bool full) = 0;
  /// The log can no longer promise to be durable: a write or a sync failed, and it is never
  /// retried. The node has to stop. Nothing is persisted after this.
  virtual void failed(Error error) = 0;
};

/// Durable log and hard state. One user thread; calls never block on the disk.
class Storage {
 public:
  virtual ~Storage() = default;
  /// Accepts one batch. Batches become durable in the order of the calls, each atomically, and all
  /// waiting batches share one sync.
  virtual void persist(raft::PersistBatch batch) = 0;
  virtual void read(const ReadRequest& request) = 0;
  /// More waits for the disk than should. Give it no commands and no entries until it has caught
  /// up: above its limit it fails, with the logs of all groups that share the disk. Any thread.
  virtual bool behind() const { return false; }
};

}  // namespace leasehold::storage
