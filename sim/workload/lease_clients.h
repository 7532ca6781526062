// Clients that hold leases.
#pragma once

#include <leasehold/sim/judge/oracles.h>
#include <leasehold/sim/world/store_nodes.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::sim {

/// Each client has a clock that is as wrong as it may be, wants one of a few names, and holds it
/// from the moment at which it gets the answer until its own clock says that the time to live has
/// passed since it *sent* the request, less the bound of the drift. It renews at the leader, writes
/// with its token, goes away now and then without notice, and wakes up to write with an old token.
class LeaseClients {
 public:
  LeaseClients(World& world, StoreNodes& nodes, Oracles& oracles);
  void start();
  /// The oracles count `granted`, `expired` and `fenced`.
  const LeaseCounts& counts() const { return counts_; }

 private:
  using Reply = StoreNodes::Reply;

  struct Client : StoreNodes::Caller {
    std::int64_t rate_ppm = 0;
    std::string name;
    grant::LeaseId lease;  ///< 0: holds none, as far as it knows
    grant::FencingToken token;
    grant::LeaseTerms terms;
    TrueInstant until = TrueInstant();
    std::uint64_t values = 0;
  };

  grant::LeaseTerms draw_terms(Random& random) const;
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

  void send(std::size_t client, const kv::Command& command, Reply told);
  void arrive(StoreNodes::Place& place, const kv::Command& command, const Reply& told);
  bool renew_here(StoreNodes::Place& place, const kv::RenewLeases& renew, const Reply& told);

  World& world_;
  StoreNodes& nodes_;
  Oracles& oracles_;
  std::vector<Client> clients_;
  LeaseCounts counts_;
};

}  // namespace leasehold::sim
