// Clients that use keys with a time to live as locks, as the libraries for Redis do.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/sim/judge/oracles.h>
#include <leasehold/sim/world/store_nodes.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::sim {

/// Each client has a clock that is as wrong as it may be and wants one of a few keys. It acquires
/// one by `SET key value NX PX`, with a value that no other client has and that it never uses
/// again; gives it another time, or more time than what is left, on the condition that the value is
/// its own; and deletes it on the same condition. It sleeps for longer than the time to live now
/// and then, wakes up and tries to extend what it may have lost, or goes away without notice.
///
/// What it believes:
/// - From `SET` and from another time: that it holds the key until that time has passed since it
///   *sent* the request, on its own clock, less the bound of the drift and the margin.
/// - From more time: that it holds the key for that much longer, less the bound of the drift.
/// - A request for another time whose answer is lost may be executed at any later time, and counts
///   from there. So it makes the belief shorter at once, and no later addition brings it beyond
///   what would be left then.
class KeyLockClients {
 public:
  KeyLockClients(World& world, StoreNodes& nodes, Oracles& oracles);
  void start();
  const KeyLockCounts& counts() const { return counts_; }

 private:
  using Reply = StoreNodes::Reply;

  struct Client : StoreNodes::Caller {
    std::int64_t rate_ppm = 0;
    std::string key;
    std::string value;  ///< empty: holds none, as far as it knows
    TrueInstant until = TrueInstant();
    bool in_doubt = false;  ///< a request for another time may yet be executed
    std::uint64_t values = 0;
  };

  void turn_later(std::size_t client, Duration pause);
  void turn(std::size_t client);
  void acquire(std::size_t client);
  void on_acquired(std::size_t client, TrueInstant sent, const std::string& value,
                   const std::optional<kv::Reply>& reply);
  void extend(std::size_t client);
  void add(std::size_t client);
  void ask_for_more(std::size_t client,
                    std::function<void(Duration, const std::optional<kv::Reply>&)> told);
  bool still_has_it(std::size_t client, const std::optional<kv::Reply>& reply);
  void release(std::size_t client);
  void leave(std::size_t client);
  void think(std::size_t client);

  /// How long a holder may rely on that much of a key's time, by any clock that is allowed.
  Duration usable(Duration time) const;
  /// How long the client's clock takes to show that much.
  static Duration on_clock(const Client& client, Duration shown);
  /// Until when it may rely on a time to live that it asked for at `sent`.
  TrueInstant whole_time(const Client& client, TrueInstant sent) const;
  void believe(std::size_t client, TrueInstant until);

  void send(std::size_t client, const kv::Command& command, Reply told);
  void arrive(Client& client, StoreNodes::Place& place, const kv::Command& command,
              const Reply& told);

  World& world_;
  StoreNodes& nodes_;
  Oracles& oracles_;
  std::vector<Client> clients_;
  KeyLockCounts counts_;
};

}  // namespace leasehold::sim
