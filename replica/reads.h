// Readers on their way: first they need an index, then they wait until it is applied here.
#pragma once

#include <leasehold/replica/driver_context.h>

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace leasehold::replica {

/// A refused read is asked again until its deadline, because asking has no effect that could
/// happen twice.
class Reads {
 public:
  explicit Reads(DriverContext& context) : context_(context) {}

  /// Whether the read was answered: by the state as it is, which is young enough.
  bool answer_by_age(lease::Now now, Read& event);
  /// Mode lease or quorum; reads through the log are Proposals.
  void read(lease::Now now, Read& event);
  void wait_applied(lease::Now now, WaitApplied& event);
  void answered(const raft::ReadAnswer& answer);
  /// context.applied has risen.
  void applied();

  /// Whether anything waits for a leader, or to ask it again.
  bool any_held() const { return !held_.empty(); }
  /// Asks again for everything that is held.
  void route_held(lease::Now now);

  void expired(std::uint64_t number);
  void cancelled(CallGroup group);
  void complete_all();

  bool waits(std::uint64_t number) const { return waiters_.find(number) != waiters_.end(); }
  std::size_t size() const { return waiters_.size(); }

 private:
  enum class Place : std::uint8_t {
    held,      ///< no leader is known, or it refused
    asked,     ///< the core will answer
    applying,  ///< `index` has to be applied
  };
  struct Waiter {
    raft::ReadMode mode = raft::ReadMode::lease;
    raft::PromiseInstant deadline;
    raft::HolderInstant began;  ///< when it was asked for
    CallGroup group;
    ReadCompletion done;
    SpanPointer span;  ///< null as a rule
    Place place = Place::held;
    raft::Index index;
    raft::ReadBasis basis = raft::ReadBasis::quorum;
    bool counted = false;  ///< in the counters by basis; false for WaitApplied
  };
  using Waiters = std::map<std::uint64_t, Waiter>;

  Waiters::iterator add(lease::Now now, raft::PromiseInstant deadline, ReadCompletion& done);
  void route(lease::Now now, Waiters::iterator waiter);
  void trace_asked(Span& span) const;
  void hold(Waiters::iterator waiter);
  void await(Waiters::iterator waiter);
  void complete(Waiters::iterator waiter);
  void refuse(Waiters::iterator waiter, bool overloaded);

  DriverContext& context_;
  std::uint64_t last_number_ = 0;
  /// By the number that the core knows too. Bounded by Limits::reads_max.
  Waiters waiters_;
  /// Numbers of the waiters at Place::held. May name some that have expired.
  std::vector<std::uint64_t> held_;
  /// The waiters at Place::applying, by the index they need.
  std::set<std::pair<raft::Index, std::uint64_t>> applying_;
};

}  // namespace leasehold::replica
