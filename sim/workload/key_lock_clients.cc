#include <leasehold/base/assert.h>
#include <leasehold/base/scaled.h>
#include <leasehold/sim/workload/key_lock_clients.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

std::int64_t number(const kv::Reply& reply) {
  const auto* integer = std::get_if<kv::Integer>(&reply);
  LEASEHOLD_ASSERT(integer != nullptr);
  return integer->value;
}

}  // namespace

KeyLockClients::KeyLockClients(World& world, StoreNodes& nodes, Oracles& oracles)
    : world_(world), nodes_(nodes), oracles_(oracles) {
  const std::int64_t drift_ppm = world_.plan.drift_ppm_max;
  clients_.resize(static_cast<std::size_t>(world_.plan.key_locks.clients));
  counts_.clients = clients_.size();
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    Client& client = clients_[i];
    client.random = random_for(world_.plan.seed, 970'000 + i);
    // Half of them have the slowest clock allowed: they hold for as long as any client may.
    client.rate_ppm =
        client.random.chance(1, 2) ? -drift_ppm : client.random.between(-drift_ppm, drift_ppm + 1);
    client.node = client.random.below(nodes_.size());
  }
}

void KeyLockClients::start() {
  if (clients_.empty()) return;
  for (std::size_t client = 0; client < clients_.size(); ++client) {
    turn_later(client, draw_duration(clients_[client].random, Duration{0}, milliseconds(500)));
  }
  nodes_.start();
}

// ---- What a client does ----

void KeyLockClients::turn_later(std::size_t client, Duration pause) {
  world_.queue.after(pause, [this, client] { turn(client); });
}

void KeyLockClients::think(std::size_t client) {
  turn_later(client, draw_duration(clients_[client].random, milliseconds(1),
                                   world_.plan.key_locks.ttl / 3));
}

void KeyLockClients::turn(std::size_t client) {
  if (world_.healed) return;
  const Duration quiet = world_.all_quiet_left();
  if (quiet > Duration{0}) return turn_later(client, quiet);
  Client& of = clients_[client];
  if (of.value.empty()) return acquire(client);
  const std::uint64_t drawn = of.random.below(100);
  const Duration ttl = world_.plan.key_locks.ttl;
  const TrueInstant now = world_.queue.now();
  if (now >= of.until) {
    // It has lost the key, as far as it can know. Some look at no clock, and some may yet be in
    // time.
    if (drawn < 35) return extend(client);
    if (drawn < 60) return add(client);
    if (drawn < 85) return release(client);
    return leave(client);
  }
  if (drawn < 5) return turn_later(client, draw_duration(of.random, ttl, 3 * ttl));
  // Until shortly before or behind the end of what it believes.
  if (drawn < 20) {
    return turn_later(client, draw_duration(of.random, (of.until - now) * 4 / 5,
                                            (of.until - now) * 11 / 10 + milliseconds(1)));
  }
  if (drawn < 28) return release(client);
  if (drawn < 32) return leave(client);
  if (drawn < 62 || of.until - now > 4 * ttl) return extend(client);
  add(client);
}

void KeyLockClients::acquire(std::size_t client) {
  Client& of = clients_[client];
  of.key = fmt::format("lock {}", of.random.below(world_.plan.key_locks.keys));
  const std::string value = fmt::format("{} {}", client, ++of.values);
  kv::Set set{of.key, value};
  set.condition = kv::SetCondition::nx;
  set.ttl = world_.plan.key_locks.ttl;
  const TrueInstant sent = world_.queue.now();
  send(client, set, [this, client, sent, value](const std::optional<kv::Reply>& reply) {
    on_acquired(client, sent, value, reply);
  });
}

void KeyLockClients::on_acquired(std::size_t client, TrueInstant sent, const std::string& value,
                                 const std::optional<kv::Reply>& reply) {
  Client& of = clients_[client];
  const bool acquired = reply && std::holds_alternative<kv::Ok>(*reply);
  LEASEHOLD_ASSERT(!reply || acquired || std::holds_alternative<kv::Nil>(*reply));
  if (reply && !acquired) ++counts_.refused;
  if (acquired || (!reply && of.random.chance(3, 4))) of.value = value;
  if (acquired) {
    ++counts_.acquired;
    of.in_doubt = false;
    believe(client, whole_time(of, sent));
  } else if (!of.value.empty()) {
    // It is unknown whether it has the key: as the libraries do, it deletes it to be sure.
    return release(client);
  }
  if (acquired) return think(client);
  const Duration ttl = world_.plan.key_locks.ttl;
  turn_later(client, draw_duration(of.random, milliseconds(5), ttl / 2));
}

/// Another time to live, from now on.
void KeyLockClients::extend(std::size_t client) {
  Client& of = clients_[client];
  // Two threads of one holder: a node that looks for this one's sake may do so before the time is
  // another, and its command be executed behind that. Whatever comes of it makes no time shorter.
  if (of.random.chance(1, 4)) {
    ask_for_more(client, [](Duration, const std::optional<kv::Reply>&) {});
  }
  const TrueInstant sent = world_.queue.now();
  believe(client, std::min(of.until, whole_time(of, sent)));
  const bool was_in_doubt = std::exchange(of.in_doubt, true);
  kv::ExpireKey expire{of.key, kv::TimeChange::set, world_.plan.key_locks.ttl};
  expire.value = of.value;
  send(client, expire, [this, client, sent, was_in_doubt](const std::optional<kv::Reply>& reply) {
    Client& extended = clients_[client];
    if (reply) extended.in_doubt = was_in_doubt;
    if (still_has_it(client, reply)) {
      ++counts_.extended;
      believe(client, whole_time(extended, sent));
    }
    think(client);
  });
}

void KeyLockClients::add(std::size_t client) {
  const TrueInstant sent = world_.queue.now();
  ask_for_more(client, [this, client, sent](Duration more, const std::optional<kv::Reply>& reply) {
    Client& added = clients_[client];
    if (still_has_it(client, reply)) {
      ++counts_.added;
      // When it asked, something was left, whatever it believed.
      const TrueInstant left_until =
          std::max(added.until, sent + on_clock(added, -world_.plan.key_locks.margin));
      const TrueInstant until = left_until + on_clock(added, usable(more));
      believe(client, added.in_doubt ? std::min(until, whole_time(added, sent)) : until);
    }
    think(client);
  });
}

/// That much more than what is left. `told` gets what is left, too.
void KeyLockClients::ask_for_more(
    std::size_t client, std::function<void(Duration, const std::optional<kv::Reply>&)> told) {
  Client& of = clients_[client];
  const Duration ttl = world_.plan.key_locks.ttl;
  const Duration more = draw_duration(of.random, ttl / 8, ttl);
  // Another node may not know the last command yet.
  if (of.random.chance(1, 3)) of.node = of.random.below(nodes_.size());
  kv::ExpireKey expire{of.key, kv::TimeChange::add, more};
  expire.value = of.value;
  send(client, expire, [more, told = std::move(told)](const std::optional<kv::Reply>& reply) {
    told(more, reply);
  });
}

/// Of the answer to an extension; without one it is not known, and nothing is changed.
bool KeyLockClients::still_has_it(std::size_t client, const std::optional<kv::Reply>& reply) {
  if (!reply) return false;
  if (number(*reply) == 1) return true;
  ++counts_.lost;
  oracles_.key_locks().lost(client);
  clients_[client].value.clear();
  return false;
}

void KeyLockClients::release(std::size_t client) {
  Client& of = clients_[client];
  const std::string value = std::exchange(of.value, "");
  // From now on it acts no more.
  oracles_.key_locks().lets_go(client);
  send(client, kv::DelEqual{value, {of.key}},
       [this, client](const std::optional<kv::Reply>& reply) {
         if (reply && number(*reply) == 1) ++counts_.released;
         think(client);
       });
}

void KeyLockClients::leave(std::size_t client) {
  oracles_.key_locks().lets_go(client);
  clients_[client].value.clear();
  think(client);
}

// ---- What it believes ----

Duration KeyLockClients::usable(Duration time) const {
  const std::int64_t drift_ppm = world_.plan.drift_ppm_max;
  return time * (kMillion - drift_ppm) / (kMillion + drift_ppm);
}

Duration KeyLockClients::on_clock(const Client& client, Duration shown) {
  return shown * kMillion / (kMillion + client.rate_ppm);
}

TrueInstant KeyLockClients::whole_time(const Client& client, TrueInstant sent) const {
  const KeyLockPlan& plan = world_.plan.key_locks;
  return sent + on_clock(client, usable(plan.ttl) - plan.margin);
}

void KeyLockClients::believe(std::size_t client, TrueInstant until) {
  Client& of = clients_[client];
  of.until = until;
  oracles_.key_locks().holds(client, of.key, of.value, until);
}

// ---- The way to a node, and what the node puts in ----

void KeyLockClients::send(std::size_t client, const kv::Command& command, Reply told) {
  Client& of = clients_[client];
  nodes_.send(
      of, command,
      [this, &of](StoreNodes::Place& place, const kv::Command& arrived, const Reply& answered) {
        arrive(of, place, arrived, answered);
      },
      std::move(told));
}

void KeyLockClients::arrive(Client& client, StoreNodes::Place& place, const kv::Command& command,
                            const Reply& told) {
  const auto* expire = std::get_if<kv::ExpireKey>(&command);
  if (expire == nullptr || !expire->looks_at_time()) {
    return nodes_.propose(*place.node, command, told);
  }
  kv::ExpireKey seeing = *expire;
  const LeaseCells& cells = place.node->machine().present().leases;
  const auto at = cells.cells.find(seeing.key);
  if (at != cells.cells.end() && at->second.lease != grant::LeaseId(0)) {
    seeing.seen = nodes_.keeper_of(place).seen(at->second.lease);
  }
  if (!client.random.chance(1, 6)) return nodes_.propose(*place.node, seeing, told);
  // The thread pauses between its look and the proposal.
  const Duration pause = draw_duration(client.random, Duration{0}, world_.plan.key_locks.ttl);
  const Bytes bytes = kv::encode_command(seeing).value();
  world_.queue.after(pause, [this, &place, life = place.node->life(), bytes, told] {
    place.node->run_in_process(life, [this, &place, bytes, told] {
      nodes_.propose(*place.node, kv::decode_command(bytes.view()).value(), told);
    });
  });
}

}  // namespace leasehold::sim
