// The thread that takes, reads and stores snapshots.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/node_snapshot_file.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/state_machine.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace leasehold::node {

/// Works on a thread of its own, "lh-snap", with a lower priority than every other thread of the
/// process. What arrives stands in the folder `snapshot`: in the file `incoming`, which becomes
/// `complete` when all of it is there and durable, until it is installed.
///
/// Its queue is bounded by what a Driver asks for at once: one make_durable(), one take(), one
/// read() for each peer, and Limits::chunks_storing_max chunks.
class SnapshotThread final : public replica::Snapshots {
 public:
  /// `post` is called on lh-snap with each answer, or with StorageFailed.
  using Post = std::function<void(replica::Event)>;

  /// `machine` outlives it. `durable`: what it has made durable.
  SnapshotThread(replica::StateMachine& machine, const std::string& data_dir,
                 std::uint64_t cluster_id, raft::Index durable, Post post);
  /// Calls stop().
  ~SnapshotThread() override;
  SnapshotThread(const SnapshotThread&) = delete;
  SnapshotThread& operator=(const SnapshotThread&) = delete;

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

  /// Ends what is under way, forgets the rest, joins the thread. Idempotent.
  void stop();

 private:
  using Task = std::function<void()>;
  /// The state of the file after a chunk.
  struct Place {
    std::uint64_t offset = 0;
    bool refused = false;
    std::optional<raft::Membership> complete;
  };

  void add(Task task);
  void run();
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

  // Of the thread.
  std::map<std::uint64_t, std::shared_ptr<const replica::Snapshot>> taken_;  ///< by tag
  std::unique_ptr<SnapshotFile> incoming_;
  /// The file of an earlier process was looked for.
  bool looked_ = false;
  /// The complete snapshot that waits to be installed.
  std::optional<raft::SnapshotId> complete_;
  bool failed_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace leasehold::node
