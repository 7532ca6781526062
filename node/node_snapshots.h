// Takes, reads and stores the snapshots of a group, on a thread of a pool.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/node_snapshot_file.h>
#include <leasehold/node/node_work_pool.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/snapshot_filler.h>
#include <leasehold/replica/state_machine.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::node {

/// What arrives stands in the folder `snapshot`: in the file `incoming`, which becomes
/// `complete` when all of it is there and durable, until it is installed.
///
/// What the state machine holds already is copied into it, some blocks at a time, with the tasks of
/// others between. The chunks that come meanwhile are answered behind it, so that the leader goes
/// on where the copied bytes end; and it rests now and then with an answer, so that the leader sees
/// progress, until the next chunk comes.
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
    bool fills = false;  ///< bytes that may be here come next
  };

  void add(Task task);
  void recover();
  Place store_now(const raft::SnapshotChunk& chunk);
  Result<Place> add_chunk(const raft::SnapshotChunk& chunk);
  Result<bool> open_incoming(const raft::SnapshotChunk& chunk);
  Result<Place> place_now();
  Place give_up(const Error& error);
  void fill();
  Result<void> fill_some();
  void answer(raft::Core::StoredChunk stored, Place place);
  void answer_waiting(Place place);
  void close_incoming();
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
  replica::SnapshotFiller filler_;
  /// A task that goes on with it is in the line.
  bool filling_ = false;
  /// Chunks that wait for it, at most Limits::chunks_storing_max.
  std::vector<raft::Core::StoredChunk> waiting_;
  /// Copied, and not yet said in an answer; and since the last answer during the copying.
  std::uint64_t copied_ = 0;
  std::uint64_t since_answer_ = 0;
  /// The complete snapshot that waits to be installed.
  std::optional<raft::SnapshotId> complete_;
  bool failed_ = false;

  WorkPool::Line line_;
};

}  // namespace leasehold::node
