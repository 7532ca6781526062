// What must hold of the leases that clients hold, seen from outside all nodes.
#pragma once

#include <leasehold/grant/lease_table.h>
#include <leasehold/raft/types.h>
#include <leasehold/sim/world/lease_cells.h>
#include <leasehold/sim/world/options.h>
#include <leasehold/sim/world/world.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::sim {

/// Judges, by the names that a violation carries:
///   two_holders           two clients each believe, in true time, that they hold one name
///   lease_expired_early   a lease is ended as expired while its holder believes that it holds it;
///                         or a key, before its time is over by the fastest clock allowed
///   lease_grace           a lease is ended as expired in its grace period, and no client for which
///                         a soft limit would allow that has asked for its name
///   lock_delay            a name is granted before the lock delay of its last lease is over
///   lease_token           a grant has a token that is not above that of every earlier grant
///   lease_keys            a key is attached to a lease that does not exist, or a lease has a key
///                         that is not attached to it, or the lease of a key has not one key
///   fence                 a write with a token has taken effect behind one with a larger token
class LeaseOracles {
 public:
  explicit LeaseOracles(World& world) : world_(world) {}

  struct Holder {
    std::uint64_t client = 0;
    std::string name;
    grant::LeaseTerms terms{};
    TrueInstant sent = TrueInstant();  ///< the request that was answered last
    TrueInstant until = TrueInstant();
  };
  /// The client believes from now until `until` that it holds the lease.
  void holds(const Holder& holder, grant::LeaseId id);
  /// It gives the lease up.
  void lets_go(grant::LeaseId id) { holders_.erase(id); }

  /// Around the execution of a committed command, in the order of the log.
  void before(std::string_view command, const LeaseCells& cells);
  void after(raft::LogId id, std::string_view command, const Bytes& reply, const LeaseCells& cells);

  const LeaseCounts& counts() const { return counts_; }

 private:
  void on_expired(raft::LogId id, const grant::LeaseTable::Lease& gone, const LeaseCells& cells);
  void check_grace(raft::LogId id, const grant::LeaseTable::Lease& gone, const Holder& holder);
  void check_delay(raft::LogId id, const grant::LeaseTable::Lease& granted);
  /// From now on, by the fastest clock allowed.
  TrueInstant soonest(TrueInstant from, Duration time) const;
  void check_keys(const LeaseCells& cells, const std::string& where);

  World& world_;
  std::map<grant::LeaseId, Holder> holders_;
  std::set<grant::LeaseId> expired_;
  /// When the lease of a key may end at the earliest.
  std::map<grant::LeaseId, TrueInstant> keys_live_until_;
  grant::FencingToken newest_;
  /// The largest token that has written a key.
  std::map<std::string, grant::FencingToken, std::less<>> fences_;
  /// The leases that the expiry about to be executed will end.
  std::vector<grant::LeaseTable::Lease> candidates_;
  /// When the name of a lease was last refused to a client.
  std::map<grant::LeaseId, TrueInstant> refused_;
  /// Until when no client may have the name of an expired lease.
  struct Delay {
    std::string name;
    TrueInstant until = TrueInstant();
  };
  std::map<grant::LeaseId, Delay> delays_;
  LeaseCounts counts_;
};

}  // namespace leasehold::sim
