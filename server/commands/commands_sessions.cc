// LEASEHOLD SESSION and LEASEHOLD ONCE: commands that are executed once, however often they are
// sent.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/acting.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iterator>
#include <string>
#include <utility>

namespace leasehold::server {
namespace {

constexpr const char* kSessionForms =
    "ERR expected LEASEHOLD SESSION OPEN, CLOSE id, TOUCH id or LIST";

/// Sessions have their ids in each group: under one of another group the command would be executed
/// in somebody else's session.
constexpr const char* kSessionElsewhere =
    "CROSSSLOT a session is of the group that the connection has selected, and the keys are of "
    "another one: send LEASEHOLD GROUP KEY with such a key first, then open the session";

constexpr const char* kSessionUnseen =
    "TRYAGAIN this node could not learn in time whether the slot of the keys has moved to the "
    "group of the session; the command was not executed, send it again";

/// A session's id, or the number of a command.
std::optional<std::uint64_t> parse_number(std::string_view word) {
  const auto number = parse_integer(word);
  if (!number || *number < 1) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

void propose_plain(Session& session, const kv::Command& command, std::string& out) {
  if (session.refuse_when_draining(out)) return;
  Result<Bytes> encoded = kv::encode_command(command);
  if (!encoded) return session.refuse(out, "ERR " + encoded.error().message);
  session.propose(std::move(encoded).value(), ReplyForm::plain, {});
}

std::string json_of(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// Those of other users are for operators. One without an owner is everybody's.
bool may_show(const Session& session, const replica::SessionTable::Session& one) {
  const auto& rights = session.user().rights;
  return one.owner.empty() ||
         (rights && (rights->operates() || one.owner == owner_in(*rights, session.at_home())));
}

void list_sessions(const Session& session, std::string& out) {
  const auto sessions = session.group().store.sessions();
  if (!sessions) return append_error(out, "ERR the store failed: " + sessions.error().message);
  std::size_t open = 0;
  std::string text;
  for (const replica::SessionTable::Session& one : sessions.value()) {
    if (!may_show(session, one)) continue;
    if (++open > 1) text += ',';
    fmt::format_to(std::back_inserter(text), R"({{"id":{},"activity":{},"results":{})",
                   one.id.value(), one.activity, one.results);
    if (!one.owner.empty()) text += R"(,"user":)" + json_of(user_of(one.owner, session.at_home()));
    text += '}';
  }
  append_bulk(out, fmt::format(R"({{"open":{},"open_max":{},"sessions":[{}]}})", open,
                               replica::kSessionsMax, text));
}

/// The command inside ONCE: encoded, and the form of its reply.
struct Carried {
  Bytes command;
  ReplyForm form = ReplyForm::plain;
  TransactionParts parts;
};

/// EXEC of the transaction that is open. The text of an error, or empty.
std::string carry_transaction(Session& session, Carried& carried) {
  if (!session.multi().open()) return "ERR EXEC without MULTI";
  Multi::Finished finished = session.multi().finish();
  if (std::string problem = problem_of_exec(session, finished); !problem.empty()) return problem;
  carried.command = std::move(finished.command);
  carried.form = ReplyForm::transaction;
  carried.parts = session.run_queued(finished);
  return {};
}

/// `words`: of a write. The text of an error, or empty.
std::string carry_write(Session& session, std::uint64_t id, const Arguments& words,
                        Carried& carried) {
  const CommandSpec* spec = find_command(words);
  const bool exec = spec != nullptr && spec->run == run_exec;
  if (!exec && session.multi().open()) {
    session.multi().spoil();
    return "ERR inside MULTI only EXEC can be carried: LEASEHOLD ONCE session sequence EXEC";
  }
  const bool writes = spec != nullptr && spec->effect == CommandEffect::write;
  if (!writes || (!exec && spec->make == nullptr)) {
    return fmt::format("ERR {} is not a command that writes keys; it was not executed",
                       quoted(words[0]));
  }
  if (!arity_fits(*spec, words.size())) {
    return fmt::format("ERR wrong number of arguments for '{}' command", spec->name);
  }
  if (std::string problem = session.refusal_of(*spec, words, "toplevel"); !problem.empty()) {
    return problem;
  }
  if (std::string problem = session.find_group(*spec, words); !problem.empty()) return problem;
  const bool known = session.go_to_session(id);
  if (!known && (session.cannot_tell_group() || !session.in_selected_group())) {
    // As after any other refusal of EXEC, the transaction is over.
    if (exec) session.multi().clear();
    return session.cannot_tell_group() ? kSessionUnseen : kSessionElsewhere;
  }
  if (exec) return carry_transaction(session, carried);
  kv::Operation operation;
  if (std::string problem = session.make(*spec, words, operation); !problem.empty()) return problem;
  auto encoded =
      std::visit([](auto& o) { return kv::encode_command(kv::Command(std::move(o))); }, operation);
  if (!encoded) return "ERR " + encoded.error().message;
  carried.command = std::move(encoded).value();
  return {};
}

}  // namespace

void run_leasehold_session(Session& session, const Arguments& args, std::string& out) {
  const bool alone = args.size() == 3;
  if (alone && equals_ignoring_case(args[2], "open")) {
    return propose_plain(session, kv::OpenSession{}, out);
  }
  if (alone && equals_ignoring_case(args[2], "list")) return list_sessions(session, out);
  const bool closes = equals_ignoring_case(args[2], "close");
  if (args.size() != 4 || (!closes && !equals_ignoring_case(args[2], "touch"))) {
    return session.refuse(out, kSessionForms);
  }
  const auto number = parse_number(args[3]);
  if (!number)
    return session.refuse(out, fmt::format("ERR {} is not the id of a session", quoted(args[3])));
  const replica::SessionId id(*number);
  if (closes) return propose_plain(session, kv::CloseSession{id}, out);
  propose_plain(session, kv::TouchSession{id}, out);
}

void run_leasehold_once(Session& session, const Arguments& args, std::string& out) {
  const auto id = parse_number(args[2]);
  const auto sequence = parse_number(args[3]);
  if (!id)
    return session.refuse(out, fmt::format("ERR {} is not the id of a session", quoted(args[2])));
  if (!sequence) {
    return session.refuse(
        out, fmt::format("ERR {} is not a sequence number: they begin at 1", quoted(args[3])));
  }
  auto answered = sequence;
  std::size_t at = 4;
  if (equals_ignoring_case(args[4], "answered")) {
    answered = args.size() > 6 ? parse_number(args[5]) : std::nullopt;
    if (!answered) {
      return session.refuse(out,
                            "ERR expected LEASEHOLD ONCE session sequence [ANSWERED n] command "
                            "...: all sequences below n are answered, n is at least 1");
    }
    at = 6;
  }
  const Arguments words(args.begin() + static_cast<std::ptrdiff_t>(at), args.end());
  Carried carried;
  if (const std::string problem = carry_write(session, *id, words, carried); !problem.empty()) {
    return session.refuse(out, problem);
  }
  if (session.refuse_when_draining(out)) return;
  auto command = kv::encode_command(
      kv::Once{replica::SessionId(*id), *sequence, *answered, carried.command.view()});
  if (!command) return session.refuse(out, "ERR " + command.error().message);
  session.propose(std::move(command).value(), carried.form, std::move(carried.parts), true);
}

}  // namespace leasehold::server
