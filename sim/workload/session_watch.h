// Closes the sessions that are idle, as a service on top of the nodes does.
#pragma once

#include <leasehold/replica/session_expiry.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace leasehold::sim {

/// A thread of each process: it looks at the sessions by the node's own clock, and where that node
/// leads it proposes to close what is due.
class SessionWatch {
 public:
  SessionWatch(World& world, const std::vector<SimNode*>& nodes);
  void start();

 private:
  struct Watched {
    SimNode* node = nullptr;
    std::uint64_t life = 0;
    replica::SessionExpiry expiry;
    /// Proposals that have not ended. Until they have, nothing is proposed: a slow node would only
    /// get the same sessions again.
    std::shared_ptr<std::size_t> under_way;
  };

  void look_later(Watched& watched);
  void look(Watched& watched) const;

  World& world_;
  std::vector<Watched> watched_;
};

}  // namespace leasehold::sim
