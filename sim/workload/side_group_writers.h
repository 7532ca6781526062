// Writes and transfers in the side groups.
#pragma once

#include <leasehold/sim/world/sim_node.h>

#include <cstdint>
#include <vector>

namespace leasehold::sim {

/// Asks any member for a write now and then, or a leader for a transfer. Nobody waits for an
/// answer: the groups are judged by what they commit.
class SideGroupWriters {
 public:
  SideGroupWriters(World& world, std::vector<SimNode*> nodes);

  void start();

 private:
  void next();
  void ask(SimNode& node, const SideGroup& group);
  /// What its leaders have not committed.
  std::uint64_t backlog(raft::GroupId group) const;

  World& world_;
  const std::vector<SimNode*> nodes_;
  Random random_;
  Duration pause_;  ///< the mean one
};

}  // namespace leasehold::sim
