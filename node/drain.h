// The end of a node in good order: its callers are answered, and another node leads.
#pragma once

#include <leasehold/node/calls.h>
#include <leasehold/replica/driver.h>

#include <functional>
#include <vector>

namespace leasehold::node {

/// Passive, as a Driver is, and on its thread. Once begun it goes on: a node that is elected again
/// hands over again. Meanwhile new calls are refused (refuse_calls()).
///
///     begin ──> the callers' new calls are refused ──> it leads: hand over ──> nothing waits: done
///                                                        ^──failed, elected again──┘
class Drain {
 public:
  /// `pause`: between a hand-over that failed and the next one, so that commands get on.
  explicit Drain(lease::Duration pause) : pause_(pause) {}

  bool begun() const { return begun_; }
  /// Whoever asks first sets the deadline; everybody is answered.
  void begin(raft::PromiseInstant deadline, DrainCompletion done);

  /// After a turn, with the driver's own completions called: puts what it has to do next behind
  /// `events`, and answers. `connected`: which nodes this one reaches, itself included.
  void look(lease::Now now, const replica::Driver& driver,
            const std::function<bool(raft::NodeId)>& connected,
            std::vector<replica::Event>& events);
  /// Answers, now: there is nothing to be done (`complete`), or nobody to do it any more.
  void end(bool complete);

  /// When look() has something to do though nothing happened.
  raft::PromiseInstant next_deadline() const;

 private:
  static raft::NodeId heir(const raft::Core& core,
                           const std::function<bool(raft::NodeId)>& connected);
  static bool can_elect(const raft::Core& core, const std::function<bool(raft::NodeId)>& connected);
  void answer(const DrainResult& result);

  const lease::Duration pause_;
  bool begun_ = false;
  bool ended_ = false;
  bool led_ = false;  ///< since it began
  raft::PromiseInstant deadline_;
  std::vector<DrainCompletion> waiting_;
  /// A HandOver is under way.
  bool asked_ = false;
  bool failed_ = false;  ///< the last HandOver; until it was looked at
  raft::PromiseInstant next_try_ = raft::PromiseInstant::earliest();
};

}  // namespace leasehold::node
