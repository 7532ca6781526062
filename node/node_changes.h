// What the observer last heard, to see what is different now.
#pragma once

#include <leasehold/replica/driver.h>
#include <leasehold/replica/observer.h>

#include <optional>

namespace leasehold::node {

/// Looked at once a turn: a few comparisons when nothing changed.
class Changes {
 public:
  explicit Changes(replica::Observer& observer) : observer_(observer) {}

  /// Reports what differs. `serving`: the node takes part; one that stopped or failed holds no
  /// lease.
  void look(const raft::Core& core, raft::HolderInstant now, bool serving) {
    const replica::LeadershipChange leadership{core.role(), core.term(), core.leader()};
    if (!leadership_ || *leadership_ != leadership)
      observer_.on_change(*(leadership_ = leadership));
    if (leadership.leader != raft::kNobody) last_leader_ = leadership.leader;
    const bool held = serving && core.lease_end() > now;
    if (!lease_ || lease_->held != held || (held && lease_->term != core.term())) {
      observer_.on_change(*(lease_ = replica::LeaseChange{core.term(), held}));
    }
    // A membership entry that replaced another at its index is of another term.
    const raft::Index index = core.log().membership_index();
    const raft::Term written = core.log().term_at(index).value_or(raft::Term(0));
    if (membership_ && *membership_ == raft::LogId{written, index}) return;
    membership_ = raft::LogId{written, index};
    observer_.on_change(replica::MembershipChange{index, core.membership()});
  }

  /// The last known leader, as of the last look(); kNobody: none yet.
  raft::NodeId last_leader() const { return last_leader_; }

 private:
  replica::Observer& observer_;
  std::optional<replica::LeadershipChange> leadership_;
  std::optional<replica::LeaseChange> lease_;
  std::optional<raft::LogId> membership_;
  raft::NodeId last_leader_ = raft::kNobody;
};

}  // namespace leasehold::node
