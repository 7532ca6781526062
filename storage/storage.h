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

/// Where completions arrive. Called on a thread of the storage's choice: an implementation hands
/// over to its own loop.
class StorageSink {
 public:
  virtual ~StorageSink() = default;
  /// Batch `id` and all before it are durable. Rises from call to call; ids may be skipped, because
  /// one sync covers everything that was waiting.
  virtual void persisted(raft::ReadyId id) = 0;
  /// A prefix of what was asked for, never empty on success. Entries of batches that were handed
  /// over before the read are found whether they are durable or not. Error not_found: the log was
  /// cut, truncated or reset meanwhile.
  virtual void entries_read(std::uint64_t token, Result<std::vector<raft::Entry>> entries) = 0;
  /// The disk is full, or has space again. While it is full the log still takes everything, on the
  /// space that it has set aside for that, but the node should stop to append commands: when that
  /// space is used up, failed() follows.
  virtual void space(bool full) = 0;
  /// The log can no longer be trusted to be durable: a write or a sync failed, and it is never
  /// retried. The node has to stop. Nothing is persisted after this.
  virtual void failed(Error error) = 0;
};

/// Durable log and hard state. One user thread; calls never block on the disk.
class Storage {
 public:
  virtual ~Storage() = default;
  /// Takes over one batch. Batches become durable in the order in which they were handed over, each
  /// atomically, and everything that waits shares one sync.
  virtual void persist(raft::PersistBatch batch) = 0;
  virtual void read(const ReadRequest& request) = 0;
};

}  // namespace leasehold::storage
