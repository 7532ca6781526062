// The interface of what judges a run while the nodes run.
#pragma once

#include <leasehold/raft/event.h>
#include <leasehold/raft/ready.h>
#include <leasehold/wire/peer_message.h>

#include <cstdint>
#include <vector>

namespace leasehold::sim {

class SideGroup;
class SimNode;
class SnapshotBytes;
struct StagedSnapshot;

/// A SimNode calls these at the named moments. A judge changes nothing and draws no random number:
/// the run is the same under any judge. It reports through World::fail().
class Judge {
 public:
  virtual ~Judge() = default;

  /// A process has been made, and has had no event yet.
  virtual void on_start(const SimNode& node) = 0;
  /// The process is gone, and the disk has lost what it loses.
  virtual void on_crash(const SimNode& node) = 0;
  virtual void on_event(const SimNode& node, const raft::Event& event) = 0;
  /// A message is about to leave.
  virtual void on_send(const SimNode& node, raft::NodeId to, const wire::PeerMessage& message) = 0;
  /// A message has arrived at the process, which has not looked at it yet.
  virtual void on_arrival(const SimNode& node, raft::NodeId from,
                          const wire::PeerMessage& message) = 0;
  /// A batch is about to be written.
  virtual void on_persist(const SimNode& node, const raft::PersistBatch& batch) = 0;
  /// The state machine gets the entries, before and after it has applied them.
  virtual void on_apply_asked(const SimNode& node, const std::vector<raft::Entry>& entries) = 0;
  virtual void on_applied(const SimNode& node, const std::vector<raft::Entry>& entries) = 0;
  /// The same of a snapshot. `at_start`: before the process runs.
  virtual void on_install_asked(const SimNode& node, const raft::SnapshotId& id) = 0;
  virtual void on_installed(const SimNode& node, const raft::SnapshotId& id, bool at_start) = 0;
  virtual void on_snapshot_taken(const SimNode& node, std::uint64_t tag,
                                 const SnapshotBytes& snapshot) = 0;
  /// All of it has arrived.
  virtual void on_snapshot_arrived(const SimNode& node, const StagedSnapshot& snapshot) = 0;
  /// A snapshot that has arrived whole is about to be deleted.
  virtual void on_snapshot_deleted(const SimNode& node) = 0;
  /// The driver has handled a batch of events, and no caller has been answered yet.
  virtual void after_handle(const SimNode& node) = 0;
  /// The same of a side group.
  virtual void after_side_turn(const SideGroup& group) = 0;
};

}  // namespace leasehold::sim
