// Groups whose members change.
#pragma once

#include "group.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <variant>
#include <vector>

namespace leasehold::raft::test {

using Answer = std::variant<LogId, ChangeRefused>;

inline std::optional<ChangeObstacle> obstacle(const Answer& answer) {
  const auto* refused = std::get_if<ChangeRefused>(&answer);
  return refused != nullptr ? std::optional(refused->obstacle) : std::nullopt;
}

inline WantedMembers voters(std::initializer_list<std::uint64_t> ids) {
  WantedMembers wanted;
  for (const std::uint64_t id : ids) wanted.push_back(voter(id));
  return wanted;
}

inline WantedMembers with(WantedMembers wanted, const WantedMember& one_more) {
  wanted.push_back(one_more);
  return wanted;
}

inline std::vector<NodeId> ids(std::initializer_list<std::uint64_t> numbers) {
  std::vector<NodeId> ids;
  for (const std::uint64_t n : numbers) ids.emplace_back(n);
  return ids;
}

inline bool settled(const Core& core) {
  return !core.membership().joint() && core.log().membership_index() <= core.commit_index();
}

/// Changes the members to `wanted`, and waits until that is done.
inline void complete(Group& group, const WantedMembers& wanted) {
  const int leader = group.elect();
  ASSERT_EQ(obstacle(group.change(leader, wanted)), std::nullopt);
  group.run(ms(500));
}

/// Nodes 1 .. size vote, the nodes up to `all` are learners that have everything.
inline void grow(Group& group, std::uint64_t size, std::uint64_t all) {
  WantedMembers wanted;
  for (std::uint64_t id = 1; id <= size; ++id) wanted.push_back(voter(id));
  for (std::uint64_t id = size + 1; id <= all; ++id) {
    group.add(static_cast<int>(id));
    wanted.push_back(learner(id));
  }
  complete(group, wanted);
}

}  // namespace leasehold::raft::test
