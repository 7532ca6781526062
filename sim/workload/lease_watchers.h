// Clients that watch the keys that are attached to leases.
#pragma once

#include <leasehold/kv/events.h>
#include <leasehold/sim/judge/oracles.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace leasehold::sim {

/// Now and then, each asks a node for the revisions behind the last one that it knows. It changes
/// the node now and then, and when the node is silent. If the node does not keep those revisions
/// any more, it reads all keys again. The oracle judges its copy of the keys.
class LeaseWatchers {
 public:
  LeaseWatchers(World& world, const std::vector<SimNode*>& nodes, Oracles& oracles);
  void start();

 private:
  struct Watcher {
    Random random{0};
    std::size_t node = 0;
    std::uint64_t looks = 0;            ///< the newest one is answered, others come too late
    std::optional<std::uint64_t> seen;  ///< the newest revision that it knows
    WatchOracle::Copy copy;
  };
  /// A node's answer: the state at a revision, or what came behind the revision that was named.
  struct Answer {
    std::optional<std::uint64_t> revision;
    WatchOracle::Copy copy;
    std::vector<kv::Revision> revisions;
  };

  void look_later(std::size_t which);
  void look(std::size_t which);
  static Answer answer(const SimNode& node, std::optional<std::uint64_t> seen, std::size_t count);
  void take(std::size_t which, const Answer& answer);

  World& world_;
  std::vector<SimNode*> nodes_;
  Oracles& oracles_;
  std::vector<Watcher> watchers_;
};

}  // namespace leasehold::sim
