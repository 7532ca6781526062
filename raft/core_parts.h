// Parts of a core's state. A part of Core: see core_impl.h.
#pragma once

#include <leasehold/raft/message.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <map>
#include <optional>

namespace leasehold::raft {

/// A durable write that was handed out and not answered.
struct UnansweredBatch {
  ReadyId id;
  /// The last entry of the batch that is still in the log; 0 if it has none (any more).
  Index last;
  PromiseInstant handed_out;
  std::optional<SnapshotId> installs;  ///< the snapshot that replaces the log with it
};

struct Follower {};

/// The order in which the voters of a group ask for votes when its leader is gone.
struct ElectionOrder {
  std::int64_t voters = 0;
  std::int64_t before = 0;      ///< of them, those that come before this node
  bool refused_before = false;  ///< one of those before was refused: see Core::Impl::refused_
};

struct Candidate {
  bool pre_vote = true;
  /// Answers of the others, and the own vote once it is durable.
  std::map<NodeId, bool> votes;
  /// The batch that makes the own vote durable; a pre-vote has none.
  ReadyId own_vote;
};

/// All that decides whether a leader that votes has the progress of each member. Invariant: equal
/// ones have the same answer, so it is asked once.
struct CheckedMembers {
  Term term;  ///< of the leader: it leads a term once
  std::uint64_t membership_changes = 0;
  std::uint64_t peer_changes = 0;
  bool known = false;  ///< the newest membership is known to be committed
  friend bool operator==(const CheckedMembers&, const CheckedMembers&) = default;
};

/// The state at the last check: for the invariants of a step.
struct CheckedState {
  Term term;
  Index base;
  Index commit;
  Index membership;
  HolderInstant lease_end = HolderInstant::earliest();
  CheckedMembers members;
};

}  // namespace leasehold::raft
