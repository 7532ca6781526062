// EVAL, EVALSHA and SCRIPT, for the scripts of lock libraries.
#include <leasehold/server/commands/command_keys.h>
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/scripts.h>
#include <leasehold/server/front/key_times.h>
#include <leasehold/server/front/words.h>

#include <utility>

namespace leasehold::server {
namespace {

constexpr const char* kUnknown =
    "ERR there is no Lua here, and this script is none of those of lock libraries that are known "
    "by their text (docs/resp.md, Scripts); use MULTI and WATCH";
constexpr const char* kNoScript = "NOSCRIPT No matching script. Please use EVAL.";

/// Splits the words after the number of keys. The text of an error, or empty.
std::string split(const Arguments& args, Arguments& keys, Arguments& values) {
  const auto count = parse_integer(args[2]);
  if (!count) return kNotAnInteger;
  if (*count < 0) return "ERR Number of keys can't be negative";
  if (static_cast<std::uint64_t>(*count) > args.size() - 3) {
    return "ERR Number of keys can't be greater than number of args";
  }
  const auto begin = args.begin() + 3;
  keys.assign(begin, begin + *count);
  values.assign(begin + *count, args.end());
  return {};
}

void call(Session& session, const Script& script, const Arguments& keys, const Arguments& values,
          std::string& out) {
  if (session.refuse_when_draining(out)) return;
  ScriptCall made;
  const std::string problem = make_script_call(script, keys, values, made);
  if (!problem.empty()) return session.refuse(out, problem);
  for (const kv::Operation& operation : made.operations) {
    // The keys are those of the script, and were judged with it.
    const CommandSpec* spec = find_command_named(command_of(operation));
    const std::string why = session.refusal_of(*spec, {}, "script");
    if (!why.empty()) return session.refuse(out, why);
  }
  const ServedGroup& group = session.group();
  for (kv::Operation& operation : made.operations) {
    if (auto seen = see_time(operation, group.store, group.lease_keeper); !seen) {
      return session.refuse(out, "ERR the store failed: " + seen.error().message);
    }
  }
  auto encoded =
      made.operations.size() == 1
          ? std::visit([](auto& o) { return kv::encode_command(std::move(o)); }, made.operations[0])
          : kv::encode_command(kv::Transaction{{}, std::move(made.operations)});
  if (!encoded) return session.refuse(out, "ERR " + encoded.error().message);
  session.propose(std::move(encoded).value(), made.form, {});
}

}  // namespace

void run_eval(Session& session, const Arguments& args, std::string& out) {
  Arguments keys, values;
  if (const std::string problem = split(args, keys, values); !problem.empty()) {
    return session.refuse(out, problem);
  }
  const auto script = find_script(args[1]);
  if (!script) return session.refuse(out, kUnknown);
  session.context().state.scripts.add(script_digest(args[1]), *script);
  call(session, *script, keys, values, out);
}

void run_evalsha(Session& session, const Arguments& args, std::string& out) {
  Arguments keys, values;
  if (const std::string problem = split(args, keys, values); !problem.empty()) {
    return session.refuse(out, problem);
  }
  const auto script = session.context().state.scripts.find(args[1]);
  if (!script) return session.refuse(out, kNoScript);
  call(session, *script, keys, values, out);
}

void run_script_load(Session& session, const Arguments& args, std::string& out) {
  const auto script = find_script(args[2]);
  if (!script) return session.refuse(out, kUnknown);
  const std::string digest = script_digest(args[2]);
  session.context().state.scripts.add(digest, *script);
  append_bulk(out, digest);
}

void run_script_exists(Session& session, const Arguments& args, std::string& out) {
  append_array(out, args.size() - 2);
  for (std::size_t i = 2; i < args.size(); ++i) {
    append_integer(out, session.context().state.scripts.find(args[i]) ? 1 : 0);
  }
}

void run_script_flush(Session& session, const Arguments& args, std::string& out) {
  const bool known =
      args.size() == 2 || (args.size() == 3 && (equals_ignoring_case(args[2], "sync") ||
                                                equals_ignoring_case(args[2], "async")));
  if (!known) {
    return session.refuse(out, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  }
  session.context().state.scripts.clear();
  append_simple(out, "OK");
}

}  // namespace leasehold::server
