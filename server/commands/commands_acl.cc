// AUTH and ACL: who a connection is, and what users may do (docs/resp.md, Users).
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/user_change.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/permission.h>
#include <leasehold/server/front/words.h>
#include <leasehold/server/users/password.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

constexpr std::int64_t kPasswordBits = 256;
constexpr std::int64_t kPasswordBitsMax = 4096;
constexpr std::int64_t kAclLogShown = 10;

const kv::Users& users_of(const Session& session) {
  return session.users();
}

Accounts& accounts_of(const Session& session) {
  return session.context().state.accounts;
}

/// The text of an error, or empty.
std::string check_user_name(std::string_view name) {
  if (name.empty() || name.size() > kv::kUserNameBytesMax) {
    return fmt::format("ERR a user's name has 1 to {} bytes", kv::kUserNameBytesMax);
  }
  const bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c != '\x7f'; });
  return plain ? "" : "ERR Usernames can't contain spaces or null characters";
}

void append_texts(std::string& out, const std::vector<std::string>& texts) {
  append_array(out, texts.size());
  for (const std::string& text : texts) append_bulk(out, text);
}

}  // namespace

void run_auth(Session& session, const Arguments& args, std::string& out) {
  if (args.size() > 3) return session.refuse(out, "ERR syntax error");
  const auto ok = [](Session&, std::string& reply) { append_simple(reply, "OK"); };
  if (args.size() == 3) return session.authenticate(args[1], args[2], ok, out);
  const auto rights = accounts_of(session).find(users_of(session), kDefaultUser);
  if (rights->rules().nopass) {
    return session.refuse(out,
                          "ERR AUTH <password> called without any password configured for the "
                          "default user. Are you sure your configuration is correct?");
  }
  session.authenticate(kDefaultUser, args[1], ok, out);
}

void run_acl_whoami(Session& session, const Arguments&, std::string& out) {
  append_bulk(out, session.user().name);
}

void run_acl_users(Session& session, const Arguments&, std::string& out) {
  const auto table = accounts_of(session).table(users_of(session));
  append_array(out, table->size());
  for (const auto& [name, rights] : *table) append_bulk(out, name);
}

void run_acl_list(Session& session, const Arguments&, std::string& out) {
  const auto table = accounts_of(session).table(users_of(session));
  append_array(out, table->size());
  for (const auto& [name, rights] : *table) {
    append_bulk(out, fmt::format("user {} {}", name, rights->rules().text()));
  }
}

void run_acl_getuser(Session& session, const Arguments& args, std::string& out) {
  const auto rights = accounts_of(session).find(users_of(session), args[2]);
  if (!rights) return append_null(out, session.protocol);
  const UserRules& rules = rights->rules();
  std::vector<std::string> flags{rules.on ? "on" : "off"};
  if (rules.nopass) flags.emplace_back("nopass");
  append_map(out, 6, session.protocol);
  append_bulk(out, "flags");
  // A set in RESP3.
  out += session.protocol == Protocol::resp3 ? '~' : '*';
  out += fmt::format("{}\r\n", flags.size());
  for (const std::string& flag : flags) append_bulk(out, flag);
  append_bulk(out, "passwords");
  append_texts(out, rules.passwords);
  append_bulk(out, "commands");
  append_bulk(out, rules.commands_text());
  append_bulk(out, "keys");
  append_bulk(out, rules.keys_text());
  append_bulk(out, "channels");
  append_bulk(out, rules.channels_text());
  append_bulk(out, "selectors");
  append_array(out, 0);
}

void run_acl_setuser(Session& session, const Arguments& args, std::string& out) {
  if (const std::string problem = check_user_name(args[2]); !problem.empty()) {
    return session.refuse(out, problem);
  }
  if (session.refuse_when_draining(out)) return;
  change_user(session.context(), std::string(args[2]), {args.begin() + 3, args.end()},
              session.answer_later());
}

void run_acl_deluser(Session& session, const Arguments& args, std::string& out) {
  kv::DelUsers command;
  for (std::size_t i = 2; i < args.size(); ++i) {
    if (args[i] == kDefaultUser) {
      return session.refuse(out, "ERR The 'default' user cannot be removed");
    }
    if (const std::string problem = check_user_name(args[i]); !problem.empty()) {
      return session.refuse(out, problem);
    }
    command.names.push_back(args[i]);
  }
  if (session.refuse_when_draining(out)) return;
  auto encoded = kv::encode_command(command);
  if (!encoded) return session.refuse(out, "ERR " + encoded.error().message);
  session.propose(std::move(encoded).value(), ReplyForm::plain, {});
}

void run_acl_cat(Session& session, const Arguments& args, std::string& out) {
  if (args.size() > 3) return session.refuse(out, "ERR syntax error");
  if (args.size() == 2) {
    append_array(out, kCategoryNames.size());
    for (const std::string_view name : kCategoryNames) append_bulk(out, name);
    return;
  }
  const Categories wanted = category_named(lowered(args[2]));
  if (wanted == 0) {
    return session.refuse(out, fmt::format("ERR Unknown category {}", quoted(args[2])));
  }
  const CommandCatalogue& catalogue = accounts_of(session).catalogue();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < catalogue.size(); ++i) {
    if ((catalogue.categories_of(i) & wanted) != 0) names.emplace_back(catalogue.name_of(i));
  }
  append_texts(out, names);
}

void run_acl_genpass(Session& session, const Arguments& args, std::string& out) {
  const auto bits = args.size() > 2 ? parse_integer(args[2]) : kPasswordBits;
  if (args.size() > 3 || !bits || *bits < 1 || *bits > kPasswordBitsMax) {
    return session.refuse(
        out, fmt::format("ERR ACL GENPASS argument must be the number of bits for the output "
                         "password, a positive number up to {}",
                         kPasswordBitsMax));
  }
  const std::string password = random_hex(static_cast<std::size_t>(*bits));
  if (password.empty()) return append_error(out, "ERR the system has no randomness at present");
  append_bulk(out, password);
}

void run_acl_dryrun(Session& session, const Arguments& args, std::string& out) {
  const auto rights = accounts_of(session).find(users_of(session), args[2]);
  if (!rights) return session.refuse(out, fmt::format("ERR User {} not found", quoted(args[2])));
  const Arguments words(args.begin() + 3, args.end());
  const CommandSpec* spec = find_command(words);
  if (spec == nullptr) {
    return session.refuse(out, fmt::format("ERR Command {} not found", quoted(words[0])));
  }
  if (!arity_fits(*spec, words.size())) {
    return session.refuse(
        out, fmt::format("ERR wrong number of arguments for '{}' command", spec->name));
  }
  AclRefusal refusal;
  std::size_t steps = 0;
  const std::string why = why_not(*rights, command_table(), *spec, words, refusal, steps);
  if (why.empty()) return append_simple(out, "OK");
  append_bulk(out, why);
}

void run_acl_log(Session& session, const Arguments& args, std::string& out) {
  AclLog& log = accounts_of(session).log;
  if (args.size() > 3) return session.refuse(out, "ERR syntax error");
  if (args.size() == 3 && equals_ignoring_case(args[2], "reset")) {
    log.clear();
    return append_simple(out, "OK");
  }
  const auto count = args.size() == 3 ? parse_integer(args[2]) : kAclLogShown;
  if (!count || *count < 0) return session.refuse(out, kNotAnInteger);
  const auto entries = log.newest(static_cast<std::size_t>(*count));
  const auto now = wall_now();
  append_array(out, entries.size());
  for (const AclRefusal& entry : entries) {
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - entry.created);
    append_map(out, 10, session.protocol);
    const auto text = [&](std::string_view name, std::string_view value) {
      append_bulk(out, name);
      append_bulk(out, value);
    };
    const auto number = [&](std::string_view name, std::int64_t value) {
      append_bulk(out, name);
      append_integer(out, value);
    };
    number("count", static_cast<std::int64_t>(entry.count));
    text("reason", acl_reason_name(entry.reason));
    text("context", entry.context);
    text("object", entry.object);
    text("username", entry.user);
    text("age-seconds", fmt::format("{}.{:03}", age.count() / 1000, age.count() % 1000));
    text("client-info", entry.client);
    number("entry-id", static_cast<std::int64_t>(entry.id));
    number("timestamp-created", entry.created.count() / 1000);
    number("timestamp-last-updated", entry.updated.count() / 1000);
  }
}

}  // namespace leasehold::server
