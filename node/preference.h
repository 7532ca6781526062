// Who shall lead, if it can: a leader transfers the leadership to a node that its operator prefers.
#pragma once

#include <leasehold/replica/driver.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace leasehold::node {

/// Passive, as a Driver is, and on its thread. A wish and never a rule: it only ever asks for what
/// everybody may ask for, a transfer.
///
/// A leader transfers the leadership to a voter that stands before it in the list, the first of
/// those that are well: connected, with all that is committed, and acknowledging rounds. Such a
/// node has to have been well, and this one to have led, for `settle` without a break. So the
/// leadership moves at most once in that time, and only towards the front of the list: as long as
/// the nodes have the same list, it comes to rest.
class Preference {
 public:
  /// A transfer that failed is tried again after `settle`, then after twice as long, up to so many
  /// times as long.
  static constexpr int kPauseFactorMax = 32;

  /// `wanted`: the first is liked best; who is not among them is liked least. Empty: no wish.
  Preference(raft::NodeId self, std::vector<raft::NodeId> wanted, lease::Duration settle)
      : self_(self), wanted_(std::move(wanted)), settle_(settle) {}

  /// After a turn of the driver, with its completions called: puts a transfer behind `events` when
  /// it is time for one, and says so.
  bool look(lease::Now now, const replica::Driver& driver,
            const std::function<bool(raft::NodeId)>& connected,
            std::vector<replica::Event>& events);
  /// When look() has something to do though nothing happened.
  raft::PromiseInstant next_deadline() const { return due_; }

 private:
  raft::NodeId better(const raft::Core& core, lease::Now now,
                      const std::function<bool(raft::NodeId)>& connected) const;
  void rest();

  const raft::NodeId self_;
  const std::vector<raft::NodeId> wanted_;
  const lease::Duration settle_;
  raft::Term term_;         ///< of the leadership that is looked at; 0: none
  raft::NodeId candidate_;  ///< who has been well since it was found
  raft::PromiseInstant due_ = raft::PromiseInstant::never();  ///< when the candidate shall lead
  bool asked_ = false;
  bool failed_ = false;
  int factor_ = 1;  ///< of the pause before the next try
};

}  // namespace leasehold::node
