// Readers see a change before any node can act upon it.
#pragma once

#include <leasehold/raft/entry.h>
#include <leasehold/raft/message.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <vector>

namespace leasehold::sim {

/// Judges, by the name that a violation carries:
///   lease_view_order        a message, or entries to apply, overtook the lease view that readers
///                           see
class ViewOrderOracle {
 public:
  explicit ViewOrderOracle(World& world) : world_(world) {}

  void on_send(const SimNode& node, raft::NodeId to, const raft::Message& message);
  void on_apply_asked(const SimNode& node, const std::vector<raft::Entry>& entries);

 private:
  World& world_;
};

}  // namespace leasehold::sim
