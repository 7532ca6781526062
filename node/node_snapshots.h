// Takes, reads and stores the snapshots of a group, on a thread of a pool.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/node_snapshot_file.h>
#include <leasehold/node/node_work_pool.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/state_machine.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace leasehold::node {

/// What arrives stands in the folder `snapshot`: in the file `incoming`, which becomes
/// `complete` when all of it is there and durable, until it is installed.
///
/// Its queue is bounded by what a Driver asks for at once: one make_durable(), one take(), one
/// read() for each peer, and Limits::chunks_storing_max chunks.
class GroupSnapshots final : public replica::Snapshots {
 public:
  /// `post` is called on the pool's thread with each answer, or with StorageFailed.
  using Post = std::function<void(replica::Event)>;

  /// `pool` and `machine` outlive it. `durable`: what the machine has made durable.
  GroupSnapshots(WorkPool& pool, replica::StateMachine& machine, const std::string& data_dir,
                 std::uint64_t cluster_id, raft::Index durable, Post post);
  GroupSnapshots(const GroupSnapshots&) = delete;
  GroupSnapshots& operator=(const GroupSnapshots&) = delete;

  void make_durable() override;
  void take() override;
  void read(std::uint64_t token, std::uint64_t tag, std::uint64_t offset,
            std::size_t bytes) override;
  void release(std::uint64_t tag) override;
  void store(const raft::ReceivedChunk& received) override;
  void discard() override;

  /// The snapshot that is complete in `data_dir`. Any thread. Errors: not_found, corrupted,
  /// unsupported_format, io.
  static Result<std::shared_ptr<const StagedSnapshot>> complete(const std::string& data_dir);
  /// Before anything runs: the log begins behind `base`, and the state machine, which ends below
  /// it, gets the snapshot on which the log begins. Errors: those of complete() and of the state
  /// machine; corrupted: there is no such snapshot.
  static Result<void> install_at_start(const std::string& data_dir, raft::LogId base,
                                       replica::StateMachine& machine);
  /// The complete one is in the state machine, durably. Any thread.
  void installed() { discard(); }

  /// Ends what is under way, and forgets the rest. Idempotent.
  void stop() { line_.leave(); }

 private:
  using Task = std::function<void()>;
  /// The state of the file after a chunk.
  struct Place {
    std::uint64_t offset = 0;
    bool refused = false;
    std::optional<raft::Membership> complete;
  };

  void add(Task task);
  void recover();
  Place store_now(const raft::SnapshotChunk& chunk);
  Result<Place> add_chunk(const raft::SnapshotChunk& chunk);
  Result<bool> open_incoming(const raft::SnapshotChunk& chunk);
  Result<void> finish();
  void remove(const std::string& path);
  void fail(const Error& error);

  replica::StateMachine& machine_;
  const std::string folder_;
  const std::uint64_t cluster_id_;
  const raft::Index durable_at_start_;
  const Post post_;

  // Of the line's tasks.
  std::map<std::uint64_t, std::shared_ptr<const replica::Snapshot>> taken_;  ///< by tag
  std::unique_ptr<SnapshotFile> incoming_;
  /// The file of an earlier process was looked for.
  bool looked_ = false;
  /// The complete snapshot that waits to be installed.
  std::optional<raft::SnapshotId> complete_;
  bool failed_ = false;

  WorkPool::Line line_;
};

}  // namespace leasehold::node
