// What must hold of the keys that clients use as locks, seen from outside all nodes.
#pragma once

#include <leasehold/raft/types.h>
#include <leasehold/sim/world/lease_cells.h>
#include <leasehold/sim/world/world.h>

#include <cstdint>
#include <map>
#include <string>

namespace leasehold::sim {

/// Judges, by the names that a violation carries:
///   two_holders           two clients each believe, in true time, that they hold one key
///   lease_expired_early   a key is gone, or has another's value, while a client believes that it
///                         holds it; or that client is answered that it has lost it
///
/// A key is held by its value, which no other client and no other attempt has. So whatever ends a
/// lock early is found: an expiry, an extension that shortens the time, or a deletion by another.
class KeyLockOracle {
 public:
  /// `newest`: what the committed commands make, up to the newest. It outlives this.
  KeyLockOracle(World& world, const LeaseCells& newest) : world_(world), newest_(newest) {}

  /// The client believes from now until `until`, and no longer, that it holds the key. Each client
  /// holds one at most.
  void holds(std::uint64_t client, const std::string& key, const std::string& value,
             TrueInstant until);
  /// It gives the key up.
  void lets_go(std::uint64_t client) { holders_.erase(client); }
  /// An answer said that the key no longer has its value.
  void lost(std::uint64_t client);

  /// A command of the store was executed, in the order of the log.
  void after(raft::LogId id);

 private:
  struct Holder {
    std::string key;
    std::string value;
    TrueInstant until = TrueInstant();
  };
  bool stands(const Holder& holder) const;
  bool believes(const Holder& holder) const { return holder.until > world_.queue.now(); }

  World& world_;
  const LeaseCells& newest_;
  std::map<std::uint64_t, Holder> holders_;
};

}  // namespace leasehold::sim
