// Links that are cut, and which.
#pragma once

#include <leasehold/sim/world/sim_network.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// By the positions of the nodes, from and to.
using Links = std::vector<std::pair<std::size_t, std::size_t>>;

/// Links between `count` nodes. One node alone, two sides, a bridge, a ring, or two that do not
/// hear each other; `target` is the one that is alone, or in the middle.
Links draw_partition(Random& random, std::size_t count, std::size_t target);
/// Of one node: it is not heard, does not hear, or both by link.
Links draw_one_way_cut(Random& random, std::size_t count, std::size_t target);

/// Cuts that end by themselves. They may overlap.
class Cuts {
 public:
  Cuts(World& world, std::vector<SimNode*> nodes, SimNetwork& network)
      : world_(world), nodes_(std::move(nodes)), network_(network) {}

  void cut(Links links, Duration length, std::uint64_t in_flight_loss_percent);
  /// Every cut ends now.
  void join();
  /// Of this node, in both directions.
  Links links_of(const SimNode& node) const;

 private:
  void end(std::uint64_t number);

  World& world_;
  std::vector<SimNode*> nodes_;
  SimNetwork& network_;
  /// The cuts that have not ended, by number.
  std::map<std::uint64_t, Links> cuts_;
  std::uint64_t next_ = 1;
};

}  // namespace leasehold::sim
