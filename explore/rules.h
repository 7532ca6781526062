// What a node was before a step, for the rules that bind steps and not states.
#pragma once

#include <leasehold/explore/world.h>

#include <map>
#include <optional>

namespace leasehold::explore {

struct World::Before {
  std::size_t node = 0;
  raft::Role role = raft::Role::follower;
  Term term;
  lease::Timing timing;  ///< that it follows
  raft::LeaseState view;
  bool lease_valid = false;
  /// A live promise to another than the sender of what arrives.
  bool bound = false;
  std::map<NodeId, raft::Round> acknowledged;
};

}  // namespace leasehold::explore
