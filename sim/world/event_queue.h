// True time, and the one queue that orders everything that happens in a simulation.
#pragma once

#include <leasehold/lease/instant.h>
#include <leasehold/sim/world/action.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::sim {

using lease::Duration;

/// A point on the clock that no node can see. A simulation starts at zero.
using TrueInstant = lease::Instant<struct TrueTimeTag>;

/// Actions ordered by true time; at one instant by the order in which they were scheduled. So a
/// run depends on nothing but its inputs.
class EventQueue {
 public:
  using Action = sim::Action;

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
    std::size_t place;  ///< in actions_
  };
  /// Whether `a` comes after `b`: the heap's head is the earliest.
  struct Later {
    bool operator()(const Item& a, const Item& b) const {
      return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
    }
  };
  /// True time is cut into slots of some four milliseconds.
  static constexpr int kSlotBits = 22;
  static constexpr std::size_t kSlots = 1024;
  static std::int64_t slot_of(TrueInstant when) { return when.since_origin().count() >> kSlotBits; }
  std::vector<Item>& far(std::int64_t slot) {
    return far_[static_cast<std::size_t>(slot) % kSlots];
  }
  bool next_slot(TrueInstant limit);

  TrueInstant now_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t steps_ = 0;
  /// What is due up to the end of this slot. Thousands of actions wait, most of them the patience
  /// of callers, and hardly any of them is near.
  std::vector<Item> heap_;
  std::int64_t slot_ = 0;
  /// What is due later, by its slot, modulo their number, in any order.
  std::vector<std::vector<Item>> far_{kSlots};
  std::size_t far_items_ = 0;
  /// Of the items; the others are empty and stand in free_.
  std::vector<Action> actions_;
  std::vector<std::size_t> free_;
};

}  // namespace leasehold::sim
