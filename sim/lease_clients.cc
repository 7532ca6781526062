#include <leasehold/base/assert.h>
#include <leasehold/sim/lease_clients.h>

#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::int64_t kMillion = 1'000'000;
constexpr Duration kPatience = milliseconds(800);
/// Leases that are named as due at once.
constexpr std::size_t kDueMax = 2;

}  // namespace

LeaseClients::LeaseClients(World& world, std::vector<SimNode*> nodes, Oracles& oracles)
    : world_(world), oracles_(oracles) {
  for (SimNode* node : nodes) keepers_.push_back({node, 0, nullptr, nullptr});
  const LeasePlan& plan = world_.plan.leases;
  clients_.resize(static_cast<std::size_t>(plan.clients));
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    Client& client = clients_[i];
    client.random = random_for(world_.plan.seed, 900'000 + i);
    // Half of them have the slowest clock that may be: they hold for as long as anybody may.
    client.rate_ppm = client.random.chance(1, 2)
                          ? -plan.drift_ppm
                          : client.random.between(-plan.drift_ppm, plan.drift_ppm + 1);
    client.node = client.random.below(keepers_.size());
  }
}

void LeaseClients::start() {
  if (clients_.empty()) return;
  for (std::size_t client = 0; client < clients_.size(); ++client) {
    turn_later(client, draw_duration(clients_[client].random, Duration{0}, milliseconds(500)));
  }
  for (Keeper& keeper : keepers_) look_later(keeper);
}

// ---- What a client does ----

void LeaseClients::turn_later(std::size_t client, Duration pause) {
  world_.queue.after(pause, [this, client] { turn(client); });
}

void LeaseClients::turn(std::size_t client) {
  if (world_.healed) return;
  Client& of = clients_[client];
  if (of.lease == lease::LeaseId(0)) return acquire(client);
  const std::uint64_t drawn = of.random.below(100);
  const Duration ttl = world_.plan.leases.ttl;
  if (world_.queue.now() >= of.until) {
    // It has lost the lease, as far as it can know. Some write before they look at the clock, and
    // some may yet be in time at the leader.
    if (drawn < 30) return write(client);
    if (drawn < 70) return renew(client);
    return leave(client);
  }
  // A pause that is longer than the lease, or just about as long.
  if (drawn < 4) return turn_later(client, draw_duration(of.random, ttl, 3 * ttl));
  if (drawn < 14) return turn_later(client, draw_duration(of.random, ttl * 4 / 5, ttl * 13 / 10));
  if (drawn < 20) return revoke(client);
  if (drawn < 40) return write(client);
  renew(client);
}

void LeaseClients::acquire(std::size_t client) {
  Client& of = clients_[client];
  const LeasePlan& plan = world_.plan.leases;
  of.name = "name " + std::to_string(of.random.below(plan.names));
  kv::GrantLease grant;
  grant.name = of.name;
  grant.ttl = plan.ttl;
  const TrueInstant sent = world_.queue.now();
  send(client, grant, [this, client, sent](const std::optional<kv::Reply>& reply) {
    on_granted(client, sent, reply);
  });
}

void LeaseClients::on_granted(std::size_t client, TrueInstant sent,
                              const std::optional<kv::Reply>& reply) {
  Client& of = clients_[client];
  const auto* array = reply ? std::get_if<kv::ArrayReply>(&*reply) : nullptr;
  if (array != nullptr) {
    const auto number = [array](std::size_t which) {
      const auto item = kv::decode_reply(array->items.at(which));
      return static_cast<std::uint64_t>(std::get<kv::Integer>(item.value()).value);
    };
    of.lease = lease::LeaseId(number(0));
    of.token = lease::FencingToken(number(1));
    of.until = TrueInstant();
    believe(client, sent);
  }
  turn_later(client, draw_duration(of.random, milliseconds(5), world_.plan.leases.ttl / 2));
}

/// From when the request was sent, on a clock that may be slow while the leader's is fast.
void LeaseClients::believe(std::size_t client, TrueInstant sent) {
  Client& of = clients_[client];
  const LeasePlan& plan = world_.plan.leases;
  const Duration usable =
      plan.ttl / (kMillion + plan.drift_ppm) * (kMillion - plan.drift_ppm) - plan.margin;
  const TrueInstant until = sent + usable / (kMillion + of.rate_ppm) * kMillion;
  of.until = std::max(of.until, until);
  oracles_.leases().holds(client, of.name, of.lease, of.until);
}

void LeaseClients::renew(std::size_t client) {
  const TrueInstant sent = world_.queue.now();
  send(client, kv::RenewLeases{{clients_[client].lease}},
       [this, client, sent](const std::optional<kv::Reply>& reply) {
         on_renewed(client, sent, reply);
       });
}

void LeaseClients::on_renewed(std::size_t client, TrueInstant sent,
                              const std::optional<kv::Reply>& reply) {
  Client& of = clients_[client];
  const auto* array = reply ? std::get_if<kv::ArrayReply>(&*reply) : nullptr;
  if (array != nullptr) {
    const auto item = kv::decode_reply(array->items.at(0));
    if (std::holds_alternative<kv::Nil>(item.value())) return leave(client);
    ++counts_.renewed;
    believe(client, sent);
  }
  turn_later(client, draw_duration(of.random, milliseconds(5), world_.plan.leases.ttl / 3));
}

void LeaseClients::write(std::size_t client) {
  Client& of = clients_[client];
  const std::string key = key_of(of);
  const std::string value = std::to_string(client) + " " + std::to_string(++of.values);
  kv::Set set{key, value};
  set.token = of.token;
  if (of.random.chance(2, 3)) {
    set.lease = of.lease;
  } else {
    set.ttl = world_.plan.leases.ttl;
  }
  send(client, set, [this, client](const std::optional<kv::Reply>&) {
    turn_later(client, draw_duration(clients_[client].random, milliseconds(5), milliseconds(200)));
  });
}

void LeaseClients::revoke(std::size_t client) {
  Client& of = clients_[client];
  const lease::LeaseId lease = of.lease;
  // From now on it acts no more.
  leave(client);
  send(client, kv::RevokeLease{lease}, [](const std::optional<kv::Reply>&) {});
}

void LeaseClients::leave(std::size_t client) {
  Client& of = clients_[client];
  oracles_.leases().lets_go(of.lease);
  of.lease = lease::LeaseId(0);
  turn_later(client, draw_duration(of.random, milliseconds(5), world_.plan.leases.ttl));
}

// ---- The way to a node and back ----

void LeaseClients::send(std::size_t client, kv::Command command, Reply told) {
  Client& of = clients_[client];
  const std::uint64_t attempt = ++of.attempts;
  // The first of: the reply, the end of the patience.
  const auto once = [this, client, attempt,
                     told = std::move(told)](std::optional<kv::Reply> reply) {
    Client& asked = clients_[client];
    if (asked.attempts != attempt) return;
    ++asked.attempts;
    if (!reply) asked.node = asked.random.below(keepers_.size());
    told(std::move(reply));
  };
  const bool slow = of.random.chance(1, 10);
  const Duration way = draw_duration(of.random, microseconds(50),
                                     slow ? Duration(milliseconds(300)) : milliseconds(3));
  const Duration back = draw_duration(of.random, microseconds(50),
                                      slow ? Duration(milliseconds(300)) : milliseconds(3));
  Keeper& keeper = keepers_[static_cast<std::size_t>(of.node)];
  // Its strings are of somebody who goes on: what travels is bytes.
  const Bytes bytes = kv::encode_command(command).value();
  world_.queue.after(way, [this, &keeper, bytes, back, once] {
    if (!keeper.node->up()) return;
    keeper.node->run_in_process(keeper.node->life(), [this, &keeper, bytes, back, once] {
      arrive(keeper, kv::decode_command(bytes.view()).value(),
             [this, back, once](std::optional<kv::Reply> reply) {
               world_.queue.after(back, [once, reply] { once(reply); });
             });
    });
  });
  world_.queue.after(kPatience, [once] { once(std::nullopt); });
}

void LeaseClients::arrive(Keeper& keeper, const kv::Command& command, const Reply& told) {
  const auto* renew = std::get_if<kv::RenewLeases>(&command);
  if (renew != nullptr && !renew_here(keeper, *renew, told)) return;
  propose(*keeper.node, command, kPatience, told);
}

/// As a lease read is served. True: it has to go through the log.
bool LeaseClients::renew_here(Keeper& keeper, const kv::RenewLeases& renew, const Reply& told) {
  const SimNode& node = *keeper.node;
  const node::LeaseLook look = node.view().look(node.clock());
  const auto index = look.readable_index();
  // A follower forwards a command; one in so many leaders does as if it had no lease.
  if (!index || clients_[0].random.chance(1, 12)) return true;
  if (node.view().applied() < *index) {
    told(std::nullopt);
    return false;
  }
  const auto renewed = keeper_of(keeper).renew(renew.ids, look.state.term);
  LEASEHOLD_ASSERT(renewed.ok());
  if (!renewed.value()) {
    ++counts_.too_late;
    return true;
  }
  ++counts_.without_log;
  kv::ArrayReply array;
  for (const auto& ttl : renewed.value()->ttl) {
    kv::Reply item = kv::Nil{};
    if (ttl) item = kv::Integer{*ttl / milliseconds(1)};
    array.items.push_back(kv::encode_reply(item));
  }
  told(kv::Reply(std::move(array)));
  return false;
}

void LeaseClients::propose(SimNode& node, const kv::Command& command, Duration patience,
                           const Reply& told) {
  RegisterMachine::Command wrapped;
  wrapped.kind = RegisterMachine::Kind::leases;
  wrapped.of_store = std::string(kv::encode_command(command).value().view());
  node::Propose propose;
  propose.command = RegisterMachine::encode(wrapped);
  propose.deadline = node.clock().now().promise + patience;
  propose.done = [told](const node::ProposeResult& result) {
    if (result.status != node::ProposeStatus::committed) return told(std::nullopt);
    auto reply = kv::decode_reply(result.result);
    LEASEHOLD_ASSERT(reply.ok());
    told(std::move(reply).value());
  };
  node.post(std::move(propose));
}

// ---- Who ends what is over ----

kv::LeaseKeeper& LeaseClients::keeper_of(Keeper& keeper) {
  if (keeper.life != keeper.node->life()) {
    keeper.life = keeper.node->life();
    const SimNode* node = keeper.node;
    keeper.keeper = std::make_unique<kv::LeaseKeeper>(
        node->clock(), [node](std::uint64_t) -> Result<kv::LeaseChanges> {
          return node->machine().present().leases.changes();
        });
    keeper.under_way = std::make_shared<std::size_t>(0);
  }
  return *keeper.keeper;
}

void LeaseClients::look_later(Keeper& keeper) {
  world_.queue.after(milliseconds(100), [this, &keeper] {
    keeper.node->run_in_process(keeper.node->life(), [this, &keeper] { look(keeper); });
    look_later(keeper);
  });
}

void LeaseClients::look(Keeper& keeper) {
  const SimNode& node = *keeper.node;
  const node::LeaseLook look = node.view().look(node.clock());
  std::optional<raft::Term> leads_in;
  if (look.readable_index()) leads_in = look.state.term;
  auto due = keeper_of(keeper).look(leads_in, kDueMax);
  LEASEHOLD_ASSERT(due.ok());
  if (due.value().empty() || *keeper.under_way > 0) return;
  ++*keeper.under_way;
  propose(*keeper.node, kv::ExpireLeases{*leads_in, std::move(due).value()}, milliseconds(400),
          [under_way = keeper.under_way](const std::optional<kv::Reply>&) { --*under_way; });
}

}  // namespace leasehold::sim
