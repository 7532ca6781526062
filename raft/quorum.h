// The one quorum function. Commit, lease, read confirmation, check-quorum and elections all ask it.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace leasehold::raft {

/// The values that the voters of one half have reached, of one kind, without an allocation: a half
/// has at most kMembersMax voters.
template <class T>
class ReachedValues {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// Leaves the slots uninitialised: filling 64 with zeroes would cost more than everything else.
  ReachedValues() {}  // NOLINT(modernize-use-equals-default): a default one may be zeroed first

  /// Adds one voter's value; none is below every value.
  void add(const std::optional<T>& value) {
    if (!value) return;
    LEASEHOLD_ASSERT(size_ < kMembersMax);
    // Groups usually have three or five voters, so this is an insertion sort.
    std::size_t place = size_++;
    for (; place > 0 && slots_[place - 1].value < *value; --place) {
      slots_[place].value = slots_[place - 1].value;
    }
    slots_[place].value = *value;
  }
  /// The largest value that `voters` of them have reached; none if fewer have reached any.
  std::optional<T> reached_by(std::size_t voters) const {
    LEASEHOLD_ASSERT(voters > 0);
    if (size_ < voters) return std::nullopt;
    return slots_[voters - 1].value;
  }

 private:
  /// Holds no value before one is added.
  union Slot {
    Slot() {}  // NOLINT(modernize-use-equals-default): it would be deleted
    T value;
  };
  std::array<Slot, kMembersMax> slots_;
  /// Invariant: the first size_ slots hold values, descending: n voters have reached the value in
  /// slot n - 1.
  std::size_t size_ = 0;
};

/// For each kind of value, the largest that more than half of `voters` have reached. `values_of`
/// maps a NodeId to a tuple of optional values, and is asked once for each voter.
template <class... T, class ValuesOf>
std::tuple<std::optional<T>...> majority_values(const std::vector<NodeId>& voters,
                                                const ValuesOf& values_of) {
  LEASEHOLD_ASSERT(voters.size() <= kMembersMax);
  if (voters.empty()) return {};
  std::tuple<ReachedValues<T>...> reached;
  for (const NodeId id : voters) {
    const std::tuple<std::optional<T>...> values = values_of(id);
    std::apply(
        [&](auto&... kind) {
          std::apply([&](const auto&... value) { (kind.add(value), ...); }, values);
        },
        reached);
  }
  const std::size_t majority = voters.size() / 2 + 1;
  return std::apply(
      [&](auto&... kind) { return std::tuple<std::optional<T>...>(kind.reached_by(majority)...); },
      reached);
}

/// The smaller of the two; none if one of them is.
template <class T>
std::optional<T> reached_by_both(const std::optional<T>& a, const std::optional<T>& b) {
  if (!a || !b) return std::nullopt;
  return std::min(*a, *b);
}

/// For each kind of value, the largest that a quorum of the membership has reached: the smaller one
/// of the two halves while joint. One pass over the voters of each half.
template <class... T, class ValuesOf>
std::tuple<std::optional<T>...> quorum_values(const Membership& membership,
                                              const ValuesOf& values_of) {
  const auto newest = majority_values<T...>(membership.voters, values_of);
  if (!membership.joint()) return newest;
  const auto outgoing = majority_values<T...>(membership.outgoing_voters, values_of);
  return std::apply(
      [&](const auto&... a) {
        return std::apply(
            [&](const auto&... b) {
              return std::tuple<std::optional<T>...>(reached_by_both(a, b)...);
            },
            outgoing);
      },
      newest);
}

/// The same of one kind of value: `value_of` maps a NodeId to an optional value.
template <class T, class ValueOf>
std::optional<T> quorum_value(const Membership& membership, const ValueOf& value_of) {
  const auto values_of = [&value_of](NodeId id) {
    return std::tuple<std::optional<T>>(value_of(id));
  };
  return std::get<0>(quorum_values<T>(membership, values_of));
}

}  // namespace leasehold::raft
