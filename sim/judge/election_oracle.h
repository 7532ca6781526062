// Which node leads which term, and which node voted for which.
#pragma once

#include <leasehold/raft/event.h>
#include <leasehold/raft/message.h>
#include <leasehold/sim/judge/ledger.h>

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace leasehold::sim {

/// Judges, by the names that a violation carries:
///   election_safety         two leaders in one term
///   leader_completeness     a leader lacks a committed entry
///   vote_durability         a vote left before it was durable, or two went to different candidates
///   holder_lives            a promise ended with the process that held it, and that process lives
class ElectionOracle {
 public:
  ElectionOracle(World& world, const Ledger& ledger) : world_(world), ledger_(ledger) {}

  void on_event(const SimNode& node, const raft::Event& event);
  void on_send(const SimNode& node, raft::NodeId to, const raft::Message& message);

  std::optional<raft::NodeId> leader_of(raft::Term term) const;
  /// Terms that had a leader, without the first.
  std::uint64_t leader_changes() const {
    return leaders_.empty() ? 0 : static_cast<std::uint64_t>(leaders_.size()) - 1;
  }

 private:
  void on_elected(const SimNode& node, raft::Term term);
  void check_holder(const SimNode& node, const raft::HolderEnded& ended);
  void check_new_leader(const SimNode& node, raft::Term term);
  void check_vote(const SimNode& node, raft::Term term, raft::NodeId candidate);

  World& world_;
  const Ledger& ledger_;
  /// As it was when it was elected.
  std::map<raft::Term, raft::Peer> leaders_;
  std::map<std::pair<raft::NodeId, raft::Term>, raft::NodeId> votes_;
};

}  // namespace leasehold::sim
