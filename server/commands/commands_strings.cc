// What the commands on string values ask of the store.
#include <leasehold/kv/decimal.h>
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/key_times.h>
#include <leasehold/server/front/lease_word.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <limits>
#include <optional>

namespace leasehold::server {
namespace {

std::string add(std::string_view key, std::int64_t delta, kv::Operation& operation) {
  kv::IncrBy command;
  command.key = key;
  command.delta = delta;
  operation = command;
  return {};
}

std::string make_pairs(const Arguments& args, bool if_none_exists, kv::Operation& operation) {
  if (args.size() % 2 == 0) {
    return fmt::format("ERR wrong number of arguments for '{}' command", lowered(args[0]));
  }
  kv::MSet mset;
  if (if_none_exists) mset.condition = kv::MSetCondition::none_exists;
  mset.pairs.reserve(args.size() / 2);
  for (std::size_t i = 1; i < args.size(); i += 2) mset.pairs.emplace_back(args[i], args[i + 1]);
  operation = std::move(mset);
  return {};
}

bool given(const kv::LeaseRef& lease) {
  return lease.id != grant::LeaseId(0) || !lease.name.empty();
}

}  // namespace

std::string make_append(const Arguments& args, kv::Operation& operation) {
  operation = kv::Append{args[1], args[2]};
  return {};
}

std::string make_incr(const Arguments& args, kv::Operation& operation) {
  return add(args[1], 1, operation);
}

std::string make_decr(const Arguments& args, kv::Operation& operation) {
  return add(args[1], -1, operation);
}

std::string make_incrby(const Arguments& args, kv::Operation& operation) {
  const auto delta = parse_integer(args[2]);
  if (!delta) return kNotAnInteger;
  return add(args[1], *delta, operation);
}

std::string make_incrbyfloat(const Arguments& args, kv::Operation& operation) {
  const std::string delta = lowered(args[2]);
  const std::string_view unsigned_delta = std::string_view(delta).substr(
      !delta.empty() && (delta[0] == '-' || delta[0] == '+') ? 1 : 0);
  if (unsigned_delta == "inf" || unsigned_delta == "infinity") {
    return "ERR increment would produce NaN or Infinity";
  }
  if (!kv::is_decimal(args[2])) return "ERR value is not a valid float";
  operation = kv::IncrByFloat{args[1], args[2]};
  return {};
}

std::string make_decrby(const Arguments& args, kv::Operation& operation) {
  const auto delta = parse_integer(args[2]);
  if (!delta) return kNotAnInteger;
  if (*delta == std::numeric_limits<std::int64_t>::min()) {
    return "ERR decrement would overflow";
  }
  return add(args[1], -*delta, operation);
}

std::string make_get(const Arguments& args, kv::Operation& operation) {
  operation = kv::Get{args[1]};
  return {};
}

std::string make_getdel(const Arguments& args, kv::Operation& operation) {
  operation = kv::GetDel{args[1]};
  return {};
}

std::string make_getrange(const Arguments& args, kv::Operation& operation) {
  const auto start = parse_integer(args[2]);
  const auto end = parse_integer(args[3]);
  if (!start || !end) return kNotAnInteger;
  operation = kv::GetRange{*start, *end, args[1]};
  return {};
}

std::string make_getset(const Arguments& args, kv::Operation& operation) {
  operation = kv::Set{args[1], args[2], kv::SetCondition::none, true};
  return {};
}

std::string make_lcs(const Arguments& args, kv::Operation& operation) {
  kv::Lcs lcs;
  lcs.a = args[1];
  lcs.b = args[2];
  bool length = false;
  bool runs = false;
  for (std::size_t i = 3; i < args.size(); ++i) {
    if (equals_ignoring_case(args[i], "idx")) {
      runs = true;
    } else if (equals_ignoring_case(args[i], "len")) {
      length = true;
    } else if (equals_ignoring_case(args[i], "withmatchlen")) {
      lcs.lengths = true;
    } else if (equals_ignoring_case(args[i], "minmatchlen") && i + 1 < args.size()) {
      const auto least = parse_integer(args[++i]);
      if (!least) return kNotAnInteger;
      lcs.least = *least < 0 ? 0 : static_cast<std::uint64_t>(*least);
    } else {
      return "ERR syntax error";
    }
  }
  if (length && runs) return "ERR If you want both the length and indexes, please just use IDX.";
  if (length) lcs.wanted = kv::LcsWanted::length;
  if (runs) lcs.wanted = kv::LcsWanted::runs;
  operation = lcs;
  return {};
}

std::string make_mget(const Arguments& args, kv::Operation& operation) {
  operation = kv::MGet{{args.begin() + 1, args.end()}};
  return {};
}

std::string make_mset(const Arguments& args, kv::Operation& operation) {
  return make_pairs(args, false, operation);
}

std::string make_msetnx(const Arguments& args, kv::Operation& operation) {
  return make_pairs(args, true, operation);
}

std::string make_setnx(const Arguments& args, kv::Operation& operation) {
  return make_pairs(args, true, operation);
}

std::string make_set(const Arguments& args, kv::Operation& operation) {
  kv::Set command;
  command.key = args[1];
  command.value = args[2];
  TimeOption time;
  kv::LeaseRef lease;
  using Condition = kv::SetCondition;
  for (std::size_t i = 3; i < args.size(); ++i) {
    if (command.condition != Condition::xx && equals_ignoring_case(args[i], "nx")) {
      command.condition = Condition::nx;
    } else if (command.condition != Condition::nx && equals_ignoring_case(args[i], "xx")) {
      command.condition = Condition::xx;
    } else if (equals_ignoring_case(args[i], "get")) {
      command.get_old = true;
    } else if (!time.given() && equals_ignoring_case(args[i], "keepttl")) {
      command.keep_lease = true;
    } else if (!command.keep_lease && time.take(args, i)) {
      continue;
    } else if (i + 1 < args.size() && !given(lease) && equals_ignoring_case(args[i], "lease")) {
      if (std::string problem = parse_lease(args[++i], lease); !problem.empty()) return problem;
    } else if (i + 1 < args.size() && command.token == grant::FencingToken(0) &&
               equals_ignoring_case(args[i], "token")) {
      const auto token = parse_integer(args[++i]);
      if (!token || *token < 1)
        return fmt::format("ERR {} is not a fencing token", quoted(args[i]));
      command.token = grant::FencingToken(static_cast<std::uint64_t>(*token));
    } else {
      return fmt::format(
          "ERR syntax error at {}: SET key value [NX | XX] [GET] [EX s | PX ms | EXAT s "
          "| PXAT ms | LEASE lease | KEEPTTL] [TOKEN token]",
          quoted(args[i]));
    }
  }
  if (given(lease) && (command.keep_lease || time.given())) {
    return "ERR a key has one lease: that which is named (LEASE), or the one that it has "
           "(KEEPTTL), or one of its own (EX, PX, EXAT, PXAT)";
  }
  if (time.given()) {
    GivenTime given;
    if (std::string problem = time.parse("set", given); !problem.empty()) return problem;
    command.ttl = given.ttl;
    command.end_ms = given.end_ms;
  }
  operation = about(lease, command, &kv::Set::lease);
  return {};
}

std::string make_setrange(const Arguments& args, kv::Operation& operation) {
  const auto offset = parse_integer(args[2]);
  if (!offset) return kNotAnInteger;
  if (*offset < 0) return "ERR offset is out of range";
  const auto limit = static_cast<std::int64_t>(kv::kValueBytesMax);
  if (*offset > limit && !args[3].empty()) {
    return fmt::format("ERR the value would be longer than {} bytes", limit);
  }
  operation = kv::SetRange{static_cast<std::uint32_t>(std::min(*offset, limit)), args[1], args[3]};
  return {};
}

std::string make_setseq(const Arguments& args, kv::Operation& operation) {
  kv::SetSequential command;
  kv::LeaseRef lease;
  command.prefix = args[1];
  command.value = args[2];
  if (args.size() > 3) {
    if (args.size() != 5 || !equals_ignoring_case(args[3], "lease")) {
      return "ERR expected SETSEQ prefix value [LEASE lease]";
    }
    if (std::string problem = parse_lease(args[4], lease); !problem.empty()) return problem;
  }
  operation = about(lease, command, &kv::SetSequential::lease);
  return {};
}

std::string make_strlen(const Arguments& args, kv::Operation& operation) {
  operation = kv::StrLen{args[1]};
  return {};
}

void run_get(Session& session, const Arguments& args, std::string& out) {
  const auto found = session.group().store.get(args[1]);
  if (!found) {
    append_error(out, "ERR the store failed: " + found.error().message);
  } else if (found.value()) {
    append_bulk(out, found.value()->bytes.view());
  } else {
    append_null(out, session.protocol);
  }
}

}  // namespace leasehold::server
