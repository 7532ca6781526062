#include <leasehold/base/assert.h>
#include <leasehold/kv/draft.h>
#include <leasehold/kv/evaluate.h>
#include <leasehold/kv/named_lease.h>
#include <leasehold/kv/query.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace leasehold::kv {
namespace {

Reply integer(std::uint64_t value) {
  return Integer{static_cast<std::int64_t>(value)};
}

// Which command a watcher is told of, beside what became of the key.
template <class Other>
EventCause cause_of(const Other&) {
  return EventCause::none;
}
EventCause cause_of(const IncrBy&) {
  return EventCause::incr_by;
}
EventCause cause_of(const Append&) {
  return EventCause::append;
}
EventCause cause_of(const SetRange&) {
  return EventCause::set_range;
}
EventCause cause_of(const Rename&) {
  return EventCause::rename;
}
EventCause cause_of(const AttachKey&) {
  return EventCause::attach_key;
}
EventCause cause_of(const WithNamedLease& named) {
  return std::holds_alternative<AttachKey>(named.what) ? EventCause::attach_key : EventCause::none;
}
EventCause cause_of(const ExpireKey& expire) {
  return expire.change == TimeChange::remove ? EventCause::persist : EventCause::expire_key;
}

/// How many more leases there are when a key has its time to live.
std::size_t leases_for(const std::optional<Value>& old, KeyTime ttl) {
  return ttl == KeyTime(0) || grant::is_of_key(Draft::lease_of(old)) ? 0 : 1;
}

Result<Reply> run(const Set& set, Draft& draft) {
  const auto loaded = draft.load(set.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();

  const bool writes = set.condition == SetCondition::none ||
                      (set.condition == SetCondition::nx && !old) ||
                      (set.condition == SetCondition::xx && old);
  const grant::LeaseId lease = set.keep_lease ? Draft::lease_of(old) : set.lease;
  if (auto why = draft.cannot_attach(old, set.lease)) return Reply(*why);
  if (set.ttl && writes) {
    if (auto why = draft.cannot_time(leases_for(old, *set.ttl))) return Reply(*why);
  }
  if (set.token != grant::FencingToken(0)) {
    auto why = draft.pass_fence(set.key, set.token);
    if (!why) return why.error();
    if (why.value()) return Reply(*why.value());
  }
  Reply reply = Nil{};
  if (set.get_old) {
    if (old) reply = ValueReply{old->bytes};
  } else if (writes) {
    reply = Ok{};
  }
  if (writes && set.ttl) {
    draft.write_timed(set.key, Bytes(set.value), old, *set.ttl);
  } else if (writes) {
    draft.write(set.key, Bytes(set.value), old, lease);
  }
  return reply;
}

std::string sequential_key(std::string_view prefix, std::uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string key(prefix);
  key.append(kSequenceDigits - digits.size(), '0');
  return key.append(digits);
}

Reply key_exists(std::string text) {
  return ErrorReply{ErrorKind::key_exists, std::move(text)};
}

Result<Reply> run(const SetSequential& set, Draft& draft) {
  const std::uint64_t number = draft.revision();
  std::string key = sequential_key(set.prefix, number);
  // Also if it is gone again: its number was told.
  if (draft.has_made(key)) {
    return key_exists("one transaction makes one sequential key of a prefix; nothing was done");
  }
  const auto loaded = draft.load(key);
  if (!loaded) return loaded.error();
  if (loaded.value()) {
    return key_exists("the key of this prefix and the number " + std::to_string(number) +
                      " exists: somebody has written it by its name; nothing was done");
  }
  if (auto why = draft.cannot_attach(std::nullopt, set.lease)) return Reply(*why);
  Reply reply = ValueReply{Bytes(std::string_view(key))};
  draft.write_made(std::move(key), Bytes(set.value), set.lease);
  return reply;
}

Result<Reply> run(const Del& del, Draft& draft) {
  std::size_t count = 0;
  for (const std::string_view key : del.keys) {
    const auto loaded = draft.load(key);
    if (!loaded) return loaded.error();
    if (!loaded.value()) continue;
    draft.erase(key, *loaded.value());
    ++count;
  }
  return integer(count);
}

/// Exactly what the decimal form of a 64-bit integer looks like: no blanks, no plus, no leading
/// zeros, no negative zero.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  const std::string_view digits = text.substr(!text.empty() && text[0] == '-' ? 1 : 0);
  if (digits.empty() || (digits[0] == '0' && text.size() > 1)) return std::nullopt;
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

bool sum_fits(std::int64_t a, std::int64_t b) {
  using Limits = std::numeric_limits<std::int64_t>;
  return b >= 0 ? a <= Limits::max() - b : a >= Limits::min() - b;
}

Result<Reply> run(const IncrBy& incr, Draft& draft) {
  const auto loaded = draft.load(incr.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();

  std::int64_t base = 0;
  if (old) {
    const auto parsed = parse_integer(old->bytes.view());
    if (!parsed) {
      return Reply(
          ErrorReply{ErrorKind::not_an_integer, "value is not an integer or out of range"});
    }
    base = *parsed;
  }
  if (!sum_fits(base, incr.delta)) {
    return Reply(ErrorReply{ErrorKind::overflow, "increment or decrement would overflow"});
  }
  const std::int64_t sum = base + incr.delta;
  draft.write(incr.key, Bytes(std::to_string(sum)), old, Draft::lease_of(old));
  return Reply(Integer{sum});
}

Reply too_long(std::uint64_t length) {
  return ErrorReply{ErrorKind::limit, "the value would have " + std::to_string(length) +
                                          " bytes, the limit is " + std::to_string(kValueBytesMax)};
}

Result<Reply> run(const Append& append, Draft& draft) {
  const auto loaded = draft.load(append.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();
  const std::size_t length = (old ? old->bytes.size() : 0) + append.bytes.size();
  if (length > kValueBytesMax) return too_long(length);
  std::string whole;
  whole.reserve(length);
  if (old) whole.append(old->bytes.view());
  whole.append(append.bytes);
  draft.write(append.key, Bytes(std::move(whole)), old, Draft::lease_of(old));
  return integer(length);
}

Result<Reply> run(const SetRange& range, Draft& draft) {
  const auto loaded = draft.load(range.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();
  const std::size_t before = old ? old->bytes.size() : 0;
  if (range.bytes.empty()) return integer(before);
  const std::uint64_t end = std::uint64_t{range.offset} + range.bytes.size();
  if (end > kValueBytesMax) return too_long(end);
  std::string whole(old ? old->bytes.view() : std::string_view());
  whole.resize(std::max<std::size_t>(before, end), '\0');
  whole.replace(range.offset, range.bytes.size(), range.bytes);
  const std::size_t length = whole.size();
  draft.write(range.key, Bytes(std::move(whole)), old, Draft::lease_of(old));
  return integer(length);
}

Result<Reply> run(const GetDel& command, Draft& draft) {
  const auto loaded = draft.load(command.key);
  if (!loaded) return loaded.error();
  if (!loaded.value()) return Reply(Nil{});
  draft.erase(command.key, *loaded.value());
  return Reply(ValueReply{loaded.value()->bytes});
}

Result<Reply> run(const MSet& mset, Draft& draft) {
  std::size_t leases = 0;
  for (const auto& [key, value] : mset.pairs) {
    if (mset.condition == MSetCondition::none && !mset.ttl) break;
    const auto loaded = draft.load(key);
    if (!loaded) return loaded.error();
    const std::optional<Value>& old = loaded.value();
    if (mset.condition == MSetCondition::none_exists && old) return integer(0);
    if (mset.condition == MSetCondition::all_equal && !(old && old->bytes.view() == value)) {
      return integer(0);
    }
    if (mset.ttl) leases += leases_for(old, *mset.ttl);
  }
  if (mset.ttl) {
    if (auto why = draft.cannot_time(leases)) return Reply(*why);
  }
  for (const auto& [key, value] : mset.pairs) {
    const auto loaded = draft.load(key);
    if (!loaded) return loaded.error();
    if (mset.ttl) {
      draft.write_timed(key, Bytes(value), loaded.value(), *mset.ttl);
    } else {
      draft.write(key, Bytes(value), loaded.value(), grant::LeaseId(0));
    }
  }
  switch (mset.condition) {
    case MSetCondition::none: return Reply(Ok{});
    case MSetCondition::none_exists: return integer(1);
    case MSetCondition::all_equal: return integer(mset.pairs.size());
  }
  LEASEHOLD_UNREACHABLE();
}

Result<Reply> run(const Rename& rename, Draft& draft) {
  const auto from = draft.load(rename.from);
  if (!from) return from.error();
  if (!from.value()) return Reply(ErrorReply{ErrorKind::no_such_key, "no such key"});
  const auto to = draft.load(rename.to);
  if (!to) return to.error();
  if (rename.if_free && to.value()) return integer(0);
  if (rename.from != rename.to) draft.move(rename.from, *from.value(), rename.to, to.value());
  return rename.if_free ? integer(1) : Reply(Ok{});
}

// ---- Leases ----

std::string named(grant::LeaseId id) {
  return "lease " + std::to_string(id.value());
}

Reply no_lease(grant::LeaseId id) {
  return ErrorReply{ErrorKind::no_lease,
                    named(id) + " was never granted, or has ended; nothing was done"};
}

std::string delayed(const grant::LeaseTable::Lease& lease) {
  return named(lease.id) + " of '" + lease.holder + "' has expired, and its lock delay of " +
         std::to_string(lease.terms.delay.count()) +
         " ms keeps the name from everybody; a revocation ends it";
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
                        named(other.id) + " has " +
                            (granted.verdict == Verdict::id_taken ? "this id" : "this name") +
                            ", its holder is '" + other.holder + "'"};
    }
    case Verdict::ended_in_this_step:
      return ErrorReply{ErrorKind::lease_taken,
                        "the lease of this id or name ended in the same transaction: a new one "
                        "would have no larger token"};
    case Verdict::too_many:
      return ErrorReply{ErrorKind::limit,
                        std::to_string(grant::kLeasesMax) + " leases are held, which is the limit"};
    case Verdict::out_of_range:
      if (grant.id > grant::kChosenLeaseIdMax) {
        return ErrorReply{ErrorKind::limit, "an id that is chosen is at most " +
                                                std::to_string(grant::kChosenLeaseIdMax.value())};
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

Result<Reply> run(const GrantLease& grant, Draft& draft) {
  const auto granted =
      draft.grant({grant.id, grant.name, grant.holder, grant.ttl, grant.terms, grant.asked_at_ms});
  if (granted.verdict != grant::LeaseTable::Verdict::granted) {
    return why_not(grant, granted, draft.table());
  }
  const Reply id = integer(granted.id.value());
  return Reply(ArrayReply{{encode_reply(id), encode_reply(integer(draft.revision()))}});
}

/// The time to live, or Nil.
Bytes renewed(grant::LeaseId id, Draft& draft) {
  if (!draft.renew(id)) return encode_reply(Nil{});
  return encode_reply(Integer{draft.table().find(id)->ttl / std::chrono::milliseconds(1)});
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
    return Reply(
        ErrorReply{ErrorKind::no_lease,
                   "no lease has the name '" + std::string(named.name) + "'; nothing was done"});
  }
  return std::visit(
      [&draft, id = lease->id](auto what) -> Result<Reply> {
        lease_of(what) = id;
        return run(what, draft);
      },
      named.what);
}

// ---- The time of keys ----

/// What is left of a key's time, or more. The node that made the command has looked before it was
/// applied, so less is left by now. If it has not seen this lease with this stamp, the key was
/// given its time after that look, or this node had not heard of it: the whole of it is left at
/// most.
lease::Duration most_left(const grant::LeaseTable::Lease& lease, const SeenTime& seen) {
  return seen.stamp == lease.stamp ? std::min(seen.left, lease.ttl) : lease.ttl;
}

/// `left`: none: the key lives for ever.
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
  draft.write_timed(expire.key, old->bytes, old, ttl);
  return done(true);
}

Result<Reply> run(const DelEqual& del, Draft& draft) {
  std::size_t count = 0;
  for (const std::string_view key : del.keys) {
    const auto loaded = draft.load(key);
    if (!loaded) return loaded.error();
    if (!loaded.value() || loaded.value()->bytes.view() != del.value) continue;
    draft.erase(key, *loaded.value());
    ++count;
  }
  return integer(count);
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
  const auto* keys = table.keys(found->id);
  return answer(FoundLease{*found, {keys->begin(), keys->end()}});
}

Result<Reply> run(const LeaseList& query, Draft& draft) {
  return answer(draft.table().list(query.after, query.count));
}

template <class Query>
Result<Reply> run(const Query& query, Draft& draft) {
  const Operation operation(query);
  Found found;
  std::size_t bytes = 0;
  for (const std::string_view key : keys_of(operation)) {
    auto loaded = draft.load(key);
    if (!loaded) return loaded.error();
    found.push_back(std::move(loaded).value());
    if (!found.back()) continue;
    if (std::holds_alternative<Exists>(operation)) found.back()->bytes = Bytes();
    bytes += found.back()->bytes.size();
    if (bytes > kReplyBytesMax) {
      return Reply(ErrorReply{ErrorKind::limit, values_too_large().message});
    }
  }
  return answer(operation, found, draft.keys());
}

Reply transaction_too_large(const char* what, std::size_t limit) {
  return ErrorReply{ErrorKind::limit, "nothing was done: the values that the transaction " +
                                          std::string(what) + " have more than " +
                                          std::to_string(limit) + " bytes together"};
}

/// On an error reply the caller drops the draft.
Result<Reply> run(const Transaction& transaction, Draft& draft) {
  for (const Watched& watched : transaction.watched) {
    const auto loaded = draft.load(watched.key);
    if (!loaded) return loaded.error();
    const std::uint64_t now = loaded.value() ? loaded.value()->mod_revision : 0;
    if (now != watched.mod_revision) return Reply(Nil{});
  }
  ArrayReply array;
  array.items.reserve(transaction.operations.size());
  std::size_t reply_bytes = 0;
  for (const Operation& operation : transaction.operations) {
    const auto reply = std::visit(
        [&](const auto& o) {
          draft.set_cause(cause_of(o));
          return run(o, draft);
        },
        operation);
    if (!reply) return reply.error();
    array.items.push_back(encode_reply(reply.value()));
    reply_bytes += array.items.back().size();
    if (reply_bytes > kReplyBytesMax) return transaction_too_large("returns", kReplyBytesMax);
    if (draft.written_bytes() > kWrittenBytesMax) {
      return transaction_too_large("writes", kWrittenBytesMax);
    }
  }
  return Reply(std::move(array));
}

ErrorKind kind_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::unsupported_format: return ErrorKind::unsupported_format;
    case ErrorCode::invalid_argument: return ErrorKind::limit;
    default: return ErrorKind::malformed;
  }
}

Bytes refused(ErrorKind kind, std::string text) {
  return encode_reply(ErrorReply{kind, std::move(text)});
}

Bytes undecodable(const Error& error) {
  return refused(kind_of(error.code), error.message);
}

std::string named(replica::SessionId id) {
  return "session " + std::to_string(id.value());
}

Bytes no_session(replica::SessionId id) {
  return refused(ErrorKind::no_session, named(id) + " is unknown, closed or expired; nothing was " +
                                            "done now, an earlier try may have been executed");
}

/// Evaluates commands one level deep: Once calls it again with what it carries.
class Evaluation {
 public:
  Evaluation(raft::Term term, Backend& backend, Sessions& sessions, Counters& counters)
      : term_(term), backend_(backend), sessions_(sessions), counters_(counters) {}

  Result<Bytes> run(const Command& command) {
    return std::visit([this](const auto& c) { return reply_to(c); }, command);
  }

 private:
  /// Everything that is about keys.
  template <class C>
  Result<Bytes> reply_to(const C& command) {
    Draft draft(backend_, counters_);
    draft.set_cause(cause_of(command));
    const auto reply = kv::run(command, draft);
    if (!reply) return reply.error();
    // An error reply says that nothing was done.
    if (!std::holds_alternative<ErrorReply>(reply.value())) draft.commit();
    return encode_reply(reply.value());
  }

  Result<Bytes> reply_to(const OpenSession&) {
    const auto id = sessions_.open();
    if (id) return encode_reply(integer(id->value()));
    return refused(ErrorKind::too_many_sessions,
                   std::to_string(replica::kSessionsMax) +
                       " sessions are open, which is the limit; none was opened");
  }
  Result<Bytes> reply_to(const CloseSession& command) {
    return sessions_.close(command.session) ? encode_reply(Ok{}) : no_session(command.session);
  }
  Result<Bytes> reply_to(const TouchSession& command) {
    return sessions_.touch(command.session) ? encode_reply(Ok{}) : no_session(command.session);
  }
  Result<Bytes> reply_to(const ExpireSession& command) {
    return encode_reply(integer(sessions_.expire(command.session, command.activity) ? 1 : 0));
  }

  Result<Bytes> reply_to(const ExpireLeases& command) {
    // The leader of another term has renewed leases without a word in the log.
    if (command.term != term_) return encode_reply(integer(0));
    Draft draft(backend_, counters_);
    std::size_t count = 0;
    for (const SeenLease& seen : command.leases) {
      // Those that are left will be named again.
      if (draft.ended_keys() >= grant::kLeaseKeysMax) break;
      count += draft.expire(seen) ? 1 : 0;
    }
    draft.commit();
    return encode_reply(integer(count));
  }

  Result<Bytes> reply_to(const Once& once) {
    // First: bytes that are wrong are wrong each time, and use up no number.
    const auto carried = decode_command(once.command);
    if (!carried) return undecodable(carried.error());
    auto begun = sessions_.begin(once.session, once.sequence, once.answered_below);
    if (begun.verdict == replica::SessionTable::Verdict::repeated) return std::move(begun.result);
    if (begun.verdict != replica::SessionTable::Verdict::execute)
      return why_not(once, begun.verdict);
    auto reply = run(carried.value());
    if (reply) sessions_.finish(once.session, once.sequence, reply.value());
    return reply;
  }

  static Bytes why_not(const Once& once, replica::SessionTable::Verdict verdict) {
    using Verdict = replica::SessionTable::Verdict;
    const std::string which =
        "sequence " + std::to_string(once.sequence) + " of " + named(once.session);
    switch (verdict) {
      case Verdict::answered:
        return refused(ErrorKind::sequence_answered,
                       which +
                           " is below what its client has said it has the answers to; not "
                           "executed now");
      case Verdict::too_far_ahead:
        return refused(ErrorKind::sequence_too_far,
                       which + " is " + std::to_string(replica::kSessionWindow) +
                           " or more ahead of the first one that is not answered; not executed");
      case Verdict::result_gone:
        return refused(ErrorKind::result_gone,
                       which + " was executed before, and its result was too large to keep");
      case Verdict::no_session: return no_session(once.session);
      case Verdict::execute:
      case Verdict::repeated: break;
    }
    LEASEHOLD_UNREACHABLE();
  }

  const raft::Term term_;
  Backend& backend_;
  Sessions& sessions_;
  Counters& counters_;
};

}  // namespace

Result<Bytes> evaluate(std::string_view command, raft::Term term, Backend& backend,
                       Sessions& sessions, Counters& counters) {
  const auto decoded = decode_command(command);
  if (!decoded) return undecodable(decoded.error());
  return Evaluation(term, backend, sessions, counters).run(decoded.value());
}

}  // namespace leasehold::kv
