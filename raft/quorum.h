// The one quorum function. Commit, lease, read confirmation, check-quorum and elections all ask it.
#pragma once

#include <leasehold/raft/membership.h>
#include <leasehold/raft/types.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace leasehold::raft {

/// The largest value that more than half of `voters` have reached; none if fewer have reached any.
/// `value` maps a NodeId to an optional value; none is below every value.
template <class T, class ValueOf>
std::optional<T> majority_value(const std::vector<NodeId>& voters, const ValueOf& value) {
  std::vector<std::optional<T>> values;
  values.reserve(voters.size());
  for (const NodeId id : voters) values.push_back(value(id));
  // Descending: the value at the majority's last place has been reached by all before it.
  std::sort(values.begin(), values.end(), [](const std::optional<T>& a, const std::optional<T>& b) {
    if (!a || !b) return a.has_value() && !b.has_value();
    return *b < *a;
  });
  return values.empty() ? std::nullopt : values[voters.size() / 2];
}

/// The largest value that a quorum of the membership has reached: the smaller of the two halves
/// while joint.
template <class T, class ValueOf>
std::optional<T> quorum_value(const Membership& membership, const ValueOf& value) {
  const std::optional<T> newest = majority_value<T>(membership.voters, value);
  if (!membership.joint() || !newest) return newest;
  const std::optional<T> outgoing = majority_value<T>(membership.outgoing_voters, value);
  if (!outgoing) return outgoing;
  return std::min(*newest, *outgoing);
}

}  // namespace leasehold::raft
