// The committed log: the same everywhere, and never lost.
#pragma once

#include <leasehold/raft/ready.h>
#include <leasehold/sim/judge/ledger.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace leasehold::sim {

/// Judges, by the names that a violation carries:
///   log_matching            two nodes have committed different entries at one index
///   lost_commit             a committed entry is not durable on a quorum, or will not be
class LogOracle {
 public:
  /// Gets each entry that a node is the first to commit, in order, and adds it to the ledger.
  using FirstCommit = std::function<void(const SimNode&, const raft::Entry&)>;

  LogOracle(World& world, const Ledger& ledger, FirstCommit first_commit)
      : world_(world), ledger_(ledger), first_commit_(std::move(first_commit)) {}

  void on_start(const SimNode& node) { commits_[node.id()] = raft::Index(); }
  void on_crash(const SimNode& node);
  /// The node is about to remove what it has written from `from` on.
  void on_removal(const SimNode& node, raft::Index from);
  void after_handle(const SimNode& node);

 private:
  World& world_;
  const Ledger& ledger_;
  FirstCommit first_commit_;
  /// Of the running process: its log has been compared with the ledger up to here.
  std::map<raft::NodeId, raft::Index> commits_;
};

}  // namespace leasehold::sim
