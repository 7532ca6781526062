// The nodes as clients of the store see them: the way to a node and back, and the end of leases.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/lease_keeper.h>
#include <leasehold/kv/reply.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace leasehold::sim {

/// Clients ask a node for a command of the store, on a link that is slow now and then and loses
/// what comes to a dead process. Each process has a kv::LeaseKeeper, as the program has, which
/// names the leases whose time is over while its node leads.
///
/// All clients of one simulation share one: a process has one keeper.
class StoreNodes {
 public:
  /// Called once.
  using Reply = std::function<void(std::optional<kv::Reply>)>;

  /// What a client needs to ask. It outlives the simulation.
  struct Caller {
    Random random{0};
    std::uint64_t node = 0;      ///< that it asks, its place among the nodes
    std::uint64_t attempts = 0;  ///< the newest one is answered, others come too late
  };
  /// One machine and the keeper of its process.
  struct Place {
    SimNode* node = nullptr;
    std::uint64_t life = 0;  ///< of the process whose keeper it is
    std::unique_ptr<kv::LeaseKeeper> keeper;
    std::shared_ptr<std::size_t> under_way;  ///< expiries that it proposed
  };
  /// At the node, in its process, which is alive. The command is valid during the call.
  using Arrive = std::function<void(Place&, const kv::Command&, const Reply&)>;

  StoreNodes(World& world, const std::vector<SimNode*>& nodes);
  /// From now on, what is over is ended. Further calls do nothing.
  void start();

  std::uint64_t size() const { return places_.size(); }
  /// Calls `told` with the reply, or with none after the caller's patience; then the caller turns
  /// to another node. Does not call it if the caller has asked for something else since.
  void send(Caller& caller, const kv::Command& command, Arrive arrive, Reply told);
  /// Lets the group execute it. `told`: none, if it is not known to be committed.
  void propose(SimNode& node, const kv::Command& command, const Reply& told);
  /// Of the process that runs at the place.
  kv::LeaseKeeper& keeper_of(Place& place);

 private:
  void propose(SimNode& node, const kv::Command& command, Duration patience, const Reply& told);
  void look_later(Place& place);
  void look(Place& place);

  World& world_;
  std::vector<Place> places_;
  bool started_ = false;
};

}  // namespace leasehold::sim
