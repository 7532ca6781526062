// What a node reports to its host program: the leader, whether it holds the lease, and the members.
#pragma once

#include <leasehold/lease/instant.h>
#include <leasehold/raft/event.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/types.h>

#include <string>
#include <variant>

namespace leasehold::replica {

/// This node's role, its term, or the leader that it knows (kNobody: none).
struct LeadershipChange {
  raft::Role role = raft::Role::follower;
  raft::Term term;
  raft::NodeId leader;
  friend bool operator==(const LeadershipChange&, const LeadershipChange&) = default;
};

/// This node has a lease now, or no longer. For people and for background work: a read uses the
/// LeaseView, which is exact, while this change comes when the node's thread runs (within a
/// heartbeat after a lease has expired).
struct LeaseChange {
  raft::Term term;
  bool held = false;
  friend bool operator==(const LeaseChange&, const LeaseChange&) = default;
};

/// The members of the group, from the log position `index` on. Effective when appended, so it may
/// be taken back by a later change with a lower index.
struct MembershipChange {
  raft::Index index;
  raft::Membership membership;
  friend bool operator==(const MembershipChange&, const MembershipChange&) = default;
};

/// The closed set: std::visit with an overload for each finds a new one at compile time.
using Change = std::variant<LeadershipChange, LeaseChange, MembershipChange>;

/// Receives changes and events. Every method does nothing unless it is overridden.
///
/// Called on the node's thread (its name is "lh-node"), one call at a time: must be quick, must not
/// block and must not call the node. Move longer work to a thread of your own.
class Observer {
 public:
  virtual ~Observer() = default;
  /// The present state, when the group has formed and whenever it differs after a turn of the
  /// node's thread: several changes in one turn are one call, and each call differs from the last
  /// of its kind. Completions of the same turn come after it. A stopped node holds no lease. A
  /// Driver does not call this, a Node does.
  virtual void on_change(const Change& /*change*/) {}
  /// Every step of the protocol, for logs, metrics and traces.
  virtual void on_event(const raft::Event& /*event*/) {}
  /// This leader has the acknowledgements of a quorum for a round that it began `took` ago: its
  /// lease counts from there. In a turn that completes several the newest one is noted.
  virtual void on_round(lease::Duration /*took*/) {}
  /// A sentence for the operator's log: a peer was refused, the group formed. A Driver does not
  /// call this, a Node does.
  virtual void on_notice(const std::string& /*text*/) {}
};

}  // namespace leasehold::replica
