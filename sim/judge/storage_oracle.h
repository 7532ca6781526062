// The disk has what the core goes by, and no message says more than a crash would leave.
#pragma once

#include <leasehold/raft/message.h>
#include <leasehold/raft/ready.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <optional>
#include <set>

namespace leasehold::sim {

/// Judges, by the names that a violation carries:
///   disk_log                after a turn the disk has received another log than the core goes by,
///                           or the core takes for durable what a crash now would remove
///   told_before_durable     a message names a term of its sender, a promise or an entry that a
///                           crash now would take back
/// A pre-vote request names a term that is not durable: it binds no node. Votes are judged by
/// `vote_durability` (election_oracle.h).
class StorageOracle {
 public:
  explicit StorageOracle(World& world) : world_(world) {}

  void on_crash(const SimNode& node) { replaced_.erase(node.id()); }
  void on_send(const SimNode& node, raft::NodeId to, const raft::Message& message) const;
  /// A batch is about to be written.
  void on_persist(const SimNode& node, const raft::PersistBatch& batch);
  void after_handle(const SimNode& node);

 private:
  void check_written(const SimNode& node, bool all) const;
  void check_durable(const SimNode& node) const;
  void check_promise(const SimNode& node, raft::NodeId to, raft::Term asked) const;
  void check_match(const SimNode& node, const raft::AppendReply& reply) const;

  World& world_;
  /// Nodes that have replaced a part of their log in this turn.
  std::set<raft::NodeId> replaced_;
};

}  // namespace leasehold::sim
