// The preferred leader: a leader transfers the leadership to a node that its operator prefers.
#pragma once

#include <leasehold/replica/driver.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace leasehold::node {

/// Passive, as a Driver is, and on its thread. A wish, not a rule: it only requests a transfer,
/// which any caller may request.
///
/// A leader transfers the leadership to a voter that stands before it in the list, the first of
/// those that are well: connected, with all that is committed, and acknowledging rounds. That node
/// has to have been well, and this one has to have led, for `settle` without a break. So the
/// leadership moves at most once in that time, and only towards the front of the list: as long as
/// the nodes have the same list, it comes to rest.
class Preference {
 public:
  /// A transfer that failed is tried again after `settle`, then after twice as long, and so on, up
  /// to this many times `settle`.
  static constexpr int kPauseFactorMax = 32;

  /// `wanted`: the preferred nodes, best first; nodes that are not listed come last. Empty: no
  /// preference.
  Preference(raft::NodeId self, std::vector<raft::NodeId> wanted, lease::Duration settle)
      : self_(self), wanted_(std::move(wanted)), settle_(settle) {}

  /// After a turn of the driver, with its completions called: appends a transfer to `events` when
  /// one is due, and returns whether it did.
  bool look(lease::Now now, const replica::Driver& driver,
            const std::function<bool(raft::NodeId)>& connected,
            std::vector<replica::Event>& events);
  /// When look() has something to do even if nothing happened.
  raft::PromiseInstant next_deadline() const { return due_; }

 private:
  raft::NodeId better(const raft::Core& core, lease::Now now,
                      const std::function<bool(raft::NodeId)>& connected) const;
  void rest();

  const raft::NodeId self_;
  const std::vector<raft::NodeId> wanted_;
  const lease::Duration settle_;
  raft::Term term_;         ///< of the leadership that is observed; 0: none
  raft::NodeId candidate_;  ///< the node that has been well since it was chosen
  raft::PromiseInstant due_ = raft::PromiseInstant::never();  ///< when to transfer to the candidate
  bool asked_ = false;
  bool failed_ = false;
  int factor_ = 1;  ///< of the pause before the next try
};

}  // namespace leasehold::node
