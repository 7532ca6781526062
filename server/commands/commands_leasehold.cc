// What Redis does not have.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/map_reply.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/slots_text.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <utility>

namespace leasehold::server {
namespace {

constexpr const char* kModes =
    "expected lease, quorum, log, or stale and a bound as in stale 500ms";

/// Takes a mode, and for stale its bound, from `at` on. The text of an error, or empty.
std::string parse_policy(const Arguments& args, std::size_t& at, ReadPolicy& policy) {
  const auto named = read_policy_named(lowered(args[at]));
  if (!named) return fmt::format("ERR unknown read mode {}: {}", quoted(args[at]), kModes);
  policy = *named;
  ++at;
  if (!policy.stale_bound) return {};
  if (at == args.size()) return fmt::format("ERR stale needs a bound: {}", kModes);
  const auto bound = parse_duration(args[at].substr(0, kQuotedBytesMax));
  if (!bound) return "ERR " + bound.error().message;
  if (bound.value() <= lease::Duration(0) || bound.value() > kStaleBoundMax) {
    return "ERR the bound of stale reads is above 0 and at most an hour";
  }
  policy.stale_bound = bound.value();
  ++at;
  return {};
}

std::int64_t microseconds(lease::Duration duration) {
  return duration.count() / 1000;
}

/// Paths are text of the operator: bytes that are not UTF-8 are replaced, and throw nothing.
std::string json_text(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// The words behind the name. None: another one is among them.
std::optional<BackupWanted> parse_wanted(const Arguments& args) {
  BackupWanted wanted;
  for (std::size_t i = 3; i < args.size(); ++i) {
    const bool stale = equals_ignoring_case(args[i], "stale");
    if (!stale && !equals_ignoring_case(args[i], "settled")) return std::nullopt;
    bool& word = stale ? wanted.stale : wanted.settled;
    if (std::exchange(word, true)) return std::nullopt;
  }
  return wanted;
}

/// The first word of a refusal tells the client whether to try another node.
std::string error_word(const Error& error) {
  switch (error.code) {
    case ErrorCode::unavailable: return "NOLEADER ";
    case ErrorCode::overloaded:
    case ErrorCode::stopped: return "TRYAGAIN ";
    default: return "ERR ";
  }
}

}  // namespace

void run_leasehold_status(Session& session, const Arguments&, std::string&) {
  const ServedGroups& groups = session.context().groups;
  const auto selected = static_cast<std::size_t>(&session.group() - groups.all().data());
  session.with_statuses([&state = session.context().state, &groups, selected](
                            const std::vector<node::NodeStatus>& statuses, std::string& reply) {
    append_bulk(reply, status_json(statuses, state, groups, selected));
  });
}

void run_leasehold_backup(Session& session, const Arguments& args, std::string& out) {
  const auto& backup = session.group().backups.write;
  if (!backup) return session.refuse(out, "ERR this server writes no backups");
  const auto wanted = parse_wanted(args);
  if (!wanted) {
    return session.refuse(out, "ERR expected LEASEHOLD BACKUP name [STALE] [SETTLED]");
  }
  backup(args[2], *wanted, [answer = session.answer_later()](Result<BackupDone> done) {
    std::string reply;
    if (done) {
      const BackupManifest& manifest = done.value().manifest;
      nlohmann::ordered_json made = {
          {"path", done.value().path},     {"node", manifest.node.value()},
          {"term", manifest.term.value()}, {"index", manifest.index.value()},
          {"revision", manifest.revision}, {"keys", manifest.keys},
          {"bytes", done.value().bytes},   {"generation", generation_text(manifest.generation)}};
      if (!done.value().slots.empty()) made["slots"] = slots_text(done.value().slots);
      append_bulk(reply, json_text(made));
    } else {
      append_error(reply, error_word(done.error()) + done.error().message);
    }
    answer(std::move(reply));
  });
}

void run_leasehold_readbackup(Session& session, const Arguments& args, std::string& out) {
  const auto& read = session.group().backups.read;
  if (!read) return session.refuse(out, "ERR this server writes no backups");
  const auto offset = parse_integer(args[3]);
  if (!offset || *offset < 0) {
    return session.refuse(out, "ERR the offset is a number of bytes, 0 or more");
  }
  session.context().background->post([&read, name = std::string(args[2]),
                                      from = static_cast<std::uint64_t>(*offset),
                                      answer = session.answer_later()] {
    std::string reply;
    if (const auto bytes = read(name, from); bytes) {
      append_bulk(reply, bytes.value());
    } else {
      append_error(reply, error_word(bytes.error()) + bytes.error().message);
    }
    answer(std::move(reply));
  });
}

void run_leasehold_snapshot(Session& session, const Arguments&, std::string&) {
  session.group().group.cut_log([answer = session.answer_later()](Result<replica::LogCut> done) {
    std::string reply;
    if (done) {
      const replica::LogCut& cut = done.value();
      append_bulk(reply, json_text({{"index", cut.durable.value()},
                                    {"first_before", cut.first_before.value()},
                                    {"first", cut.first.value()},
                                    {"log_bytes_before", cut.bytes_before},
                                    {"log_bytes", cut.bytes}}));
    } else {
      append_error(reply, error_word(done.error()) + done.error().message);
    }
    answer(std::move(reply));
  });
}

void run_leasehold_reload(Session& session, const Arguments&, std::string& out) {
  const auto& reload = session.context().state.options.reload;
  if (!reload) return session.refuse(out, "ERR this server has no certificates to read again");
  session.context().background->post([&reload, answer = session.answer_later()] {
    std::string reply;
    if (const auto read = reload(); read) {
      append_bulk(reply, read.value());
    } else {
      append_error(reply, fmt::format("ERR everything stays as it was: {}", read.error().message));
    }
    answer(std::move(reply));
  });
}

void run_leasehold_clock(Session& session, const Arguments&, std::string& out) {
  const ServerOptions& options = session.context().state.options;
  if (!options.clocks) return session.refuse(out, "ERR this server tells no clocks");
  const lease::Now now = options.clocks();
  MapReply reply;
  reply.add("holder_ns", now.holder.since_origin().count());
  reply.add("promise_ns", now.promise.since_origin().count());
  reply.add("machine", options.machine);
  reply.finish(out, session.protocol);
}

void run_leasehold_host(Session& session, const Arguments& args, std::string& out) {
  const auto& add_host = session.context().state.options.add_host;
  if (!equals_ignoring_case(args[2], "add")) {
    return session.refuse(out, "ERR expected LEASEHOLD HOST ADD id=host:port");
  }
  if (!add_host) {
    return session.refuse(out, "ERR this node has one group: LEASEHOLD MEMBER ADD adds a member");
  }
  const std::size_t equals = args[3].find('=');
  const auto id = parse_integer(args[3].substr(0, equals));
  if (equals == std::string_view::npos || !id || *id < 1) {
    return session.refuse(out, "ERR write the node as id=host:port");
  }
  const raft::NodeId node(static_cast<std::uint64_t>(*id));
  session.context().background->post([&add_host, node,
                                      address = std::string(args[3].substr(equals + 1)),
                                      answer = session.answer_later()] {
    std::string reply;
    if (const auto added = add_host(node, address); added) {
      append_simple(reply, "OK");
    } else {
      append_error(reply, "ERR " + added.error().message);
    }
    answer(std::move(reply));
  });
}

void run_leasehold_readmode(Session& session, const Arguments& args, std::string& out) {
  if (args.size() == 2) {
    const ReadPolicy& policy = session.read_policy();
    std::string text = read_policy_name(policy);
    if (policy.stale_bound) text += " " + format_duration(*policy.stale_bound);
    return append_bulk(out, text);
  }
  ReadPolicy policy;
  std::size_t at = 2;
  std::string problem = parse_policy(args, at, policy);
  if (problem.empty() && at != args.size()) {
    problem = fmt::format("ERR {} is one word too many: {}", quoted(args[at]), kModes);
  }
  if (!problem.empty()) return session.refuse(out, problem);
  session.set_read_policy(policy);
  append_simple(out, "OK");
}

void run_leasehold_read(Session& session, const Arguments& args, std::string& out) {
  ReadPolicy policy;
  std::size_t at = 2;
  if (const std::string problem = parse_policy(args, at, policy); !problem.empty()) {
    return session.refuse(out, problem);
  }
  if (at == args.size()) {
    return session.refuse(out, "ERR the command is missing: LEASEHOLD READ quorum GET key");
  }
  const Arguments words(args.begin() + static_cast<std::ptrdiff_t>(at), args.end());
  const CommandSpec* spec = find_command(words);
  if (spec == nullptr || spec->effect != CommandEffect::read ||
      spec->group == CommandGroup::transactions) {
    return session.refuse(out,
                          fmt::format("ERR {} is not a command that reads keys", quoted(words[0])));
  }
  if (!arity_fits(*spec, words.size())) {
    return session.refuse(
        out, fmt::format("ERR wrong number of arguments for '{}' command", spec->name));
  }
  if (const std::string why = session.refusal_of(*spec, words, "toplevel"); !why.empty()) {
    return session.refuse(out, why);
  }
  if (const std::string why = session.find_group(*spec, words); !why.empty()) {
    return session.refuse(out, why);
  }
  session.read(*spec, words, policy, out);
}

namespace {

struct OwnSlots {
  std::int64_t count = 0;
  std::int64_t first = -1;  ///< with `last`: -1 without any
  std::int64_t last = -1;
};

OwnSlots slots_of(const ServedGroups& groups, std::size_t group) {
  OwnSlots own;
  for (std::uint32_t slot = 0; slot < kv::kSlots; ++slot) {
    if (groups.number_of_slot(slot) != group) continue;
    if (own.count++ == 0) own.first = slot;
    own.last = slot;
  }
  return own;
}

}  // namespace

void run_leasehold_group(Session& session, const Arguments& args, std::string& out) {
  const std::vector<ServedGroup>& groups = session.context().groups.all();
  if (args.size() == 2) {
    const auto selected = static_cast<std::size_t>(&session.group() - groups.data());
    MapReply reply;
    reply.add("group", static_cast<std::int64_t>(selected + 1));
    reply.add("groups", static_cast<std::int64_t>(groups.size()));
    const OwnSlots own = slots_of(session.context().groups, selected);
    reply.add("slots", own.count);
    reply.add("first-slot", own.first);
    reply.add("last-slot", own.last);
    return reply.finish(out, session.protocol);
  }
  if (args.size() == 4 && equals_ignoring_case(args[2], "key")) {
    session.select_group(session.context().groups.of_slot(kv::slot_of(args[3])));
    return append_simple(out, "OK");
  }
  const auto number = args.size() == 3 ? parse_integer(args[2]) : std::nullopt;
  if (!number || *number < 1 || static_cast<std::uint64_t>(*number) > groups.size()) {
    return session.refuse(out, fmt::format("ERR expected LEASEHOLD GROUP [number | KEY key], "
                                           "with a number from 1 to {}",
                                           groups.size()));
  }
  session.select_group(groups[static_cast<std::size_t>(*number) - 1]);
  append_simple(out, "OK");
}

void run_leasehold_explain(Session& session, const Arguments&, std::string& out) {
  const ReadNote& note = session.last_read();
  MapReply reply;
  reply.add("served", read_end_name(note.end));
  if (note.end == ReadEnd::none) return reply.finish(out, session.protocol);
  reply.add("mode", read_policy_name(note.policy));
  if (note.policy.stale_bound) {
    reply.add("bound_us", microseconds(*note.policy.stale_bound));
    reply.add("bound_held", note.bound_missed ? "no" : "yes");
  }
  std::string why = read_fallback_text(note.fallback);
  if (note.bound_missed) {
    const std::string first = read_fallback_text(ReadFallback::not_fresh);
    why = why.empty() ? first : fmt::format("{}; {}", first, why);
  }
  reply.add("fallback", why);
  const bool leased = note.look.valid();
  reply.add("lease_left_us", leased ? microseconds(note.look.state.end - note.look.at) : 0);
  reply.add("term", static_cast<std::int64_t>(note.look.state.term.value()));
  reply.add("commit", static_cast<std::int64_t>(note.look.state.commit.value()));
  reply.add("sent", static_cast<std::int64_t>(note.look.state.sent_commit.value()));
  reply.add("applied", static_cast<std::int64_t>(note.applied.value()));
  const bool asked = note.index.value() != 0 && note.end != ReadEnd::refused;
  if (asked) reply.add("index", static_cast<std::int64_t>(note.index.value()));
  reply.add("waited_us", microseconds(note.waited));
  reply.finish(out, session.protocol);
}

}  // namespace leasehold::server
