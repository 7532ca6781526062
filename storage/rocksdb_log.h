// RocksdbLog: the durable log on RocksDB, and what a node must know of itself before it has a log.
//
// One directory holds one node: its identity, how its group was formed, and the log of the group.
// Formats: docs/formats/log.md.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/log.h>
#include <leasehold/storage/storage.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::storage {

/// Who a directory belongs to.
struct NodeIdentity {
  std::uint64_t cluster_id = 0;
  raft::NodeId id;
  raft::Uuid uuid;  ///< random, made when the directory was first opened; a wiped one has another
  raft::Incarnation incarnation;  ///< of this open(); rises with each, durably, and starts at 1
};

struct RocksdbLogOptions {
  /// The database's own folder. Made, with its parents, if it does not exist. Nothing else may live
  /// in it.
  std::string dir;
  raft::GroupId group;
  std::uint64_t cluster_id = 0;
  raft::NodeId id;  ///< of this node, above 0
  /// Bytes that wait for the disk, bookkeeping included. Past it the log gives up with failed()
  /// (overloaded): the caller bounds its own appends well below this, so only a disk that stands
  /// still gets here.
  std::size_t queue_bytes_max = 256U << 20U;
  /// What one sync takes along at most; one batch may exceed it.
  std::size_t sync_bytes_max = 16U << 20U;
  /// Reads that wait. Past it a read is answered with overloaded.
  std::size_t reads_max = 4096;
};

/// The log of one group on RocksDB.
///
/// Life: open() → (confirm_set() → form() when the group is not formed) → take_initial_state() →
/// start() → persist() and read() → destructor. Everything is called on one thread at a time;
/// syncs() on any. The calls before start() block on the disk, those after it never do.
///
/// Threads: start() makes one writer, which commits everything that waits with one sync, and one
/// reader. The sink's persisted() and failed() arrive on the writer, entries_read() on the reader.
/// The destructor makes what was handed over durable (unless the log has failed), delivers its
/// completions, answers reads that wait with `stopped`, and joins both; the sink outlives it.
///
/// A write or a sync that fails is never tried again: nobody knows what the kernel still holds.
class RocksdbLog final : public Storage {
 public:
  using Options = RocksdbLogOptions;

  /// Opens or makes the directory, checks that it is this node's, and reads the shape of the log.
  /// Every entry that was ever reported as persisted is there, or this is refused.
  ///
  /// Errors, each naming the directory and what to do: invalid_argument (options), in_use (another
  /// process has it open), wrong_cluster (it is another cluster's or node's), unsupported_format
  /// (written by a newer build; names both format numbers), corrupted (damaged, or not a Leasehold
  /// directory), io.
  static Result<std::unique_ptr<RocksdbLog>> open(const Options& options);
  ~RocksdbLog() override;
  RocksdbLog(const RocksdbLog&) = delete;
  RocksdbLog& operator=(const RocksdbLog&) = delete;

  const NodeIdentity& identity() const;

  // Formation. Only before start().

  /// The one set of initial members that this node has confirmed; empty: none yet.
  const std::vector<raft::Member>& confirmed_set() const;
  /// Confirms `members` (not empty, ids unique, this node among them under its uuid). Durable on
  /// return. Confirming the same set again is a success without a write. Errors: wrong_cluster when
  /// another set was confirmed (it stays), invalid_argument, io (the log is of no further use).
  Result<void> confirm_set(std::vector<raft::Member> members);
  /// Forms the group: the confirmed set, all of them voters, becomes the membership at the log's
  /// base. Durable on return; a success without a write when already formed. Errors:
  /// invalid_argument when no set was confirmed, io.
  Result<void> form();
  bool formed() const;

  /// What the core starts from, `applied` left at 0: that is the state machine's to say. Asserts
  /// formed(). Call it once, before start().
  raft::InitialState take_initial_state();

  /// Starts the threads; completions go to `sink`, which outlives this log. Asserts formed().
  void start(StorageSink& sink);

  void persist(raft::PersistBatch batch) override;
  void read(const ReadRequest& request) override;

  /// Syncs since open(). Any thread.
  std::uint64_t syncs() const;

 private:
  class Impl;
  explicit RocksdbLog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::storage
