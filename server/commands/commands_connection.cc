// Commands about the connection itself, and about its neighbours.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

namespace leasehold::server {
namespace {

constexpr std::size_t kClientNameBytesMax = 256;

/// The text of an error, or empty.
std::string check_client_name(std::string_view name) {
  if (name.size() > kClientNameBytesMax) {
    return fmt::format("ERR Client names have at most {} bytes", kClientNameBytesMax);
  }
  const bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
  return plain ? "" : "ERR Client names cannot contain spaces, newlines or special characters.";
}

/// What HELLO asks for, in addition to a user.
struct Greeting {
  Protocol protocol = Protocol::resp2;
  std::optional<std::string> name;
};

void greet(Session& session, const Greeting& greeting, std::string& out) {
  session.protocol = greeting.protocol;
  if (greeting.name) session.name = *greeting.name;
  append_map(out, 7, session.protocol);
  append_bulk(out, "server");
  append_bulk(out, "leasehold");
  append_bulk(out, "version");
  append_bulk(out, kVersion);
  append_bulk(out, "proto");
  append_integer(out, static_cast<int>(session.protocol));
  append_bulk(out, "id");
  append_integer(out, static_cast<std::int64_t>(session.id()));
  append_bulk(out, "mode");
  append_bulk(out, "standalone");
  append_bulk(out, "role");
  append_bulk(out, "master");  // in Redis a replica takes no writes; every node here does
  append_bulk(out, "modules");
  append_array(out, 0);
}

/// ID, ADDR and SKIPME of CLIENT KILL. The text of an error, or empty.
std::string parse_kill(const Session& session, const Arguments& args, ClientFilter& filter) {
  bool skip_me = true;
  for (std::size_t i = 2; i < args.size(); i += 2) {
    if (i + 1 == args.size()) return "ERR syntax error";
    const std::string_view value = args[i + 1];
    if (equals_ignoring_case(args[i], "id")) {
      const auto id = parse_integer(value);
      if (!id || *id < 1) return "ERR client-id should be greater than 0";
      filter.id = static_cast<std::uint64_t>(*id);
    } else if (equals_ignoring_case(args[i], "addr")) {
      filter.address = value;
    } else if (equals_ignoring_case(args[i], "skipme")) {
      const bool yes = equals_ignoring_case(value, "yes");
      if (!yes && !equals_ignoring_case(value, "no")) return "ERR syntax error";
      skip_me = yes;
    } else {
      return fmt::format("ERR syntax error at {}: only ID, ADDR and SKIPME are known",
                         quoted(args[i]));
    }
  }
  if (skip_me) filter.not_id = session.id();
  return {};
}

}  // namespace

void run_ping(Session& session, const Arguments& args, std::string& out) {
  if (args.size() > 2) {
    return session.refuse(out, "ERR wrong number of arguments for 'ping' command");
  }
  if (session.listening() && session.protocol == Protocol::resp2) {
    append_array(out, 2);
    append_bulk(out, "pong");
    return append_bulk(out, args.size() == 2 ? args[1] : "");
  }
  if (args.size() == 2) return append_bulk(out, args[1]);
  append_simple(out, "PONG");
}

void run_echo(Session&, const Arguments& args, std::string& out) {
  append_bulk(out, args[1]);
}

void run_select(Session& session, const Arguments& args, std::string& out) {
  const auto index = parse_integer(args[1]);
  if (!index) return session.refuse(out, kNotAnInteger);
  if (*index != 0) {
    return session.refuse(out, "ERR DB index is out of range: there is only DB 0");
  }
  append_simple(out, "OK");
}

void run_quit(Session& session, const Arguments&, std::string& out) {
  append_simple(out, "OK");
  session.close_after_replies();
}

void run_reset(Session& session, const Arguments&, std::string& out) {
  session.protocol = Protocol::resp2;
  session.forget_user();
  session.name.clear();
  session.multi().clear();
  session.stop_listening();
  session.set_read_policy({});
  session.select_group(session.context().groups.home());
  session.set_reply_wish(ReplyWish::all);
  append_simple(out, "RESET");
}

void run_hello(Session& session, const Arguments& args, std::string& out) {
  Greeting greeting;
  greeting.protocol = session.protocol;
  std::optional<std::pair<std::string_view, std::string_view>> user;
  std::size_t at = 1;
  if (at < args.size()) {
    const auto version = parse_integer(args[at++]);
    if (!version || (*version != 2 && *version != 3)) {
      return session.refuse(out, "NOPROTO unsupported protocol version: 2 and 3 are spoken here");
    }
    greeting.protocol = *version == 3 ? Protocol::resp3 : Protocol::resp2;
  }
  while (at < args.size()) {
    if (equals_ignoring_case(args[at], "setname") && at + 1 < args.size()) {
      greeting.name = args[at + 1];
      if (const std::string problem = check_client_name(*greeting.name); !problem.empty()) {
        return session.refuse(out, problem);
      }
      at += 2;
    } else if (equals_ignoring_case(args[at], "auth") && at + 2 < args.size()) {
      user = {args[at + 1], args[at + 2]};
      at += 3;
    } else {
      return session.refuse(out, "ERR Syntax error in HELLO option " + quoted(args[at]));
    }
  }
  if (user) {
    return session.authenticate(
        user->first, user->second,
        [greeting](Session& greeted, std::string& reply) { greet(greeted, greeting, reply); }, out);
  }
  if (!session.user().rights) {
    return session.refuse(
        out,
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  }
  greet(session, greeting, out);
}

void run_client_id(Session& session, const Arguments&, std::string& out) {
  append_integer(out, static_cast<std::int64_t>(session.id()));
}

void run_client_getname(Session& session, const Arguments&, std::string& out) {
  if (session.name.empty()) return append_null(out, session.protocol);
  append_bulk(out, session.name);
}

void run_client_setname(Session& session, const Arguments& args, std::string& out) {
  if (const std::string problem = check_client_name(args[2]); !problem.empty()) {
    return session.refuse(out, problem);
  }
  session.name = std::string(args[2]);
  append_simple(out, "OK");
}

void run_client_info(Session& session, const Arguments&, std::string& out) {
  append_bulk(out, session.describe(0));
}

// Accepted, because client libraries send them unasked; there is nothing here to change.

void run_client_noted(Session&, const Arguments&, std::string& out) {
  append_simple(out, "OK");
}

void run_client_on_off(Session& session, const Arguments& args, std::string& out) {
  if (!equals_ignoring_case(args[2], "on") && !equals_ignoring_case(args[2], "off")) {
    return session.refuse(out, "ERR syntax error");
  }
  append_simple(out, "OK");
}

void run_client_reply(Session& session, const Arguments& args, std::string& out) {
  if (equals_ignoring_case(args[2], "on")) {
    session.set_reply_wish(ReplyWish::all);
    append_simple(out, "OK");
  } else if (equals_ignoring_case(args[2], "off")) {
    session.set_reply_wish(ReplyWish::none);
  } else if (equals_ignoring_case(args[2], "skip")) {
    session.set_reply_wish(ReplyWish::not_the_next);
  } else {
    session.refuse(out, "ERR syntax error");
  }
}

void run_client_list(Session& session, const Arguments& args, std::string& out) {
  ClientDirectory* clients = session.context().state.clients_known;
  if (args.size() > 2) {
    return session.refuse(out, "ERR CLIENT LIST takes no options here: it lists all");
  }
  if (clients == nullptr) return append_bulk(out, session.describe(0));
  clients->list({}, [done = session.answer_later()](const std::string& lines) {
    std::string reply;
    append_bulk(reply, lines);
    done(std::move(reply));
  });
}

void run_client_kill(Session& session, const Arguments& args, std::string& out) {
  ClientFilter filter;
  const bool by_address = args.size() == 3;  // the old form, with a reply of its own
  if (by_address) {
    filter.address = args[2];
  } else if (const std::string problem = parse_kill(session, args, filter); !problem.empty()) {
    return session.refuse(out, problem);
  }
  ClientDirectory* clients = session.context().state.clients_known;
  if (clients == nullptr) return session.refuse(out, "ERR No such client");
  clients->kill(std::move(filter), session.id(),
                [by_address, done = session.answer_later()](std::size_t count) {
                  std::string reply;
                  if (!by_address) {
                    append_integer(reply, static_cast<std::int64_t>(count));
                  } else if (count > 0) {
                    append_simple(reply, "OK");
                  } else {
                    append_error(reply, "ERR No such client");
                  }
                  done(std::move(reply));
                });
}

}  // namespace leasehold::server
