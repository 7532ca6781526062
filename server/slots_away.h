// Slots on their way to a group of which this node, which would move them, has no replica.
#pragma once

#include <leasehold/node/group.h>
#include <leasehold/server/front/group_place.h>

#include <cstddef>
#include <string>

namespace leasehold::server {

/// Slots that leave a group. Groups count from 1.
struct LeavingSlots {
  std::size_t from = 0;
  std::size_t to = 0;
  bool frozen = false;  ///< they are nobody's
};

/// Why this node, whose replica of the group that they leave is `group`, cannot move them. `to`:
/// where the other group is; null: at every node. Empty: it can. Frozen slots wait for nobody's
/// help: if this replica leads, it gives the leadership to a voter that it reaches at a node of the
/// other group. Any thread.
std::string cannot_move_here(node::Group& group, const GroupPlace* to, const LeavingSlots& slots);

}  // namespace leasehold::server
