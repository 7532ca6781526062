// A node's replica of one of its groups, as clients reach it.
#pragma once

#include <leasehold/raft/types.h>
#include <leasehold/replica/driver.h>
#include <leasehold/sim/world/sim_node.h>

#include <cstdint>
#include <vector>

namespace leasehold::lab {

/// The one register of each group.
inline constexpr std::uint64_t kKey = 1;
/// The group beside the one that is judged in full, where a visit has two.
inline constexpr raft::GroupId kSecondGroup{2};

/// Outlives processes, but not the node.
class Place {
 public:
  Place(sim::SimNode& node, raft::GroupId group) : node_(&node), group_(group) {}

  sim::SimNode& node() const { return *node_; }
  raft::NodeId id() const { return node_->id(); }
  raft::GroupId group() const { return group_; }
  /// Whether the replica runs. What follows asserts it, but leads().
  bool up() const;
  bool leads() const;
  raft::Term term() const;
  const replica::LeaseView& view() const;
  void post(replica::Event event) const;

  /// Of the register; 0: it was never set.
  std::uint64_t value() const;
  raft::Index applied() const;

 private:
  /// Null: the place is one of the first group.
  const sim::SideGroup* side() const;

  sim::SimNode* node_;
  raft::GroupId group_;
};

std::vector<Place> places_of(const std::vector<sim::SimNode*>& nodes, raft::GroupId group);
/// Of the places that believe that they lead, the one of the newest term; null: none does.
const Place* newest_leader(const std::vector<Place>& places);

}  // namespace leasehold::lab
