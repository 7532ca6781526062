#include <leasehold/server/commands/command_keys.h>
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/lease_word.h>
#include <leasehold/server/front/words.h>

#include <algorithm>
#include <variant>

namespace leasehold::server {
namespace {

using Kind = KeyUse::Kind;
using Uses = std::vector<KeyUse>;

/// Commands that also return what the key had.
bool returns_old_value(const CommandSpec& spec, const Arguments& args) {
  static constexpr std::string_view kNames[] = {"decr", "decrby", "getdel",      "getex", "getset",
                                                "incr", "incrby", "incrbyfloat", "setbit"};
  if (std::find(std::begin(kNames), std::end(kNames), spec.name) != std::end(kNames)) return true;
  return spec.name == "set" && std::any_of(args.begin() + 3, args.end(), [](std::string_view word) {
           return equals_ignoring_case(word, "get");
         });
}

/// The words behind the number of keys.
Uses of_script(const Arguments& args) {
  Uses uses;
  const auto count = parse_integer(args[2]);
  if (!count || *count < 0) return uses;
  for (std::size_t i = 3; i < args.size() && i < 3 + static_cast<std::uint64_t>(*count); ++i) {
    uses.push_back({args[i], Kind::key, kReadsAndWrites});
  }
  return uses;
}

/// LEASEHOLD WATCH: as its own parser reads the words.
Uses of_watch(const Arguments& args) {
  Uses uses;
  for (std::size_t i = 2; i < args.size(); ++i) {
    if (equals_ignoring_case(args[i], "values")) continue;
    if (i + 1 == args.size()) break;
    const std::string_view word = args[i++];
    if (equals_ignoring_case(word, "key")) uses.push_back({args[i], Kind::key, kReads});
    if (equals_ignoring_case(word, "prefix")) uses.push_back({args[i], Kind::prefix, kReads});
  }
  return uses;
}

Uses of_channels(const Arguments& args, Kind kind) {
  Uses uses;
  for (std::size_t i = 1; i < args.size(); ++i) uses.push_back({args[i], kind, kReads});
  return uses;
}

Uses of_expect(const Arguments& args) {
  Uses uses;
  for (std::size_t i = 2; i < args.size(); i += 2) uses.push_back({args[i], Kind::key, kReads});
  return uses;
}

/// The leases that a command without keys names by their names.
Uses of_leases(const CommandSpec& spec, const Arguments& args) {
  Uses uses;
  if (spec.name == "lease.info" && args.size() == 3) {
    uses.push_back({args[2], Kind::lease_name});
    return uses;
  }
  if (spec.name == "lease.info" || spec.name == "lease.revoke" || spec.name == "lease.renew") {
    for (std::size_t i = 1; i < args.size(); ++i) {
      kv::LeaseRef lease;
      const bool named = parse_lease(args[i], lease).empty() && !lease.name.empty();
      if (named) uses.push_back({args[i], Kind::lease_name});
    }
  }
  return uses;
}

struct Names {
  std::string_view operator()(const kv::Set&) const { return "set"; }
  std::string_view operator()(const kv::Get&) const { return "get"; }
  std::string_view operator()(const kv::GetDel&) const { return "getdel"; }
  std::string_view operator()(const kv::Exists&) const { return "exists"; }
  std::string_view operator()(const kv::Del&) const { return "del"; }
  std::string_view operator()(const kv::DelEqual&) const { return "del"; }
  std::string_view operator()(const kv::IncrBy&) const { return "incrby"; }
  std::string_view operator()(const kv::ExpireKey&) const { return "pexpire"; }
  std::string_view operator()(const kv::KeyLease&) const { return "pttl"; }
  std::string_view operator()(const kv::MSet&) const { return "set"; }  // key by key
  template <class Other>
  std::string_view operator()(const Other&) const {
    return "eval";
  }
};

}  // namespace

std::vector<KeyUse> uses_of_command(const CommandSpec& spec, const Arguments& args) {
  if (!arity_fits(spec, args.size())) return {};
  if (spec.run == run_eval || spec.run == run_evalsha) return of_script(args);
  if (spec.run == run_leasehold_watch) return of_watch(args);
  if (spec.run == run_leasehold_expect) return of_expect(args);
  if (spec.run == run_subscribe) {
    return of_channels(args, spec.name == "subscribe" ? Kind::channel : Kind::channel_pattern);
  }
  if (spec.group == CommandGroup::leasehold && spec.first_key == 0) {
    if (Uses uses = of_leases(spec, args); !uses.empty()) return uses;
  }
  // Redis asks for no key here. But then a user of a few keys might delete all others.
  if (spec.run == run_flush) return {{std::string_view(), Kind::prefix, kWrites}};
  if (spec.scan == scan_range) {
    return {{args[2], is_exact_range(args) ? Kind::key : Kind::prefix, kReads}};
  }
  // The key that it makes begins with this word.
  if (spec.name == "setseq") return {{args[1], Kind::prefix, kWrites}};
  if (spec.name == "rename" || spec.name == "renamenx") {
    return {{args[1], Kind::key, kReadsAndWrites}, {args[2], Kind::key, kWrites}};
  }
  if (spec.name == "copy") {
    return {{args[1], Kind::key, kReads}, {args[2], Kind::key, kWrites}};
  }
  KeyAccess access = spec.effect == CommandEffect::read ? kReads : kWrites;
  if (access == kWrites && returns_old_value(spec, args)) access = kReadsAndWrites;
  Uses uses;
  for_each_key(spec, args, [&](std::string_view key) { uses.push_back({key, Kind::key, access}); });
  return uses;
}

std::string_view command_of(const kv::Operation& operation) {
  return std::visit(Names(), operation);
}

}  // namespace leasehold::server
