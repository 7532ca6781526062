// One machine's snapshots: what its process takes, reads and receives, and what of it survives a
// crash.
#pragma once

#include <leasehold/node/witness_machine.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/snapshot_filler.h>
#include <leasehold/sim/world/register_machine.h>
#include <leasehold/sim/world/sim_disk.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::sim {

/// A snapshot that arrives, as it is on the disk of a machine. There is at most one.
struct StagedSnapshot {
  raft::SnapshotId id;
  raft::Membership membership;
  std::uint64_t size = 0;
  std::string bytes;  ///< from the start on, as far as it has arrived
  /// All of it is there, and durable.
  bool complete = false;
};

/// A moment at which a crash is interesting.
enum class SnapshotMoment : std::uint8_t {
  taking,      ///< a snapshot is being taken
  sending,     ///< a part of one is being read
  storing,     ///< a part of one is being stored
  complete,    ///< all of one has arrived, and nothing has acted upon it
  resetting,   ///< the write that puts it in place of the log is on its way
  installing,  ///< the state machine is about to take it, or has just taken it
};

/// The Snapshots port of one process. Two threads in production, two lanes here: one for what is
/// done with the own state machine, one for what arrives; in each, one thing after the other.
class SimSnapshots : public replica::Snapshots {
 public:
  struct Ports {
    RegisterMachine& machine;
    /// On the machine's disk: outlives the process.
    std::optional<StagedSnapshot>& staged;
    RunInProcess run;
    std::function<void(replica::Event)> post;
    std::function<void(SnapshotMoment)> moment;
    /// Called with every snapshot that was taken, under its tag; with one that has arrived whole;
    /// and with one that is about to be deleted though it has.
    std::function<void(std::uint64_t tag, const SnapshotBytes&)> taken;
    std::function<void(const StagedSnapshot&)> arrived;
    std::function<void()> deleting;
    /// Whether there is no space for what arrives.
    std::function<bool()> full;
    /// Null, or in place of `machine`.
    const node::WitnessMachine* witness = nullptr;
  };

  SimSnapshots(World& world, raft::NodeId node, raft::Incarnation incarnation, Ports ports);
  ~SimSnapshots() override;

  void make_durable() override;
  void take() override;
  void read(std::uint64_t token, std::uint64_t tag, std::uint64_t offset,
            std::size_t bytes) override;
  void release(std::uint64_t tag) override;
  void store(const raft::ReceivedChunk& received) override;
  void discard() override;

  /// The state machine holds the one that was complete.
  void installed();

  bool taking() const { return taking_ > 0; }
  /// A snapshot is kept, because a node is or was to get it.
  bool keeps() const { return !taken_.empty(); }
  /// Parts of one have arrived within the last second, or one waits to be installed.
  bool receiving() const;

  /// What a crash leaves of `staged`: what was not durable may be gone.
  static void crash(World& world, Random& random, std::optional<StagedSnapshot>& staged);

 private:
  struct Job {
    Duration length{0};
    EventQueue::Action done;
  };
  struct Lane {
    bool busy = false;
    std::deque<Job> jobs;
  };

  /// The one to a chunk that began at `chunk_at`.
  struct Answer {
    replica::ChunkStored now;
    std::uint64_t chunk_at = 0;
  };
  class Arriving;
  class Holder;

  void work(Lane& lane, Duration length, EventQueue::Action done);
  void start_next(Lane& lane);
  Duration draw_length();
  void stored(const raft::ReceivedChunk& received);
  void fill();
  void answer(Answer answer);
  void answer_waiting(bool refused);
  bool append(const raft::SnapshotChunk& chunk);

  World& world_;
  const raft::NodeId node_;
  Ports ports_;
  Random random_;
  Lane own_;
  Lane arriving_;
  int taking_ = 0;
  /// By tag, until they are released.
  std::map<std::uint64_t, std::shared_ptr<const SnapshotBytes>> taken_;
  /// This process knows that the staged one is complete, and has not released it.
  bool told_complete_ = false;
  /// This process has stored a part of the staged one.
  bool continued_ = false;
  /// What the machine holds already of the staged one, and the chunks that are answered behind it.
  std::unique_ptr<Holder> holder_;
  replica::SnapshotFiller filler_;
  std::vector<Answer> waiting_;
  bool filling_ = false;
  TrueInstant last_part_ = TrueInstant();
  bool any_part_ = false;
};

}  // namespace leasehold::sim
