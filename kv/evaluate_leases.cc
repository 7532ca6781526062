// What the operations on leases do, and on the time of keys, which is a lease of the key's own.
#include <leasehold/base/assert.h>
#include <leasehold/kv/named_lease.h>
#include <leasehold/kv/query.h>
#include <leasehold/kv/run.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <variant>

namespace leasehold::kv {
namespace {

std::string named(grant::LeaseId id) {
  return fmt::format("lease {}", id.value());
}

Reply no_lease(grant::LeaseId id) {
  return ErrorReply{ErrorKind::no_lease,
                    named(id) + " was never granted, or has ended; nothing was done"};
}

std::string delayed(const grant::LeaseTable::Lease& lease) {
  return fmt::format(
      "{} of '{}' has expired, and its lock delay of {} ms keeps the name from "
      "everybody; a revocation ends it",
      named(lease.id), lease.holder, lease.terms.delay.count());
}

Reply why_not(const GrantLease& grant, const grant::LeaseTable::Granted& granted,
              const grant::LeaseTable& table) {
  using Verdict = grant::LeaseTable::Verdict;
  switch (granted.verdict) {
    case Verdict::id_taken:
    case Verdict::name_taken: {
      const grant::LeaseTable::Lease& other = *table.find(granted.id);
      if (other.delayed) return ErrorReply{ErrorKind::lease_taken, delayed(other)};
      return ErrorReply{ErrorKind::lease_taken,
                        fmt::format("{} has {}, its holder is '{}'", named(other.id),
                                    granted.verdict == Verdict::id_taken ? "this id" : "this name",
                                    other.holder)};
    }
    case Verdict::ended_in_this_step:
      return ErrorReply{ErrorKind::lease_taken,
                        "the lease of this id or name ended in the same transaction: a new one "
                        "would have no larger token"};
    case Verdict::too_many:
      return ErrorReply{ErrorKind::limit,
                        fmt::format("{} leases are held, which is the limit", grant::kLeasesMax)};
    case Verdict::too_many_of_owner:
      return ErrorReply{ErrorKind::limit, fmt::format("this user has {} leases, which is the limit",
                                                      grant::kLeasesOfOwnerMax)};
    case Verdict::out_of_range:
      if (grant.id > grant::kChosenLeaseIdMax) {
        return ErrorReply{ErrorKind::limit, fmt::format("an id that is chosen is at most {}",
                                                        grant::kChosenLeaseIdMax.value())};
      }
      if (const char* problem = grant.terms.problem(!grant.name.empty())) {
        return ErrorReply{ErrorKind::limit, problem};
      }
      return ErrorReply{ErrorKind::limit,
                        "a lease lasts from a millisecond to ten years, and its name and its "
                        "holder have at most 255 bytes each"};
    case Verdict::granted: break;
  }
  LEASEHOLD_UNREACHABLE();
}

/// `left`: none: the key lives forever.
bool holds(TimeCondition condition, std::optional<lease::Duration> left, KeyTime ttl) {
  switch (condition) {
    case TimeCondition::none: return true;
    case TimeCondition::nx: return !left;
    case TimeCondition::xx: return left.has_value();
    case TimeCondition::gt: return left && ttl > *left;
    case TimeCondition::lt: return !left || ttl < *left;
    case TimeCondition::xx_lt: return left && ttl < *left;
  }
  LEASEHOLD_UNREACHABLE();
}

/// The key in whose group a lease is sought by its name.
struct SoughtBeside {
  std::string_view name;
  std::string_view operator()(const Set& set) const { return set.key; }
  std::string_view operator()(const SetSequential& set) const { return set.prefix; }
  std::string_view operator()(const AttachKey& attach) const { return attach.key; }
  std::string_view operator()(const RevokeLease&) const { return name; }
};

/// The time to live, or Nil.
Bytes renewed(grant::LeaseId id, Draft& draft) {
  if (auto why = draft.not_owner(id)) return encode_reply(*why);
  if (!draft.renew(id)) return encode_reply(Nil{});
  return encode_reply(Integer{draft.table().find(id)->ttl / std::chrono::milliseconds(1)});
}

}  // namespace

Result<Reply> run(const GrantLease& grant, Draft& draft) {
  // Two groups would each give the name to somebody.
  if (!grant.name.empty() && !draft.is_here(grant.name)) {
    return Error{ErrorCode::invalid_argument, "the name is of another group"};
  }
  const auto granted =
      draft.grant({grant.id, grant.name, grant.holder, grant.ttl, grant.terms, grant.asked_at_ms});
  if (granted.verdict != grant::LeaseTable::Verdict::granted) {
    return why_not(grant, granted, draft.table());
  }
  const Reply id = integer(granted.id.value());
  return Reply(ArrayReply{{encode_reply(id), encode_reply(integer(draft.revision()))}});
}

Result<Reply> run(const RenewLeases& renew, Draft& draft) {
  ArrayReply array;
  for (const grant::LeaseId id : renew.ids) array.items.push_back(renewed(id, draft));
  return Reply(std::move(array));
}

Result<Reply> run(const RenewNamed& renew, Draft& draft) {
  ArrayReply array;
  for (const LeaseRef& ref : renew.leases) {
    const auto* named = ref.id == grant::LeaseId(0) ? draft.table().find(ref.name) : nullptr;
    array.items.push_back(renewed(named != nullptr ? named->id : ref.id, draft));
  }
  return Reply(std::move(array));
}

Result<Reply> run(const RevokeLease& revoke, Draft& draft) {
  if (auto why = draft.not_owner(revoke.id)) return Reply(*why);
  return draft.revoke(revoke.id) ? Reply(Ok{}) : no_lease(revoke.id);
}

Result<Reply> run(const AttachKey& attach, Draft& draft) {
  const auto loaded = draft.load(attach.key);
  if (!loaded) return loaded.error();
  if (auto why = draft.cannot_attach(loaded.value(), attach.lease)) return Reply(*why);
  if (!loaded.value()) return integer(0);
  draft.write(attach.key, loaded.value()->bytes, loaded.value(), attach.lease);
  return integer(1);
}

Result<Reply> run(const WithNamedLease& named, Draft& draft) {
  const auto* lease = draft.table().find(named.name);
  if (lease == nullptr) {
    // Where the slot has gone there may be one.
    if (!draft.is_here(std::visit(SoughtBeside{named.name}, named.what))) {
      return Error{ErrorCode::invalid_argument, "the name is of another group"};
    }
    return Reply(
        ErrorReply{ErrorKind::no_lease,
                   fmt::format("no lease has the name '{}'; nothing was done", named.name)});
  }
  return std::visit(
      [&draft, id = lease->id](auto what) -> Result<Reply> {
        lease_of(what) = id;
        return run(what, draft);
      },
      named.what);
}

// ---- The time of keys ----

Result<Reply> run(const ExpireKey& expire, Draft& draft) {
  const auto loaded = draft.load(expire.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();
  const auto done = [&](bool changed) {
    if (!expire.get) return integer(changed ? 1 : 0);
    return old ? Reply(ValueReply{old->bytes}) : Reply(Nil{});
  };
  if (!old || (expire.value && old->bytes.view() != *expire.value)) return done(false);
  std::optional<lease::Duration> left;
  if (old->lease != grant::LeaseId(0)) {
    left = most_left(*draft.table().find(old->lease), expire.seen);
  }
  if (expire.change != TimeChange::set && !left) return done(false);
  if (!holds(expire.condition, left, expire.ttl)) return done(false);
  if (expire.change == TimeChange::remove) {
    draft.write(expire.key, old->bytes, old, grant::LeaseId(0));
    return done(true);
  }
  KeyTime ttl = expire.ttl;
  if (expire.change == TimeChange::add) ttl = std::min(ttl + *left, grant::kLeaseTtlMax);
  if (auto why = draft.cannot_time(leases_for(old, ttl))) return Reply(*why);
  draft.write_timed(expire.key, old->bytes, old, ttl, expire.end_ms);
  return done(true);
}

Result<Reply> run(const KeyLease& query, Draft& draft) {
  const auto loaded = draft.load(query.key);
  if (!loaded) return loaded.error();
  if (!has_value(loaded.value(), query)) return Reply(Nil{});
  return key_lease(draft.table().find(loaded.value()->lease));
}

Result<Reply> run(const LeaseInfo& query, Draft& draft) {
  const grant::LeaseTable& table = draft.table();
  const auto* found = query.id == grant::LeaseId(0) ? table.find(query.name) : table.find(query.id);
  if (found == nullptr || !shown(*found, query)) return Reply(Nil{});
  return answer(found_lease(*found, *table.keys(found->id)));
}

Result<Reply> run(const LeaseList& query, Draft& draft) {
  return answer(draft.table().list(query.after, query.count));
}

}  // namespace leasehold::kv
