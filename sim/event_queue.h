// True time, and the one queue that orders everything that happens in a simulation.
#pragma once

#include <leasehold/lease/instant.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace leasehold::sim {

using lease::Duration;

/// A point on the clock that no node can see. A simulation starts at zero.
using TrueInstant = lease::Instant<struct TrueTimeTag>;

/// Actions ordered by true time; at one instant by the order in which they were scheduled. So a
/// run depends on nothing but its inputs.
class EventQueue {
 public:
  using Action = std::function<void()>;

  TrueInstant now() const { return now_; }
  /// `when` is not in the past.
  void at(TrueInstant when, Action action);
  void after(Duration delay, Action action) { at(now_ + delay, std::move(action)); }
  /// Moves true time to the next action and runs it. False: nothing is scheduled up to `limit`, and
  /// true time stands at `limit`.
  bool run_next(TrueInstant limit);
  std::uint64_t steps() const { return steps_; }

 private:
  struct Item {
    TrueInstant when;
    std::uint64_t sequence;
    Action action;
  };
  /// Whether `a` comes after `b`: the heap's head is the earliest.
  static bool later(const Item& a, const Item& b) {
    return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
  }

  TrueInstant now_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<Item> heap_;
};

}  // namespace leasehold::sim
