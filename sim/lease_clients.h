// Clients that hold leases, and who ends those whose time is over.
#pragma once

#include <leasehold/kv/lease_keeper.h>
#include <leasehold/sim/oracles.h>
#include <leasehold/sim/sim_node.h>
#include <leasehold/sim/world.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::sim {

/// Each client has a clock that is as wrong as it may be, wants one of a few names, and holds it
/// from the moment at which it is told so until its own clock says that the time to live has passed
/// since it *sent* the request, less the bound of the drift. It renews at the leader, writes with
/// its token, goes away now and then without a word, and wakes up to write with a token that is
/// old.
///
/// Each process has a kv::LeaseKeeper, as the program has.
class LeaseClients {
 public:
  LeaseClients(World& world, std::vector<SimNode*> nodes, Oracles& oracles);
  void start();
  /// `granted`, `expired` and `fenced` are the oracles' to count.
  const LeaseCounts& counts() const { return counts_; }

 private:
  using Reply = std::function<void(std::optional<kv::Reply>)>;

  struct Client {
    Random random{0};
    std::int64_t rate_ppm = 0;
    std::string name;
    lease::LeaseId lease;  ///< 0: holds none, as far as it knows
    lease::FencingToken token;
    TrueInstant until = TrueInstant();
    std::uint64_t attempts = 0;  ///< the newest one is answered, others come too late
    std::uint64_t node = 0;      ///< that it asks, its place in nodes_
    std::uint64_t values = 0;
  };
  /// Of one process.
  struct Keeper {
    SimNode* node = nullptr;
    std::uint64_t life = 0;
    std::unique_ptr<kv::LeaseKeeper> keeper;
    std::shared_ptr<std::size_t> under_way;
  };

  void turn_later(std::size_t client, Duration pause);
  void turn(std::size_t client);
  void acquire(std::size_t client);
  void renew(std::size_t client);
  void write(std::size_t client);
  void revoke(std::size_t client);
  void leave(std::size_t client);
  void on_granted(std::size_t client, TrueInstant sent, const std::optional<kv::Reply>& reply);
  void on_renewed(std::size_t client, TrueInstant sent, const std::optional<kv::Reply>& reply);
  void believe(std::size_t client, TrueInstant sent);
  std::string key_of(const Client& client) const { return "key of " + client.name; }

  /// Told once: of the reply, or of none within the client's patience.
  void send(std::size_t client, kv::Command command, Reply told);
  void arrive(Keeper& keeper, const kv::Command& command, const Reply& told);
  bool renew_here(Keeper& keeper, const kv::RenewLeases& renew, const Reply& told);
  void propose(SimNode& node, const kv::Command& command, Duration patience, const Reply& told);

  void look_later(Keeper& keeper);
  void look(Keeper& keeper);
  kv::LeaseKeeper& keeper_of(Keeper& keeper);

  World& world_;
  Oracles& oracles_;
  std::vector<Keeper> keepers_;
  std::vector<Client> clients_;
  LeaseCounts counts_;
};

}  // namespace leasehold::sim
