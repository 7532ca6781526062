// Commands about this node: its table of commands, its figures, its slow log.
#include <leasehold/server/commands/command_keys.h>
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/glob.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

namespace leasehold::server {
namespace {

bool is_listed(const CommandSpec& spec) {
  return !is_subcommand(spec);
}

std::vector<const CommandSpec*> all_commands() {
  std::vector<const CommandSpec*> specs;
  for (const CommandSpec* spec = commands_begin(); spec != commands_end(); ++spec) {
    if (is_listed(*spec)) specs.push_back(spec);
  }
  return specs;
}

std::vector<const CommandSpec*> subcommands_of(const CommandSpec& container) {
  std::vector<const CommandSpec*> specs;
  const std::string prefix = std::string(container.name) + "|";
  for (const CommandSpec* spec = commands_begin(); spec != commands_end(); ++spec) {
    if (spec->name.substr(0, prefix.size()) == prefix) specs.push_back(spec);
  }
  return specs;
}

void append_spec(std::string& out, const CommandSpec& spec) {
  append_array(out, 10);
  append_bulk(out, spec.name);
  append_integer(out, spec.arity);
  const char* flag = nullptr;
  if (spec.effect == CommandEffect::read) flag = "readonly";
  if (spec.effect == CommandEffect::write && spec.make != nullptr) flag = "write";
  if (spec.effect == CommandEffect::alone) flag = "write";
  append_array(out, flag == nullptr ? 0 : 1);
  if (flag != nullptr) append_simple(out, flag);
  append_integer(out, spec.first_key);
  append_integer(out, spec.last_key);
  append_integer(out, spec.key_step);
  // No access categories, hints or key specifications.
  for (int i = 0; i < 3; ++i) append_array(out, 0);
  const auto subcommands = subcommands_of(spec);
  append_array(out, subcommands.size());
  for (const CommandSpec* subcommand : subcommands) append_spec(out, *subcommand);
}

void append_docs(std::string& out, const CommandSpec& spec, Protocol protocol) {
  const auto subcommands = subcommands_of(spec);
  append_bulk(out, spec.name);
  append_map(out, subcommands.empty() ? 2 : 3, protocol);
  append_bulk(out, "summary");
  append_bulk(out, spec.summary);
  append_bulk(out, "group");
  append_bulk(out, group_name(spec.group));
  if (subcommands.empty()) return;
  append_bulk(out, "subcommands");
  append_map(out, subcommands.size(), protocol);
  for (const CommandSpec* subcommand : subcommands) append_docs(out, *subcommand, protocol);
}

/// Of COMMAND INFO and DOCS, which answer for each name. Some answers are a thousand times as long
/// as their name, so more of them than one for each command are not made.
bool refuse_many_names(Session& session, const Arguments& args, std::string& out) {
  const auto known = static_cast<std::size_t>(commands_end() - commands_begin());
  if (args.size() - 2 <= known) return false;
  session.refuse(out, fmt::format("ERR too many names of commands: there are {} commands", known));
  return true;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return out;
}

}  // namespace

void run_help(Session&, const Arguments& args, std::string& out) {
  const CommandSpec* container = find_command_named(args[0]);
  const auto subcommands = subcommands_of(*container);
  append_array(out, 1 + subcommands.size());
  append_simple(out, upper(container->name) + " <subcommand> [<arg> ...]. Subcommands are:");
  for (const CommandSpec* spec : subcommands) {
    append_simple(out, fmt::format("{} -- {}", upper(spec->name.substr(container->name.size() + 1)),
                                   spec->summary));
  }
}

void run_command(Session&, const Arguments&, std::string& out) {
  const auto specs = all_commands();
  append_array(out, specs.size());
  for (const CommandSpec* spec : specs) append_spec(out, *spec);
}

void run_command_count(Session&, const Arguments&, std::string& out) {
  append_integer(out, static_cast<std::int64_t>(all_commands().size()));
}

void run_command_info(Session& session, const Arguments& args, std::string& out) {
  if (args.size() == 2) return run_command(session, args, out);
  if (refuse_many_names(session, args, out)) return;
  append_array(out, args.size() - 2);
  for (std::size_t i = 2; i < args.size(); ++i) {
    const CommandSpec* spec = find_command_named(args[i]);
    if (spec != nullptr) {
      append_spec(out, *spec);
    } else {
      append_null(out, session.protocol);
    }
  }
}

void run_command_docs(Session& session, const Arguments& args, std::string& out) {
  if (refuse_many_names(session, args, out)) return;
  std::vector<const CommandSpec*> specs;
  if (args.size() == 2) specs = all_commands();
  for (std::size_t i = 2; i < args.size(); ++i) {
    if (const CommandSpec* spec = find_command_named(args[i])) specs.push_back(spec);
  }
  append_map(out, specs.size(), session.protocol);
  for (const CommandSpec* spec : specs) append_docs(out, *spec, session.protocol);
}

void run_command_list(Session& session, const Arguments& args, std::string& out) {
  std::string_view pattern = "*";
  if (args.size() == 5 && equals_ignoring_case(args[2], "filterby") &&
      equals_ignoring_case(args[3], "pattern")) {
    pattern = args[4].substr(0, kPatternBytesMax);
  } else if (args.size() != 2) {
    return session.refuse(out, "ERR syntax error");
  }
  std::vector<const CommandSpec*> found;
  std::size_t budget = kPatternStepsMax;
  for (const CommandSpec* spec : all_commands()) {
    if (glob_matches(lowered(pattern), spec->name, budget)) found.push_back(spec);
  }
  append_array(out, found.size());
  for (const CommandSpec* spec : found) append_bulk(out, spec->name);
}

void run_command_getkeys(Session& session, const Arguments& args, std::string& out) {
  const Arguments words(args.begin() + 2, args.end());
  const CommandSpec* spec = find_command(words);
  if (spec == nullptr) return session.refuse(out, "ERR Invalid command specified");
  if (!arity_fits(*spec, words.size())) {
    return session.refuse(out, "ERR Invalid number of arguments specified for command");
  }
  std::vector<std::string_view> keys;
  for (const KeyUse& use : uses_of_command(*spec, words)) {
    if (use.kind == KeyUse::Kind::key) keys.push_back(use.text);
  }
  const bool of_script = spec->run == run_eval || spec->run == run_evalsha;
  if (keys.empty() && !of_script) {
    return session.refuse(out, "ERR The command has no key arguments");
  }
  append_array(out, keys.size());
  for (const std::string_view key : keys) append_bulk(out, key);
}

void run_info(Session& session, const Arguments& args, std::string& out) {
  std::vector<std::string> sections;
  std::transform(args.begin() + 1, args.end(), std::back_inserter(sections), lowered);
  static_cast<void>(out);
  session.with_status(
      [sections = std::move(sections), &state = session.context().state, &group = session.group()](
          const node::NodeStatus& status, std::string& reply) {
        append_bulk(reply, info_text(sections, status, state, group));
      });
}

void run_slowlog_get(Session& session, const Arguments& args, std::string& out) {
  std::int64_t count = 10;
  if (args.size() > 3) {
    return session.refuse(out, "ERR wrong number of arguments for 'slowlog|get' command");
  }
  if (args.size() == 3) {
    const auto wanted = parse_integer(args[2]);
    if (!wanted || *wanted < -1) {
      return session.refuse(out, "ERR count should be greater than or equal to -1");
    }
    count = *wanted < 0 ? static_cast<std::int64_t>(kSlowLogEntriesMax) : *wanted;
  }
  const auto entries = session.context().state.slow_log.newest(static_cast<std::size_t>(count));
  append_array(out, entries.size());
  for (const SlowCommand& entry : entries) {
    append_array(out, 6);
    append_integer(out, static_cast<std::int64_t>(entry.id));
    append_integer(out, entry.unix_seconds);
    append_integer(out, entry.microseconds);
    append_array(out, entry.key.empty() ? 1 : 2);
    append_bulk(out, entry.command);
    if (!entry.key.empty()) append_bulk(out, entry.key);
    append_bulk(out, entry.address);
    append_bulk(out, entry.client_name);
  }
}

void run_slowlog_len(Session& session, const Arguments&, std::string& out) {
  append_integer(out, static_cast<std::int64_t>(session.context().state.slow_log.size()));
}

void run_slowlog_reset(Session& session, const Arguments&, std::string& out) {
  session.context().state.slow_log.clear();
  append_simple(out, "OK");
}

void run_time(Session&, const Arguments&, std::string& out) {
  const auto now = wall_now().count();
  append_array(out, 2);
  append_bulk(out, std::to_string(now / 1'000'000));
  append_bulk(out, std::to_string(now % 1'000'000));
}

void run_wait(Session& session, const Arguments& args, std::string& out) {
  const auto replicas = parse_integer(args[1]);
  const auto timeout = parse_integer(args[2]);
  if (!replicas) return session.refuse(out, kNotAnInteger);
  if (!timeout) return session.refuse(out, "ERR timeout is not an integer or out of range");
  if (*timeout < 0) return session.refuse(out, "ERR timeout is negative");
  // Whatever was answered is on a majority, and nothing more is promised: there is nothing to wait
  // for.
  session.with_status([](const node::NodeStatus& status, std::string& reply) {
    const auto voters =
        std::count_if(status.members.begin(), status.members.end(),
                      [](const node::MemberStatus& member) { return member.voter; });
    append_integer(reply, voters / 2);
  });
}

}  // namespace leasehold::server
