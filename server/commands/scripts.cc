#include <leasehold/server/commands/scripts.h>
#include <leasehold/server/front/key_times.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>
#include <nettle/sha1.h>

#include <algorithm>
#include <array>

namespace leasehold::server {
namespace {

struct Known {
  std::string_view digest;  ///< of the normal form
  Script script;
};

using Action = ScriptAction;

/// Which libraries send them, as far as their texts were looked at: docs/resp.md.
constexpr Known kKnown[] = {
    // redis-py 2.10 to 5, Lock: release.
    {"16d4f25a8b1272dc33002e333ca708ee3f94da4e", {Action::del_if_equal, false}},
    // redis-py from 3.0 on, Lock: extend.
    {"bce326b8a0b21cc21af307b604335bbdd4e6ad86", {Action::retime_if_equal, false}},
    // redis-py 2.10, LuaLock: extend, which always adds.
    {"ea4493c90772bac177fcb31b5f6309873fd77401", {Action::add_if_equal, false}},
    // redis-py, Lock: reacquire.
    {"b57b48d5536ae982a91ca9929e89a43a617db101", {Action::pexpire_or_nothing, false}},
    // The script that Redis's page on SET proposes: node-redlock 2 and 3, redislock, and many
    // users' own code.
    {"278b7fc39f087c6276c7b7c08962022c4fe73ba6", {Action::del_if_equal, false}},
    {"4a2b93c641e26a1ee37fe8a6683a72a507f6895b", {Action::del_if_equal, false}},
    // redsync (touch), node-redlock 2 and 3 (extend), redislock (refresh).
    {"43e9817a622cba86ea5a7b09b0c27646e33f4699", {Action::pexpire_or_nothing, false}},
    {"e27385891d7fe11baa62e6758fefe312e058f336", {Action::expire_or_nothing, false}},
    // redislock: how long the lock is still held.
    {"2a7eeb58bfd3bfd5e34ac2be357d77d7a0039f6a", {Action::pttl_if_equal, false}},
    // redsync 4: release, and touch with a set.
    {"d40d763d8f1fdb770873ffdbdc1cc2112866366a", {Action::del_or_minus_one, false}},
    {"63719198579dd67df3c84e5c3e12b4b0edf8cee8", {Action::pexpire_or_set, false}},
    // node-redlock 2 and 3: acquire.
    {"9f3699351e87582ad9d22b41f4e10299273eea7d", {Action::set_if_none, false}},
    // node-redlock 4 and 5: acquire, extend, release; and the same with a database.
    {"efd90cc1d10d9161bc93896108742c697ce29faf", {Action::set_all_if_none, false}},
    {"40cb6828065d3430c3033e27c7ec72abe4d076f6", {Action::set_all_if_equal, false}},
    {"872463717b9d8763339c3b80e81ba68c1dbb28c2", {Action::del_each_if_equal, false}},
    {"33105ca68ad6aee7d68c8aa0d7528352aa98f255", {Action::set_all_if_none, true}},
    {"83ae867f0d18f8e9d61a596106ffa93f26ef0bc1", {Action::set_all_if_equal, true}},
    {"a2bd082eb5b850c50e40c345c53c6e3fa7a94022", {Action::del_each_if_equal, true}},
};

bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool is_word(char c) {
  const char l = lower(c);
  return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/// How many arguments an action looks at.
std::size_t arguments_of(Action action) {
  switch (action) {
    case Action::del_if_equal:
    case Action::del_or_minus_one:
    case Action::del_each_if_equal:
    case Action::pttl_if_equal: return 1;
    case Action::expire_or_nothing:
    case Action::pexpire_or_nothing:
    case Action::pexpire_or_set:
    case Action::add_if_equal:
    case Action::set_if_none:
    case Action::set_all_if_none:
    case Action::set_all_if_equal: return 2;
    case Action::retime_if_equal: return 3;
  }
  return 0;
}

kv::ExpireKey retime(std::string_view key, std::string_view value, kv::KeyTime ttl) {
  kv::ExpireKey expire;
  expire.key = key;
  expire.ttl = ttl;
  expire.value = value;
  return expire;
}

kv::MSet set_all(const Arguments& keys, std::string_view value, kv::KeyTime ttl,
                 kv::MSetCondition condition) {
  kv::MSet mset;
  mset.condition = condition;
  mset.ttl = ttl;
  for (const std::string_view key : keys) mset.pairs.emplace_back(key, value);
  return mset;
}

/// The operations of an action whose arguments are complete; `ttl` is its time, if it has one.
void add_operations(Action action, const Arguments& keys, const Arguments& args, kv::KeyTime ttl,
                    ScriptCall& call) {
  const std::string_view key = keys[0];
  const std::string_view value = args[0];
  auto& operations = call.operations;
  switch (action) {
    case Action::del_if_equal: operations.emplace_back(kv::DelEqual{value, {key}}); break;
    case Action::del_each_if_equal: operations.emplace_back(kv::DelEqual{value, keys}); break;
    case Action::del_or_minus_one:
      operations.emplace_back(kv::Exists{{key}});
      operations.emplace_back(kv::DelEqual{value, {key}});
      call.form = ReplyForm::deleted_or_minus_one;
      break;
    case Action::expire_or_nothing:
    case Action::pexpire_or_nothing: operations.emplace_back(retime(key, value, ttl)); break;
    case Action::pexpire_or_set: {
      operations.emplace_back(retime(key, value, ttl));
      kv::Set set{key, value, kv::SetCondition::nx};
      set.ttl = ttl;
      operations.emplace_back(set);
      call.form = ReplyForm::any_done;
      break;
    }
    case Action::add_if_equal:
    case Action::retime_if_equal: {
      kv::ExpireKey expire = retime(key, value, ttl);
      if (action == Action::add_if_equal || args[2] == "0") {
        expire.change = kv::TimeChange::add;
      } else {
        expire.condition = kv::TimeCondition::xx;
      }
      operations.emplace_back(expire);
      break;
    }
    case Action::pttl_if_equal:
      operations.emplace_back(kv::KeyLease{key, value});
      call.form = ReplyForm::held_milliseconds;
      break;
    case Action::set_if_none: {
      kv::Set set{key, value, kv::SetCondition::nx};
      set.ttl = ttl;
      operations.emplace_back(set);
      break;
    }
    case Action::set_all_if_none:
      operations.emplace_back(set_all(keys, value, ttl, kv::MSetCondition::none_exists));
      operations.emplace_back(kv::Exists{keys});
      call.form = ReplyForm::how_many_if_done;
      break;
    case Action::set_all_if_equal:
      operations.emplace_back(set_all(keys, value, ttl, kv::MSetCondition::all_equal));
      break;
  }
}

/// Whether the script gives its time to SET, which takes none that is over.
bool sets(Action action) {
  return action == Action::pexpire_or_set || action >= Action::set_if_none;
}

}  // namespace

std::string script_digest(std::string_view text) {
  sha1_ctx context;
  sha1_init(&context);
  sha1_update(&context, text.size(), reinterpret_cast<const std::uint8_t*>(text.data()));
  std::array<std::uint8_t, SHA1_DIGEST_SIZE> bytes{};
  sha1_digest(&context, bytes.size(), bytes.data());
  std::string out;
  for (const std::uint8_t byte : bytes) {
    out += "0123456789abcdef"[byte >> 4U];
    out += "0123456789abcdef"[byte & 15U];
  }
  return out;
}

std::optional<std::string> script_normal_form(std::string_view text) {
  if (text.size() > kScriptBytesMax) return std::nullopt;
  std::string out;
  bool apart = false;
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (is_blank(c)) {
      apart = true;
      ++at;
      continue;
    }
    const std::string_view pair = text.substr(at, 2);
    if (pair == "--") {
      if (text.substr(at + 2, 1) == "[") return std::nullopt;
      at = std::min(text.find('\n', at), text.size());
      apart = true;
      continue;
    }
    if (pair == "[[" || pair == "[=") return std::nullopt;
    if (apart && !out.empty() && is_word(out.back()) && is_word(c)) out += ' ';
    apart = false;
    if (c != '"' && c != '\'') {
      out += c;
      ++at;
      continue;
    }
    const std::size_t end = text.find(c, at + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view literal = text.substr(at + 1, end - at - 1);
    if (literal.find_first_of("\\\"\n") != std::string_view::npos) return std::nullopt;
    out += '"';
    std::transform(literal.begin(), literal.end(), std::back_inserter(out), lower);
    out += '"';
    at = end + 1;
  }
  return out;
}

std::optional<Script> find_script(std::string_view text) {
  const auto form = script_normal_form(text);
  if (!form) return std::nullopt;
  const std::string digest = script_digest(*form);
  for (const Known& known : kKnown) {
    if (known.digest == digest) return known.script;
  }
  return std::nullopt;
}

std::string make_script_call(const Script& script, const Arguments& keys, Arguments args,
                             ScriptCall& call) {
  const Action action = script.action;
  const std::size_t wanted = arguments_of(action) + (script.database_first ? 1 : 0);
  if (keys.empty() || args.size() < wanted) {
    return fmt::format("ERR this script takes a key and {} arguments at least", wanted);
  }
  if (script.database_first) {
    if (args[0] != "0") return "ERR DB index is out of range: there is one database";
    args.erase(args.begin());
  }
  GivenTime time;
  if (arguments_of(action) > 1) {
    const TimeUnit unit{action == Action::expire_or_nothing, false};
    const bool adds =
        action == Action::add_if_equal || (action == Action::retime_if_equal && args[2] == "0");
    std::string problem =
        parse_key_time(args[1], unit, sets(action) ? "set" : "pexpire", sets(action) || adds, time);
    if (!problem.empty()) return problem;
  }
  add_operations(action, keys, args, time.ttl, call);
  return {};
}

}  // namespace leasehold::server
