// Commands on the time of keys: what they ask of the store.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/key_times.h>
#include <leasehold/server/front/words.h>

namespace leasehold::server {
namespace {

/// Any of NX, XX, GT and LT. The text of an error, or empty.
std::string parse_conditions(const Arguments& args, kv::TimeCondition& condition) {
  bool nx = false, xx = false, gt = false, lt = false;
  for (std::size_t i = 3; i < args.size(); ++i) {
    if (equals_ignoring_case(args[i], "nx")) {
      nx = true;
    } else if (equals_ignoring_case(args[i], "xx")) {
      xx = true;
    } else if (equals_ignoring_case(args[i], "gt")) {
      gt = true;
    } else if (equals_ignoring_case(args[i], "lt")) {
      lt = true;
    } else {
      return "ERR Unsupported option " + std::string(args[i].substr(0, kQuotedBytesMax));
    }
  }
  if (nx && (xx || gt || lt)) {
    return "ERR NX and XX, GT or LT options at the same time are not compatible";
  }
  if (gt && lt) return "ERR GT and LT options at the same time are not compatible";
  if (nx) {
    condition = kv::TimeCondition::nx;
  } else if (gt) {
    condition = kv::TimeCondition::gt;  // a key that lives forever does not end earlier
  } else if (lt) {
    condition = xx ? kv::TimeCondition::xx_lt : kv::TimeCondition::lt;
  } else if (xx) {
    condition = kv::TimeCondition::xx;
  }
  return {};
}

std::string make_expiry(const Arguments& args, TimeUnit unit, kv::Operation& operation) {
  kv::ExpireKey expire;
  expire.key = args[1];
  if (std::string problem = parse_conditions(args, expire.condition); !problem.empty()) {
    return problem;
  }
  GivenTime time;
  std::string problem = parse_key_time(args[2], unit, lowered(args[0]), false, time);
  expire.ttl = time.ttl;
  expire.end_ms = time.end_ms;
  operation = expire;
  return problem;
}

std::string make_set_for(const Arguments& args, TimeUnit unit, kv::Operation& operation) {
  kv::Set set;
  set.key = args[1];
  set.value = args[3];
  GivenTime time;
  std::string problem = parse_key_time(args[2], unit, lowered(args[0]), true, time);
  set.ttl = time.ttl;
  set.end_ms = time.end_ms;
  operation = set;
  return problem;
}

}  // namespace

std::string make_expire(const Arguments& args, kv::Operation& operation) {
  return make_expiry(args, {true, false}, operation);
}

std::string make_expireat(const Arguments& args, kv::Operation& operation) {
  return make_expiry(args, {true, true}, operation);
}

std::string make_pexpire(const Arguments& args, kv::Operation& operation) {
  return make_expiry(args, {false, false}, operation);
}

std::string make_pexpireat(const Arguments& args, kv::Operation& operation) {
  return make_expiry(args, {false, true}, operation);
}

std::string make_setex(const Arguments& args, kv::Operation& operation) {
  return make_set_for(args, {true, false}, operation);
}

std::string make_psetex(const Arguments& args, kv::Operation& operation) {
  return make_set_for(args, {false, false}, operation);
}

std::string make_persist(const Arguments& args, kv::Operation& operation) {
  operation = kv::ExpireKey{args[1], kv::TimeChange::remove};
  return {};
}

std::string make_key_lease(const Arguments& args, kv::Operation& operation) {
  operation = kv::KeyLease{args[1]};
  return {};
}

std::string make_getex(const Arguments& args, kv::Operation& operation) {
  if (args.size() == 2) {
    operation = kv::Get{args[1]};
    return {};
  }
  kv::ExpireKey expire;
  expire.key = args[1];
  expire.get = true;
  bool persist = false;
  TimeOption time;
  for (std::size_t i = 2; i < args.size(); ++i) {
    if (!time.given() && equals_ignoring_case(args[i], "persist")) {
      persist = true;
    } else if (persist || !time.take(args, i)) {
      return "ERR syntax error";
    }
  }
  if (persist) expire.change = kv::TimeChange::remove;
  GivenTime given;
  std::string problem = persist ? std::string() : time.parse("getex", given);
  expire.ttl = given.ttl;
  expire.end_ms = given.end_ms;
  operation = expire;
  return problem;
}

}  // namespace leasehold::server
