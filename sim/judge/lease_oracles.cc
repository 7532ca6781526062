#include <leasehold/base/assert.h>
#include <leasehold/sim/judge/lease_oracles.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace leasehold::sim {
namespace {

bool is_error(const kv::Reply& reply) {
  return std::holds_alternative<kv::ErrorReply>(reply);
}

void mix(std::uint64_t& digest, std::string_view bytes) {
  for (const char c : bytes) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  digest = (digest ^ bytes.size()) * 0x9e3779b97f4a7c15U;
}

bool same(const kv::Event& a, const kv::Event& b) {
  return a.kind == b.kind && a.cause == b.cause && a.value_kept == b.value_kept && a.key == b.key &&
         a.value == b.value && a.create_revision == b.create_revision && a.version == b.version &&
         a.lease == b.lease;
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
  return "entry " + std::to_string(id.index.value()) + " of term " +
         std::to_string(id.term.value());
}

}  // namespace

void LeaseOracles::holds(const Holder& holder, grant::LeaseId id) {
  const TrueInstant now = world_.queue.now();
  Holder& known = holders_[id];
  if (holder.sent > known.sent) known.sent = holder.sent;
  if (holder.until <= now) return;
  if (expired_.count(id) != 0) {
    world_.fail("lease_expired_early", "client " + std::to_string(holder.client) + " holds lease " +
                                           std::to_string(id.value()) + ", which was ended before");
  }
  for (const auto& [other, another] : holders_) {
    if (other == id || another.name != holder.name || another.until <= now) continue;
    world_.fail("two_holders", "client " + std::to_string(holder.client) + " holds " + holder.name +
                                   " by lease " + std::to_string(id.value()) +
                                   ", and so does client " + std::to_string(another.client) +
                                   " by lease " + std::to_string(other.value()));
  }
  if (holder.until > known.until) {
    const TrueInstant sent = known.sent;
    known = holder;
    known.sent = sent;
  }
}

TrueInstant LeaseOracles::soonest(TrueInstant from, Duration time) const {
  constexpr std::int64_t kMillion = 1'000'000;
  return from + time / (kMillion + world_.plan.drift_ppm_max) * kMillion;
}

void LeaseOracles::before(std::string_view command, const LeaseCells& cells) {
  candidates_.clear();
  endings_.clear();
  const auto decoded = kv::decode_command(command);
  LEASEHOLD_ASSERT(decoded.ok());
  const auto ends = [this, &cells](grant::LeaseId id, kv::EventKind kind) {
    if (cells.table.find(id) == nullptr) return false;
    for (const std::string& key : *cells.table.keys(id)) endings_[key] = {kind, id};
    return true;
  };
  if (const auto* revoke = std::get_if<kv::RevokeLease>(&decoded.value())) {
    ends(revoke->id, kv::EventKind::revoked);
  }
  const auto* expire = std::get_if<kv::ExpireLeases>(&decoded.value());
  if (expire == nullptr) return;
  for (const kv::SeenLease& seen : expire->leases) {
    if (ends(seen.id, kv::EventKind::expired)) candidates_.push_back(*cells.table.find(seen.id));
  }
}

void LeaseOracles::after(raft::LogId id, std::string_view command, const Bytes& reply,
                         const LeaseCells& cells, std::vector<kv::Revision> told) {
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
      world_.fail("lease_token", text(id) + " grants with the token " +
                                     std::to_string(lease->token.value()) + " after " +
                                     std::to_string(newest_.value()));
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
      world_.fail("fence", text(id) + " writes with the token " +
                               std::to_string(set->token.value()) + " after " +
                               std::to_string(highest.value()));
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
    // No node has it before now.
    keys_live_until_[own->id] = soonest(world_.queue.now(), own->ttl);
  }
  for (const grant::LeaseTable::Lease& gone : candidates_) on_expired(id, gone, cells);
  check_keys(cells, text(id));
  check_events(id, cells, told);
  std::uint64_t digest = 0;
  for (const auto& [key, value] : cells.cells) {
    mix(digest, key);
    mix(digest, value.bytes.view());
  }
  for (kv::Revision& revision : told) committed_.push_back({std::move(revision), digest});
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
                text(id) + " ends lease " + std::to_string(gone.id.value()) + " of a key");
  }
  const auto holder = holders_.find(gone.id);
  if (holder == holders_.end()) return;
  if (std::max(holder->second.until, soonest(holder->second.sent, gone.ttl)) <= now) {
    return check_grace(id, gone, holder->second);
  }
  world_.fail("lease_expired_early", text(id) + " ends lease " + std::to_string(gone.id.value()) +
                                         ", which client " + std::to_string(holder->second.client) +
                                         " holds");
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
  world_.fail("lease_grace", text(id) + " ends lease " + std::to_string(gone.id.value()) +
                                 " in its grace period" +
                                 (gone.terms.soft ? ", and nobody has asked for its name" : ""));
}

void LeaseOracles::check_delay(raft::LogId id, const grant::LeaseTable::Lease& granted) {
  for (const auto& [of, delay] : delays_) {
    if (delay.name != granted.name || delay.until <= world_.queue.now()) continue;
    world_.fail("lock_delay", text(id) + " grants " + delay.name +
                                  " during the lock delay of lease " + std::to_string(of.value()));
  }
}

void LeaseOracles::check_events(raft::LogId id, const LeaseCells& cells,
                                const std::vector<kv::Revision>& told) {
  // What one command does has one revision.
  if (told.size() > 1 || committed_.size() + told.size() != cells.revision ||
      (!told.empty() && told[0].number != cells.revision)) {
    world_.fail("watch", text(id) + " leads to revision " + std::to_string(cells.revision) +
                             ", and watchers were to be told another");
    return;
  }
  for (const auto& [key, ending] : endings_) {
    if (const auto* lease = cells.table.find(ending.lease); lease && !lease->delayed) continue;
    bool said = false;
    for (const kv::Revision& revision : told) {
      for (const kv::Event& event : revision.events) {
        said |= event.key == key && event.kind == ending.kind && event.lease == ending.lease;
      }
    }
    if (said) continue;
    world_.fail("watch", text(id) + " ends lease " + std::to_string(ending.lease.value()) +
                             ", and no event says that the key " + key + " went with it");
  }
}

void LeaseOracles::check_copy(std::uint64_t watcher, std::uint64_t revision, const Copy& copy) {
  std::uint64_t digest = 0;
  for (const auto& [key, value] : copy) {
    mix(digest, key);
    mix(digest, value);
  }
  const std::uint64_t expected = revision == 0 ? 0 : committed_[revision - 1].digest;
  if (digest == expected) return;
  world_.fail("watch", "watcher " + std::to_string(watcher) +
                           " has other keys or values at revision " + std::to_string(revision) +
                           " than there were");
}

void LeaseOracles::resynced(std::uint64_t watcher, std::uint64_t revision, const Copy& copy) {
  ++counts_.resynced;
  if (revision > committed_.size()) {
    world_.fail("watch", "watcher " + std::to_string(watcher) + " has read revision " +
                             std::to_string(revision) + ", which is not committed");
    return;
  }
  seen_[watcher] = revision;
  check_copy(watcher, revision, copy);
}

void LeaseOracles::told(std::uint64_t watcher, const kv::Revision& revision, const Copy& copy) {
  ++counts_.watched;
  const std::string what =
      "watcher " + std::to_string(watcher) + " is told revision " + std::to_string(revision.number);
  std::uint64_t& seen = seen_[watcher];
  if (revision.number != seen + 1) {
    return world_.fail("watch", what + " after " + std::to_string(seen));
  }
  if (revision.number > committed_.size()) {
    return world_.fail("watch", what + ", which is not committed");
  }
  seen = revision.number;
  const std::vector<kv::Event>& events = committed_[revision.number - 1].revision.events;
  if (events.size() != revision.events.size() ||
      !std::equal(events.begin(), events.end(), revision.events.begin(), same)) {
    return world_.fail("watch", what + " with other events than it was committed with");
  }
  check_copy(watcher, revision.number, copy);
}

void LeaseOracles::check_keys(const LeaseCells& cells, const std::string& where) {
  std::size_t attached = 0;
  for (const auto& [key, value] : cells.cells) {
    if (value.lease == grant::LeaseId(0)) continue;
    ++attached;
    const auto* keys = cells.table.keys(value.lease);
    if (keys != nullptr && keys->count(key) != 0) continue;
    world_.fail("lease_keys", "after " + where + " the key " + key + " is attached to lease " +
                                  std::to_string(value.lease.value()) +
                                  (keys == nullptr ? ", which has ended" : ", which has it not"));
  }
  for (const auto& lease : cells.table.list(grant::LeaseId(0), cells.table.size())) {
    const std::size_t keys = cells.table.keys(lease.id)->size();
    attached -= keys;
    if (!grant::is_of_key(lease.id) || keys == 1) continue;
    world_.fail("lease_keys", "after " + where + " the lease " + std::to_string(lease.id.value()) +
                                  " of a key has " + std::to_string(keys));
  }
  if (attached != 0) {
    world_.fail("lease_keys", "after " + where + " a lease has a key that is not attached to it");
  }
}

}  // namespace leasehold::sim
