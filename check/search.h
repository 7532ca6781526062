// The general check of one key: a search for an order of its operations (Wing and Gong, "Testing
// and verifying concurrent objects", 1993) that remembers what it has tried (Lowe, "Testing for
// linearizability", 2017).
#pragma once

#include <leasehold/check/zones.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

namespace leasehold::check {

/// What the key holds after `operation` is put behind `value`; none if its answer does not fit.
/// `values` joins what is appended; null if nothing is.
std::optional<std::uint64_t> next_value(const Operation& operation, std::uint64_t value,
                                        Texts* values);

/// One search. The candidates stand in a doubly linked list of calls and returns, ordered by time;
/// whatever stands before the first return may come next.
///
/// A state is the set of operations that are done and the value that they have made. It is
/// remembered as 128 bits: the value and, for each operation done, a fixed random number of its
/// own, all combined. So a step takes constant time however long the history is. Two states that
/// share these bits by accident could turn "linearizable" into "violation", never the other way
/// round: an order that was found is an order. For a million states the chance is below 10^-26.
class OrderSearch {
 public:
  enum class Found { order, no_order, gave_up };

  OrderSearch(const KeyOperations& operations, Texts* values);

  /// `progress` is called with the states now and then; may be empty.
  Found run(std::size_t states_max, const std::function<void(std::size_t)>& progress);

 private:
  static constexpr std::size_t kHead = 0;
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  struct Link {
    std::size_t prev = kHead;
    std::size_t next = kHead;
    std::size_t operation = 0;
    std::size_t mate = kNone;  ///< of a call: its return, if there is one
    bool call = false;
  };
  struct Step {
    std::size_t link;
    std::uint64_t value_before;
    bool forced;  ///< the only choice: to undo it is to go back further
  };
  struct State {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    bool operator==(const State& other) const { return high == other.high && low == other.low; }
  };
  struct StateHash {
    std::size_t operator()(const State& state) const { return static_cast<std::size_t>(state.low); }
  };

  void build_list();
  std::size_t fitting_observation(std::uint64_t value) const;
  bool enter(std::size_t which, std::uint64_t value);
  void toggle(std::size_t which);
  void lift(std::size_t call);
  void restore(std::size_t call);
  void unlink(std::size_t i);
  void relink(std::size_t i);

  KeyOperations operations_;
  Texts* values_;
  std::vector<Link> links_;  ///< links_[kHead] is the list's head
  std::size_t returns_left_ = 0;
  std::vector<Step> steps_;
  State done_;  ///< which operations are, without the value
  std::unordered_set<State, StateHash> seen_;
};

}  // namespace leasehold::check
