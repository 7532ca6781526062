// A planned end of a node: its callers are answered, and another node leads.
#pragma once

#include <leasehold/node/calls.h>
#include <leasehold/replica/driver.h>

#include <functional>
#include <vector>

namespace leasehold::node {

/// Passive, as a Driver is, and on its thread. Once begun it continues: a node that is elected
/// again transfers again. Meanwhile it refuses new calls (refuse_calls()).
///
///     begin ──> the callers' new calls are refused ──> it leads: transfer ──> nothing waits: done
///                                                        ^──failed, elected again──┘
class Drain {
 public:
  /// `pause`: between a failed transfer and the next one, so that commands make progress.
  explicit Drain(lease::Duration pause) : pause_(pause) {}

  bool begun() const { return begun_; }
  /// The first caller sets the deadline; every caller gets an answer.
  void begin(raft::PromiseInstant deadline, DrainCompletion done);

  /// After a turn, with the driver's own completions called: appends its next step to `events`, and
  /// answers. `connected`: which nodes this one reaches, itself included.
  void look(lease::Now now, const replica::Driver& driver,
            const std::function<bool(raft::NodeId)>& connected,
            std::vector<replica::Event>& events);
  /// Answers now: nothing is left to do (`complete`), or the node stops.
  void end(bool complete);

  /// When to call look() even if nothing happened.
  raft::PromiseInstant next_deadline() const;

 private:
  static raft::NodeId successor(const raft::Core& core,
                                const std::function<bool(raft::NodeId)>& connected);
  static bool can_elect(const raft::Core& core, const std::function<bool(raft::NodeId)>& connected);
  void answer(const DrainResult& result);

  const lease::Duration pause_;
  bool begun_ = false;
  bool ended_ = false;
  bool led_ = false;  ///< since it began
  raft::PromiseInstant deadline_;
  std::vector<DrainCompletion> waiting_;
  /// A TransferLeadership is under way.
  bool asked_ = false;
  bool failed_ = false;  ///< the last TransferLeadership failed; reset when look() has seen it
  raft::PromiseInstant next_try_ = raft::PromiseInstant::earliest();
};

}  // namespace leasehold::node
