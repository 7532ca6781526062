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

/// Why this node cannot move the slots, or an empty text: it can. `group`: its replica of the group
/// that the slots leave. `to`: where the other group is; null: at every node. If it cannot move
/// frozen slots, and leads, it also transfers the leadership to a voter at a node of the other
/// group, if it reaches one. Any thread.
std::string cannot_move_here(node::Group& group, const GroupPlace* to, const LeavingSlots& slots);

}  // namespace leasehold::server
