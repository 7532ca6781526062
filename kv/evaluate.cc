// Runs a command: a draft is made of its operations and committed as a whole, and sessions see to
// it that a command that comes twice is run once.
#include <leasehold/base/assert.h>
#include <leasehold/kv/evaluate.h>
#include <leasehold/kv/evaluate_slots.h>
#include <leasehold/kv/query.h>
#include <leasehold/kv/run.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::kv {
namespace {

// The cause that a watcher sees, in addition to the change of the key.
template <class Other>
EventCause cause_of(const Other&) {
  return EventCause::none;
}
EventCause cause_of(const IncrBy&) {
  return EventCause::incr_by;
}
EventCause cause_of(const IncrByFloat&) {
  return EventCause::incr_by_float;
}
EventCause cause_of(const Copy&) {
  return EventCause::copy;
}
EventCause cause_of(const SetBit&) {
  return EventCause::set_bit;
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

/// A key that is named several times counts as often, and is loaded once.
Result<Reply> run(const Exists& query, Draft& draft) {
  std::vector<std::string_view> keys = query.keys;
  std::sort(keys.begin(), keys.end());
  std::size_t count = 0;
  for (auto at = keys.begin(); at != keys.end();) {
    const auto next = std::upper_bound(at, keys.end(), *at);
    const auto loaded = draft.load(*at);
    if (!loaded) return loaded.error();
    if (loaded.value()) count += static_cast<std::size_t>(next - at);
    at = next;
  }
  return Reply(integer(count));
}

template <class Query>
Result<Reply> run(const Query& query, Draft& draft) {
  const Operation operation(query);
  Found found;
  std::size_t bytes = 0;
  const auto keys = keys_of(operation);
  if (keys.size() > 1) draft.keep_loaded();
  for (const std::string_view key : keys) {
    auto loaded = draft.load(key);
    if (!loaded) return loaded.error();
    found.push_back(std::move(loaded).value());
    if (!found.back()) continue;
    bytes += found.back()->bytes.size();
    if (bytes > kReplyBytesMax) {
      return Reply(ErrorReply{ErrorKind::limit, values_too_large().message});
    }
  }
  if (auto why = draft.take_steps(steps_of(operation, found))) return Reply(*why);
  return answer(operation, found, draft.keys());
}

Reply transaction_too_large(const char* what, std::size_t limit) {
  return ErrorReply{
      ErrorKind::limit,
      fmt::format("nothing was done: the values that the transaction {} have more than {} bytes "
                  "together",
                  what, limit)};
}

/// On an error reply the caller drops the draft.
Result<Reply> run(const Transaction& transaction, Draft& draft) {
  draft.keep_loaded();
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
  return fmt::format("session {}", id.value());
}

Bytes no_session(replica::SessionId id) {
  return refused(
      ErrorKind::no_session,
      fmt::format("{} is unknown, closed or expired; nothing was done now, an earlier try may "
                  "have been executed",
                  named(id)));
}

// The user of a command becomes the owner of what it takes.
static_assert(kUserNameBytesMax <= grant::kLeaseOwnerBytesMax);
static_assert(kUserNameBytesMax <= replica::kSessionOwnerBytesMax);

/// Evaluates commands three levels deep: LoadAtMost, ActAs and Once call it again with what they
/// carry.
class Evaluation {
 public:
  Evaluation(const replica::Command& of, Backend& backend, Sessions& sessions, Counters& counters)
      : of_(of), backend_(backend), sessions_(sessions), counters_(counters) {}

  Result<Bytes> execute(const Command& command) {
    return std::visit([this](const auto& c) { return reply_to(c); }, command);
  }

 private:
  /// Everything that is about keys.
  template <class C>
  Result<Bytes> reply_to(const C& command) {
    Draft draft(backend_, counters_);
    draft.act_as(acting_);
    if (load_limit_) draft.limit_loads(*load_limit_);
    draft.set_cause(cause_of(command));
    const auto reply = run(command, draft);
    if (draft.loads_too_much()) return loads_too_much();
    if (auto why = draft.not_here()) return encode_reply(*std::move(why));
    if (!reply) return reply.error();
    // An error reply says that nothing was done.
    if (!std::holds_alternative<ErrorReply>(reply.value())) draft.commit();
    return encode_reply(reply.value());
  }

  Result<Bytes> reply_to(const OpenSession&) {
    const std::string_view owner = acting_ == nullptr ? std::string_view() : acting_->user;
    const auto id = sessions_.open(owner, backend_.ids_above());
    if (id) return encode_reply(integer(id->value()));
    if (sessions_.table().size_of(owner) >= replica::kSessionsOfOwnerMax) {
      return refused(ErrorKind::too_many_sessions,
                     fmt::format("{} sessions of this user are open, which is the limit; none was "
                                 "opened",
                                 replica::kSessionsOfOwnerMax));
    }
    return refused(ErrorKind::too_many_sessions,
                   fmt::format("{} sessions are open, which is the limit; none was opened",
                               replica::kSessionsMax));
  }
  Result<Bytes> reply_to(const CloseSession& command) {
    if (!may_use(command.session) || !sessions_.close(command.session))
      return no_session(command.session);
    return encode_reply(Ok{});
  }
  Result<Bytes> reply_to(const TouchSession& command) {
    if (!may_use(command.session) || !sessions_.touch(command.session))
      return no_session(command.session);
    return encode_reply(Ok{});
  }
  /// Another user's session shows its owner's results, and its numbers are its owner's: for
  /// everybody else it is not there.
  bool may_use(replica::SessionId session) const {
    return acting_ == nullptr || sessions_.table().is_for(session, acting_->user);
  }
  Result<Bytes> reply_to(const ExpireSession& command) {
    return encode_reply(integer(sessions_.expire(command.session, command.activity) ? 1 : 0));
  }

  Result<Bytes> reply_to(const ExpireLeases& command) {
    // The leader of another term has renewed leases without a word in the log.
    if (command.term != of_.id.term) return encode_reply(integer(0));
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

  Result<Bytes> reply_to(const ActAs& command) {
    const auto carried = decode_command(command.command);
    if (!carried) return undecodable(carried.error());
    acting_ = &command;
    auto reply = execute(carried.value());
    acting_ = nullptr;
    return reply;
  }

  Result<Bytes> reply_to(const LoadAtMost& command) {
    const auto carried = decode_command(command.command);
    if (!carried) return undecodable(carried.error());
    load_limit_ = command.bytes;
    auto reply = execute(carried.value());
    load_limit_.reset();
    return reply;
  }
  Bytes loads_too_much() const {
    return refused(ErrorKind::limit,
                   fmt::format("nothing was done: the values of the keys that the command names "
                               "have more than {} bytes together; name fewer of them at once",
                               *load_limit_));
  }

  Result<Bytes> reply_to(const CompareState&) {
    backend_.compare();
    return encode_reply(Ok{});
  }
  Result<Bytes> reply_to(const ReportState& command) {
    // A member that reports in the names of others could make a majority that differs.
    if (command.report.node != of_.origin) return encode_reply(Nil{});
    backend_.hear(command.report);
    return encode_reply(Ok{});
  }

  Result<Bytes> reply_to(const SetUser& command) {
    Users& users = backend_.users();
    const User* const found = users.find(command.name);
    if ((found == nullptr ? 0 : found->version) != command.expected) return encode_reply(Nil{});
    if (found == nullptr && users.size() >= kUsersMax) {
      return refused(
          ErrorKind::limit,
          fmt::format("there are {} users, which is the limit; nothing was done", kUsersMax));
    }
    raise_revision();
    // A command that was on its way when an earlier user of this name was removed may have opened
    // a session since.
    if (found == nullptr) sessions_.close_all_of(command.name);
    const std::uint64_t created = found == nullptr ? counters_.revision : found->created;
    users.set(command.name, {counters_.revision, created, std::string(command.rules)});
    return encode_reply(integer(counters_.revision));
  }
  Result<Bytes> reply_to(const DelUsers& command) {
    std::size_t count = 0;
    for (const std::string_view name : command.names) {
      if (!backend_.users().remove(name)) continue;
      ++count;
      sessions_.close_all_of(name);
    }
    if (count > 0) raise_revision();
    return encode_reply(integer(count));
  }
  template <class C>
  Result<Bytes> move_slots(const C& command) {
    Slots* const slots = backend_.slots();
    if (slots == nullptr) return refused(ErrorKind::moved, "this state has no slots that move");
    const auto reply = run(command, SlotDraft{backend_, *slots, counters_});
    if (!reply) return reply.error();
    return encode_reply(reply.value());
  }
  Result<Bytes> reply_to(const BeginMove& command) { return move_slots(command); }
  Result<Bytes> reply_to(const RetryMove& command) { return move_slots(command); }
  Result<Bytes> reply_to(const CancelMove& command) { return move_slots(command); }
  Result<Bytes> reply_to(const FreezeMove& command) { return move_slots(command); }
  Result<Bytes> reply_to(const ExpectSlots& command) { return move_slots(command); }
  Result<Bytes> reply_to(const ImportKeys& command) { return move_slots(command); }
  Result<Bytes> reply_to(const TakeSlots& command) { return move_slots(command); }
  Result<Bytes> reply_to(const LeaveSlots& command) { return move_slots(command); }
  Result<Bytes> reply_to(const DropKeys& command) { return move_slots(command); }
  Result<Bytes> reply_to(const ForgetSlots& command) { return move_slots(command); }

  /// For what no watcher sees.
  void raise_revision() {
    Revision told;
    told.number = ++counters_.revision;
    backend_.tell(told);
  }

  Result<Bytes> reply_to(const Once& once) {
    // First: bytes that are wrong are wrong each time, and use up no number.
    const auto carried = decode_command(once.command);
    if (!carried) return undecodable(carried.error());
    if (!is_of_here(once.session)) {
      // It comes from a node that has not heard that the slot has moved.
      if (const auto why = not_here(carried.value())) return encode_reply(*why);
    }
    if (!may_use(once.session)) return no_session(once.session);
    auto begun = sessions_.begin(once.session, once.sequence, once.answered_below);
    if (begun.verdict == replica::SessionTable::Verdict::repeated) return std::move(begun.result);
    if (begun.verdict != replica::SessionTable::Verdict::execute)
      return why_not(once, begun.verdict);
    auto reply = execute_once(carried.value());
    if (reply) sessions_.finish(once.session, once.sequence, reply.value());
    return reply;
  }
  /// A refusal is a result too: its client executes the command in a session of the group that has
  /// the slot, and a copy that is still on its way must do nothing here when the slot has come
  /// back. No released version has many groups, and so none has such slots.
  Result<Bytes> execute_once(const Command& command) {
    const auto why = not_here(command);
    if (!why) return execute(command);
    return refused(ErrorKind::slot_left, why->text + " in a session of its own");
  }

  /// Its id is one of this group's, whether it is open or not.
  bool is_of_here(replica::SessionId session) const {
    const std::uint64_t above = backend_.ids_above();
    return session.value() > above && session.value() - above <= kIdsOfGroup;
  }

  /// What a command answers that names a key of a slot that is not of this group now.
  std::optional<ErrorReply> not_here(const Command& command) {
    const Slots* const slots = backend_.slots();
    if (slots == nullptr || slots->all().empty()) return std::nullopt;
    const auto tried = [this](const auto& c) -> std::optional<ErrorReply> {
      using C = std::decay_t<decltype(c)>;
      if constexpr (std::is_same_v<C, Transaction> || std::is_convertible_v<C, Operation>) {
        Draft draft(backend_, counters_);
        draft.act_as(acting_);
        if (load_limit_) draft.limit_loads(*load_limit_);
        // If the store fails here, it does so when the command is executed.
        static_cast<void>(run(c, draft));
        return draft.not_here();
      }
      return std::nullopt;
    };
    return std::visit(tried, command);
  }

  static Bytes why_not(const Once& once, replica::SessionTable::Verdict verdict) {
    using Verdict = replica::SessionTable::Verdict;
    const std::string which = fmt::format("sequence {} of {}", once.sequence, named(once.session));
    switch (verdict) {
      case Verdict::answered:
        return refused(ErrorKind::sequence_answered,
                       which +
                           " is below what its client has said it has the answers to; not "
                           "executed now");
      case Verdict::too_far_ahead:
        return refused(
            ErrorKind::sequence_too_far,
            fmt::format(
                "{} is {} or more ahead of the first one that is not answered; not executed", which,
                replica::kSessionWindow));
      case Verdict::result_gone:
        return refused(ErrorKind::result_gone,
                       which + " was executed before, and its result was too large to keep");
      case Verdict::no_session: return no_session(once.session);
      case Verdict::execute:
      case Verdict::repeated: break;
    }
    LEASEHOLD_UNREACHABLE();
  }

  const replica::Command& of_;  ///< what came from the log
  Backend& backend_;
  Sessions& sessions_;
  Counters& counters_;
  // Around the command that is executed.
  const ActAs* acting_ = nullptr;
  std::optional<std::uint64_t> load_limit_;
};

}  // namespace

Result<Bytes> evaluate(const replica::Command& command, Backend& backend, Sessions& sessions,
                       Counters& counters) {
  const auto decoded = decode_command(command.bytes);
  if (!decoded) return undecodable(decoded.error());
  return Evaluation(command, backend, sessions, counters).execute(decoded.value());
}

}  // namespace leasehold::kv
