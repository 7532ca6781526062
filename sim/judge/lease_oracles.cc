#include <leasehold/base/assert.h>
#include <leasehold/base/scaled.h>
#include <leasehold/sim/judge/lease_oracles.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace leasehold::sim {
namespace {

bool is_error(const kv::Reply& reply) {
  return std::holds_alternative<kv::ErrorReply>(reply);
}

/// The key to which the command has given a time to live.
std::optional<std::string_view> given_time(const kv::Command& command, const kv::Reply& answer) {
  const auto* set = std::get_if<kv::Set>(&command);
  if (set != nullptr && set->ttl && std::holds_alternative<kv::Ok>(answer)) return set->key;
  const auto* expire = std::get_if<kv::ExpireKey>(&command);
  const auto* done = std::get_if<kv::Integer>(&answer);
  if (expire != nullptr && done != nullptr && done->value == 1) return expire->key;
  return std::nullopt;
}

std::string text(raft::LogId id) {
  return fmt::format("entry {} of term {}", id.index.value(), id.term.value());
}

}  // namespace

void LeaseOracles::holds(const Holder& holder, grant::LeaseId id) {
  const TrueInstant now = world_.queue.now();
  Holder& known = holders_[id];
  if (holder.sent > known.sent) known.sent = holder.sent;
  if (holder.until <= now) return;
  if (expired_.count(id) != 0) {
    world_.fail(
        "lease_expired_early",
        fmt::format("client {} holds lease {}, which was ended before", holder.client, id.value()));
  }
  for (const auto& [other, another] : holders_) {
    if (other == id || another.name != holder.name || another.until <= now) continue;
    world_.fail("two_holders",
                fmt::format("client {} holds {} by lease {}, and so does client {} by lease {}",
                            holder.client, holder.name, id.value(), another.client, other.value()));
  }
  if (holder.until > known.until) {
    const TrueInstant sent = known.sent;
    known = holder;
    known.sent = sent;
  }
}

TrueInstant LeaseOracles::soonest(TrueInstant from, Duration time) const {
  return from + time / (kMillion + world_.plan.drift_ppm_max) * kMillion;
}

void LeaseOracles::before(std::string_view command, const LeaseCells& cells) {
  candidates_.clear();
  const auto decoded = kv::decode_command(command);
  LEASEHOLD_ASSERT(decoded.ok());
  const auto* expire = std::get_if<kv::ExpireLeases>(&decoded.value());
  if (expire == nullptr) return;
  for (const kv::SeenLease& seen : expire->leases) {
    const auto* lease = cells.table.find(seen.id);
    if (lease != nullptr) candidates_.push_back(*lease);
  }
}

void LeaseOracles::after(raft::LogId id, std::string_view command, const Bytes& reply,
                         const LeaseCells& cells) {
  const auto decoded = kv::decode_command(command);
  const auto answer = kv::decode_reply(reply);
  LEASEHOLD_ASSERT(decoded.ok() && answer.ok());
  const bool good = !is_error(answer.value());
  if (const auto* grant = std::get_if<kv::GrantLease>(&decoded.value()); grant && !good) {
    const auto* taken = cells.table.find(grant->name);
    if (taken != nullptr) refused_[taken->id] = world_.queue.now();
  }
  if (std::holds_alternative<kv::GrantLease>(decoded.value()) && good) {
    ++counts_.granted;
    const auto& array = std::get<kv::ArrayReply>(answer.value());
    const auto made = kv::decode_reply(array.items.at(0));
    const auto* lease = cells.table.find(
        grant::LeaseId(static_cast<std::uint64_t>(std::get<kv::Integer>(made.value()).value)));
    LEASEHOLD_ASSERT(lease != nullptr);
    if (lease->token <= newest_) {
      world_.fail("lease_token", fmt::format("{} grants with the token {} after {}", text(id),
                                             lease->token.value(), newest_.value()));
    }
    newest_ = lease->token;
    check_delay(id, *lease);
  }
  if (const auto* set = std::get_if<kv::Set>(&decoded.value());
      set != nullptr && set->token != grant::FencingToken(0)) {
    grant::FencingToken& highest = fences_[std::string(set->key)];
    if (!good) {
      ++counts_.fenced;
    } else if (set->token < highest) {
      world_.fail("fence", fmt::format("{} writes with the token {} after {}", text(id),
                                       set->token.value(), highest.value()));
    } else {
      highest = set->token;
    }
  }
  if (const auto* revoke = std::get_if<kv::RevokeLease>(&decoded.value()); revoke && good) {
    ++counts_.revoked;
    delays_.erase(revoke->id);
  }
  if (const auto key = given_time(decoded.value(), answer.value())) {
    const auto* own = cells.table.find(cells.cells.at(std::string(*key)).lease);
    LEASEHOLD_ASSERT(own != nullptr);
    // No node has executed it before now.
    keys_live_until_[own->id] = soonest(world_.queue.now(), own->ttl);
  }
  for (const grant::LeaseTable::Lease& gone : candidates_) on_expired(id, gone, cells);
  check_keys(cells, text(id));
}

/// `gone`: as it was before it was named in a command that has been executed now.
void LeaseOracles::on_expired(raft::LogId id, const grant::LeaseTable::Lease& gone,
                              const LeaseCells& cells) {
  const auto* now_there = cells.table.find(gone.id);
  const bool became_delayed = now_there != nullptr && now_there->delayed && !gone.delayed;
  if (now_there != nullptr && !became_delayed) return;
  if (gone.delayed) return;  // what its delay was for is judged by the next grant
  const TrueInstant now = world_.queue.now();
  ++counts_.expired;
  expired_.insert(gone.id);
  if (gone.terms.delay > gone.terms.delay.zero()) {
    ++counts_.delayed;
    delays_[gone.id] = {gone.name, soonest(now, gone.terms.delay)};
  }
  if (const auto at = keys_live_until_.find(gone.id);
      at != keys_live_until_.end() && at->second > now) {
    world_.fail("lease_expired_early",
                fmt::format("{} ends lease {} of a key", text(id), gone.id.value()));
  }
  const auto holder = holders_.find(gone.id);
  if (holder == holders_.end()) return;
  if (std::max(holder->second.until, soonest(holder->second.sent, gone.ttl)) <= now) {
    return check_grace(id, gone, holder->second);
  }
  world_.fail("lease_expired_early", fmt::format("{} ends lease {}, which client {} holds",
                                                 text(id), gone.id.value(), holder->second.client));
}

void LeaseOracles::check_grace(raft::LogId id, const grant::LeaseTable::Lease& gone,
                               const Holder& holder) {
  if (soonest(holder.sent, gone.ttl + gone.terms.grace) <= world_.queue.now()) return;
  const auto refused = refused_.find(gone.id);
  const bool wanted = refused != refused_.end() && refused->second > holder.sent;
  if (gone.terms.soft && wanted) {
    ++counts_.taken_over;
    return;
  }
  world_.fail("lease_grace",
              fmt::format("{} ends lease {} in its grace period{}", text(id), gone.id.value(),
                          gone.terms.soft ? ", and nobody has asked for its name" : ""));
}

void LeaseOracles::check_delay(raft::LogId id, const grant::LeaseTable::Lease& granted) {
  for (const auto& [of, delay] : delays_) {
    if (delay.name != granted.name || delay.until <= world_.queue.now()) continue;
    world_.fail("lock_delay", fmt::format("{} grants {} during the lock delay of lease {}",
                                          text(id), delay.name, of.value()));
  }
}

void LeaseOracles::check_keys(const LeaseCells& cells, const std::string& where) {
  std::size_t attached = 0;
  for (const auto& [key, value] : cells.cells) {
    if (value.lease == grant::LeaseId(0)) continue;
    ++attached;
    const auto* keys = cells.table.keys(value.lease);
    if (keys != nullptr && keys->count(key) != 0) continue;
    world_.fail("lease_keys",
                fmt::format("after {} the key {} is attached to lease {}{}", where, key,
                            value.lease.value(),
                            keys == nullptr ? ", which has ended" : ", which has it not"));
  }
  for (const auto& lease : cells.table.list(grant::LeaseId(0), cells.table.size())) {
    const std::size_t keys = cells.table.keys(lease.id)->size();
    attached -= keys;
    if (!grant::is_of_key(lease.id) || keys == 1) continue;
    world_.fail("lease_keys", fmt::format("after {} the lease {} of a key has {}", where,
                                          lease.id.value(), keys));
  }
  if (attached != 0) {
    world_.fail("lease_keys",
                fmt::format("after {} a lease has a key that is not attached to it", where));
  }
}

}  // namespace leasehold::sim
