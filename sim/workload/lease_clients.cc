#include <leasehold/base/assert.h>
#include <leasehold/base/scaled.h>
#include <leasehold/sim/workload/lease_clients.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

}  // namespace

LeaseClients::LeaseClients(World& world, StoreNodes& nodes, Oracles& oracles)
    : world_(world), nodes_(nodes), oracles_(oracles) {
  const LeasePlan& plan = world_.plan.leases;
  clients_.resize(static_cast<std::size_t>(plan.clients));
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    Client& client = clients_[i];
    client.random = random_for(world_.plan.seed, 900'000 + i);
    // Half of them have the slowest clock allowed: they hold for as long as any client may.
    client.rate_ppm = client.random.chance(1, 2)
                          ? -plan.drift_ppm
                          : client.random.between(-plan.drift_ppm, plan.drift_ppm + 1);
    client.node = client.random.below(nodes_.size());
  }
}

void LeaseClients::start() {
  if (clients_.empty()) return;
  for (std::size_t client = 0; client < clients_.size(); ++client) {
    turn_later(client, draw_duration(clients_[client].random, Duration{0}, milliseconds(500)));
  }
  nodes_.start();
}

// ---- What a client does ----

void LeaseClients::turn_later(std::size_t client, Duration pause) {
  world_.queue.after(pause, [this, client] { turn(client); });
}

void LeaseClients::turn(std::size_t client) {
  if (world_.healed) return;
  const Duration quiet = world_.all_quiet_left();
  if (quiet > Duration{0}) return turn_later(client, quiet);
  Client& of = clients_[client];
  if (of.lease == grant::LeaseId(0)) return acquire(client);
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
  of.name = fmt::format("name {}", of.random.below(plan.names));
  kv::GrantLease grant;
  grant.name = of.name;
  grant.ttl = plan.ttl;
  of.terms = draw_terms(of.random);
  grant.terms = of.terms;
  const TrueInstant sent = world_.queue.now();
  send(client, grant, [this, client, sent](const std::optional<kv::Reply>& reply) {
    on_granted(client, sent, reply);
  });
}

grant::LeaseTerms LeaseClients::draw_terms(Random& random) const {
  const LeasePlan& plan = world_.plan.leases;
  grant::LeaseTerms terms;
  if (plan.grace_max == Duration(0)) return terms;
  const auto draw = [&random](Duration longest) {
    return grant::LeaseTerms::Milliseconds(1 + random.below(static_cast<std::uint64_t>(std::max(
                                                   longest / milliseconds(1), Duration::rep{1}))));
  };
  const std::uint64_t kind = random.below(6);
  if (kind >= 2) terms.grace = draw(plan.grace_max);
  terms.soft = kind >= 4;
  if (kind == 1 || kind == 2) terms.delay = draw(plan.delay_max);
  return terms;
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
    of.lease = grant::LeaseId(number(0));
    of.token = grant::FencingToken(number(1));
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
  oracles_.leases().holds({client, of.name, of.terms, sent, of.until}, of.lease);
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
    const bool over = world_.queue.now() >= of.until;
    if (over && of.terms.grace > of.terms.grace.zero()) ++counts_.regained;
    believe(client, sent);
  }
  turn_later(client, draw_duration(of.random, milliseconds(5), world_.plan.leases.ttl / 3));
}

void LeaseClients::write(std::size_t client) {
  Client& of = clients_[client];
  const std::string key = key_of(of);
  const std::string value = fmt::format("{} {}", client, ++of.values);
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
  const grant::LeaseId lease = of.lease;
  // From now on it acts no more.
  leave(client);
  send(client, kv::RevokeLease{lease}, [](const std::optional<kv::Reply>&) {});
}

void LeaseClients::leave(std::size_t client) {
  Client& of = clients_[client];
  oracles_.leases().lets_go(of.lease);
  of.lease = grant::LeaseId(0);
  turn_later(client, draw_duration(of.random, milliseconds(5), world_.plan.leases.ttl));
}

// ---- At the node ----

void LeaseClients::send(std::size_t client, const kv::Command& command, Reply told) {
  nodes_.send(
      clients_[client], command,
      [this](StoreNodes::Place& place, const kv::Command& arrived, const Reply& answered) {
        arrive(place, arrived, answered);
      },
      [this, told = std::move(told)](const std::optional<kv::Reply>& reply) {
        if (!reply) ++counts_.unanswered;
        told(reply);
      });
}

void LeaseClients::arrive(StoreNodes::Place& place, const kv::Command& command, const Reply& told) {
  const auto* renew = std::get_if<kv::RenewLeases>(&command);
  if (renew != nullptr && !renew_here(place, *renew, told)) return;
  nodes_.propose(*place.node, command, told);
}

/// Does what a lease read does. True: the command has to go through the log.
bool LeaseClients::renew_here(StoreNodes::Place& place, const kv::RenewLeases& renew,
                              const Reply& told) {
  const SimNode& node = *place.node;
  const replica::LeaseLook look = node.view().look(node.clock());
  const auto index = look.readable_index();
  // A follower forwards a command; now and then a leader acts as if it had no lease.
  if (!index || clients_[0].random.chance(1, 12)) return true;
  if (node.view().applied() < *index) {
    told(std::nullopt);
    return false;
  }
  const auto renewed = nodes_.keeper_of(place).renew(renew.ids, look.state.term);
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

}  // namespace leasehold::sim
