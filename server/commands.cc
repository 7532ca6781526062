#include <leasehold/server/commands.h>
#include <leasehold/server/report.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace leasehold::server {
namespace {

/// Longest part of a client's word that an error message repeats.
constexpr std::size_t kQuotedBytesMax = 128;
constexpr std::size_t kClientNameBytesMax = 256;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lowered(std::string_view text) {
  std::string out(text.substr(0, kQuotedBytesMax));
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text.substr(0, kQuotedBytesMax)) + "'";
}

/// Every refusal of a command for its own sake goes through here and is counted.
void refuse(Session& session, std::string& out, std::string_view text) {
  session.context().counters.commands_refused.add();
  append_error(out, text);
}

void refuse_arity(Session& session, std::string& out, std::string_view command) {
  refuse(session, out, "ERR wrong number of arguments for '" + lowered(command) + "' command");
}

void refuse_subcommand(Session& session, std::string& out, const Arguments& args) {
  refuse(session, out,
         "ERR unknown subcommand or wrong number of arguments for " + quoted(args[1]) + ". Try " +
             lowered(args[0]) + " with one of the forms in docs/resp.md");
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The pattern language of CONFIG GET, as far as it is needed: '*' and '?'.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || lower(pattern[p]) == text[t])) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// The connection.

void ping(Session& session, const Arguments& args, std::string& out) {
  if (args.size() > 2) return refuse_arity(session, out, args[0]);
  if (args.size() == 2) return append_bulk(out, args[1]);
  append_simple(out, "PONG");
}

void echo(Session&, const Arguments& args, std::string& out) {
  append_bulk(out, args[1]);
}

void select(Session& session, const Arguments& args, std::string& out) {
  const auto index = parse_integer(args[1]);
  if (!index) return refuse(session, out, "ERR invalid DB index");
  if (*index != 0) return refuse(session, out, "ERR DB index is out of range: there is only DB 0");
  append_simple(out, "OK");
}

void quit(Session& session, const Arguments&, std::string& out) {
  append_simple(out, "OK");
  session.close_after_replies();
}

void reset(Session& session, const Arguments&, std::string& out) {
  session.protocol = Protocol::resp2;
  session.name.clear();
  session.set_read_mode(node::ReadMode::lease);
  append_simple(out, "RESET");
}

bool valid_client_name(std::string_view name) {
  return name.size() <= kClientNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
}

constexpr const char* kBadClientName =
    "ERR Client names cannot contain spaces, newlines or special characters, or be longer than 256 "
    "bytes";

void hello(Session& session, const Arguments& args, std::string& out) {
  Protocol protocol = session.protocol;
  std::size_t at = 1;
  if (at < args.size()) {
    const auto version = parse_integer(args[at++]);
    if (!version || (*version != 2 && *version != 3)) {
      return refuse(session, out, "NOPROTO unsupported protocol version: 2 and 3 are spoken here");
    }
    protocol = *version == 3 ? Protocol::resp3 : Protocol::resp2;
  }
  std::optional<std::string_view> name;
  while (at < args.size()) {
    if (equals_ignoring_case(args[at], "setname") && at + 1 < args.size()) {
      name = args[at + 1];
      if (!valid_client_name(*name)) return refuse(session, out, kBadClientName);
      at += 2;
    } else if (equals_ignoring_case(args[at], "auth")) {
      return refuse(session, out, "ERR no password is set here: leave AUTH out");
    } else {
      return refuse(session, out, "ERR Syntax error in HELLO option " + quoted(args[at]));
    }
  }
  session.protocol = protocol;
  if (name) session.name = std::string(*name);
  append_map(out, 6, protocol);
  append_bulk(out, "server");
  append_bulk(out, "leasehold");
  append_bulk(out, "version");
  append_bulk(out, kVersion);
  append_bulk(out, "proto");
  append_integer(out, static_cast<int>(protocol));
  append_bulk(out, "id");
  append_integer(out, static_cast<std::int64_t>(session.id()));
  append_bulk(out, "mode");
  append_bulk(out, "standalone");
  append_bulk(out, "modules");
  append_array(out, 0);
}

void client(Session& session, const Arguments& args, std::string& out) {
  const auto is = [&](std::string_view name, std::size_t words) {
    return equals_ignoring_case(args[1], name) && args.size() == words;
  };
  if (is("id", 2)) {
    append_integer(out, static_cast<std::int64_t>(session.id()));
  } else if (is("getname", 2)) {
    if (session.name.empty()) return append_null(out, session.protocol);
    append_bulk(out, session.name);
  } else if (is("setname", 3)) {
    if (!valid_client_name(args[2])) return refuse(session, out, kBadClientName);
    session.name = std::string(args[2]);
    append_simple(out, "OK");
  } else if (is("info", 2)) {
    append_bulk(out, "id=" + std::to_string(session.id()) + " addr=" + session.address() +
                         " name=" + session.name +
                         " db=0 resp=" + std::to_string(static_cast<int>(session.protocol)) + "\n");
  } else if (is("setinfo", 4) || is("no-evict", 3) || is("no-touch", 3)) {
    // Accepted, because client libraries send them unasked; there is nothing here to change.
    append_simple(out, "OK");
  } else {
    refuse_subcommand(session, out, args);
  }
}

// The store.

void get(Session& session, const Arguments& args, std::string& out) {
  session.read(args, ReadCommand::Kind::get, out);
}

void exists(Session& session, const Arguments& args, std::string& out) {
  session.read(args, ReadCommand::Kind::exists, out);
}

void dbsize(Session& session, const Arguments& args, std::string& out) {
  session.read(args, ReadCommand::Kind::size, out);
}

void set(Session& session, const Arguments& args, std::string& out) {
  kv::Set command;
  command.key = args[1];
  command.value = args[2];
  for (std::size_t i = 3; i < args.size(); ++i) {
    const bool free = command.condition == kv::SetCondition::none;
    if (free && equals_ignoring_case(args[i], "nx")) {
      command.condition = kv::SetCondition::nx;
    } else if (free && equals_ignoring_case(args[i], "xx")) {
      command.condition = kv::SetCondition::xx;
    } else if (!command.get_old && equals_ignoring_case(args[i], "get")) {
      command.get_old = true;
    } else {
      return refuse(session, out,
                    "ERR syntax error at " + quoted(args[i]) + ": SET key value [NX | XX] [GET]");
    }
  }
  session.write(command, out);
}

void del(Session& session, const Arguments& args, std::string& out) {
  session.write(kv::Del{{args.begin() + 1, args.end()}}, out);
}

void add(Session& session, std::string_view key, std::int64_t delta, std::string& out) {
  kv::IncrBy command;
  command.key = key;
  command.delta = delta;
  session.write(command, out);
}

void incr(Session& session, const Arguments& args, std::string& out) {
  add(session, args[1], 1, out);
}

void decr(Session& session, const Arguments& args, std::string& out) {
  add(session, args[1], -1, out);
}

constexpr const char* kNotAnInteger = "ERR value is not an integer or out of range";

void incrby(Session& session, const Arguments& args, std::string& out) {
  const auto delta = parse_integer(args[2]);
  if (!delta) return refuse(session, out, kNotAnInteger);
  add(session, args[1], *delta, out);
}

void decrby(Session& session, const Arguments& args, std::string& out) {
  const auto delta = parse_integer(args[2]);
  if (!delta || *delta == std::numeric_limits<std::int64_t>::min()) {
    return refuse(session, out, kNotAnInteger);
  }
  add(session, args[1], -*delta, out);
}

// The server.

void config(Session& session, const Arguments& args, std::string& out) {
  if (!equals_ignoring_case(args[1], "get") || args.size() < 3) {
    return refuse(session, out,
                  "ERR only CONFIG GET pattern... is supported: settings are flags of "
                  "'leasehold serve' and change with a restart");
  }
  std::vector<const std::pair<std::string, std::string>*> found;
  for (const auto& setting : session.context().state.options.config) {
    const bool wanted = std::any_of(args.begin() + 2, args.end(), [&](std::string_view pattern) {
      return matches_pattern(pattern.substr(0, kQuotedBytesMax), setting.first);
    });
    if (wanted) found.push_back(&setting);
  }
  append_map(out, found.size(), session.protocol);
  for (const auto* setting : found) {
    append_bulk(out, setting->first);
    append_bulk(out, setting->second);
  }
}

void info(Session& session, const Arguments& args, std::string& out) {
  if (args.size() > 2) return refuse(session, out, "ERR INFO takes one section at most");
  session.with_status(
      [section = args.size() == 2 ? lowered(args[1]) : std::string(), &context = session.context()](
          const node::NodeStatus& status, std::string& reply) {
        append_bulk(reply, info_text(section, status, context.state, context.store.size()));
      });
}

void leasehold_command(Session& session, const Arguments& args, std::string& out) {
  if (equals_ignoring_case(args[1], "status") && args.size() == 2) {
    session.with_status(
        [&context = session.context()](const node::NodeStatus& status, std::string& reply) {
          append_bulk(reply, status_json(status, context.state, context.store.size()));
        });
    return;
  }
  if (!equals_ignoring_case(args[1], "readmode") || args.size() > 3) {
    return refuse(session, out,
                  "ERR expected LEASEHOLD STATUS or LEASEHOLD READMODE [lease | quorum | log]");
  }
  static constexpr std::array<std::pair<std::string_view, node::ReadMode>, 3> kModes = {
      {{"lease", node::ReadMode::lease},
       {"quorum", node::ReadMode::quorum},
       {"log", node::ReadMode::log}}};
  for (const auto& [name, mode] : kModes) {
    if (args.size() == 2 && mode == session.read_mode()) return append_bulk(out, name);
    if (args.size() == 3 && equals_ignoring_case(args[2], name)) {
      session.set_read_mode(mode);
      return append_simple(out, "OK");
    }
  }
  refuse(session, out,
         "ERR unknown read mode " + quoted(args[2]) + ": expected lease, quorum or log");
}

void command_command(Session& session, const Arguments& args, std::string& out);

constexpr CommandEffect kNone = CommandEffect::none;
constexpr CommandEffect kRead = CommandEffect::read;
constexpr CommandEffect kWrite = CommandEffect::write;
constexpr CommandEffect kDialect = CommandEffect::dialect;

/// Ascending by name.
constexpr CommandSpec kCommands[] = {
    {"client", -2, kNone, 0, 0, 0, "Names this connection and tells about it", client},
    {"command", -1, kNone, 0, 0, 0, "Lists the commands", command_command},
    {"config", -2, kNone, 0, 0, 0, "Shows settings (CONFIG GET)", config},
    {"dbsize", 1, kRead, 0, 0, 0, "Counts the keys, linearizably", dbsize},
    {"decr", 2, kWrite, 1, 1, 1, "Subtracts 1 from a number", decr},
    {"decrby", 3, kWrite, 1, 1, 1, "Subtracts from a number", decrby},
    {"del", -2, kWrite, 1, -1, 1, "Deletes keys", del},
    {"echo", 2, kNone, 0, 0, 0, "Returns its argument", echo},
    {"exists", -2, kRead, 1, -1, 1, "Counts those of the keys that exist, linearizably", exists},
    {"get", 2, kRead, 1, 1, 1, "Reads a value, linearizably", get},
    {"hello", -1, kDialect, 0, 0, 0, "Chooses RESP2 or RESP3", hello},
    {"incr", 2, kWrite, 1, 1, 1, "Adds 1 to a number", incr},
    {"incrby", 3, kWrite, 1, 1, 1, "Adds to a number", incrby},
    {"info", -1, kNone, 0, 0, 0, "Tells about this node as text", info},
    {"leasehold", -2, kNone, 0, 0, 0, "STATUS of this node as JSON; READMODE of this connection",
     leasehold_command},
    {"ping", -1, kNone, 0, 0, 0, "Returns PONG or its argument", ping},
    {"quit", -1, kNone, 0, 0, 0, "Closes the connection", quit},
    {"reset", 1, kDialect, 0, 0, 0, "Makes the connection as new", reset},
    {"select", 2, kNone, 0, 0, 0, "Accepts database 0", select},
    {"set", -3, kWrite, 1, 1, 1, "Writes a value: SET key value [NX | XX] [GET]", set},
};

constexpr std::size_t kCommandNameBytesMax = 16;

void append_command(std::string& out, const CommandSpec& spec) {
  append_array(out, 10);
  append_bulk(out, spec.name);
  append_integer(out, spec.arity);
  const char* flag = spec.effect == kRead ? "readonly" : spec.effect == kWrite ? "write" : nullptr;
  append_array(out, flag == nullptr ? 0 : 1);
  if (flag != nullptr) append_simple(out, flag);
  append_integer(out, spec.first_key);
  append_integer(out, spec.last_key);
  append_integer(out, spec.key_step);
  // No access categories, hints, key specifications or subcommands.
  for (int i = 0; i < 4; ++i) append_array(out, 0);
}

void append_command_docs(std::string& out, const CommandSpec& spec, Protocol protocol) {
  append_bulk(out, spec.name);
  append_map(out, 2, protocol);
  append_bulk(out, "summary");
  append_bulk(out, spec.summary);
  append_bulk(out, "group");
  append_bulk(out, spec.effect == kRead || spec.effect == kWrite ? "string" : "server");
}

void command_command(Session& session, const Arguments& args, std::string& out) {
  const bool list = args.size() == 1;
  if (!list && equals_ignoring_case(args[1], "count") && args.size() == 2) {
    return append_integer(out, static_cast<std::int64_t>(std::size(kCommands)));
  }
  const bool infos = !list && equals_ignoring_case(args[1], "info");
  const bool docs = !list && equals_ignoring_case(args[1], "docs");
  if (!list && !infos && !docs) return refuse_subcommand(session, out, args);
  std::vector<const CommandSpec*> specs;
  if (args.size() <= 2) {
    for (const CommandSpec& spec : kCommands) specs.push_back(&spec);
  } else {
    for (auto name = args.begin() + 2; name != args.end(); ++name) {
      const CommandSpec* spec = find_command(*name);
      if (spec != nullptr || infos) specs.push_back(spec);
    }
  }
  if (docs) {
    append_map(out, specs.size(), session.protocol);
    for (const CommandSpec* spec : specs) append_command_docs(out, *spec, session.protocol);
    return;
  }
  append_array(out, specs.size());
  for (const CommandSpec* spec : specs) {
    if (spec != nullptr) {
      append_command(out, *spec);
    } else {
      out.append(session.protocol == Protocol::resp3 ? "_\r\n" : "*-1\r\n");
    }
  }
}

}  // namespace

bool equals_ignoring_case(std::string_view text, std::string_view lower_text) {
  return text.size() == lower_text.size() &&
         std::equal(text.begin(), text.end(), lower_text.begin(),
                    [](char a, char b) { return lower(a) == b; });
}

const CommandSpec* find_command(std::string_view name) {
  if (name.size() > kCommandNameBytesMax) return nullptr;
  char text[kCommandNameBytesMax];
  std::transform(name.begin(), name.end(), text, lower);
  const std::string_view wanted(text, name.size());
  const auto found = std::lower_bound(
      std::begin(kCommands), std::end(kCommands), wanted,
      [](const CommandSpec& spec, std::string_view key) { return spec.name < key; });
  return found != std::end(kCommands) && wanted == found->name ? found : nullptr;
}

void run_command(Session& session, const CommandSpec* spec, const Arguments& args,
                 std::string& out) {
  if (spec == nullptr) {
    return refuse(session, out,
                  "ERR unknown command " + quoted(args[0]) + ". COMMAND lists what is known here");
  }
  const auto words = static_cast<int>(args.size());
  if (spec->arity >= 0 ? words != spec->arity : words < -spec->arity) {
    return refuse_arity(session, out, args[0]);
  }
  spec->run(session, args, out);
}

}  // namespace leasehold::server
