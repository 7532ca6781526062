#include <leasehold/server/commands/command_categories.h>

#include <algorithm>
#include <array>

namespace leasehold::server {
namespace {

namespace c = category;

struct Listed {
  std::string_view name;
  Categories categories;
};

constexpr Categories kOperators = c::admin | c::dangerous | c::cluster_admin | c::slow;

/// Every command that is about the node and not about keys; ascending by name.
// clang-format off
constexpr std::array kAboutTheNode = {
    Listed{"acl", c::slow | c::connection},
    Listed{"acl|cat", c::slow},
    Listed{"acl|deluser", kOperators},
    Listed{"acl|dryrun", kOperators},
    Listed{"acl|genpass", c::slow},
    Listed{"acl|getuser", kOperators},
    Listed{"acl|help", c::slow},
    Listed{"acl|list", kOperators},
    Listed{"acl|log", kOperators},
    Listed{"acl|setuser", kOperators},
    Listed{"acl|users", kOperators},
    Listed{"acl|whoami", c::slow},
    Listed{"client|kill", kOperators | c::connection},
    Listed{"client|list", kOperators | c::connection},
    Listed{"cluster", c::slow},
    Listed{"cluster|countkeysinslot", c::slow | c::read | c::keyspace},
    Listed{"cluster|help", c::slow},
    Listed{"cluster|info", c::slow},
    Listed{"cluster|keyslot", c::slow},
    Listed{"cluster|myid", c::slow},
    Listed{"cluster|nodes", c::slow},
    Listed{"cluster|shards", c::slow},
    Listed{"cluster|slots", c::slow},
    Listed{"command", c::slow | c::connection},
    Listed{"command|count", c::slow | c::connection},
    Listed{"command|docs", c::slow | c::connection},
    Listed{"command|getkeys", c::slow | c::connection},
    Listed{"command|help", c::slow | c::connection},
    Listed{"command|info", c::slow | c::connection},
    Listed{"command|list", c::slow | c::connection},
    Listed{"config", c::slow},
    Listed{"config|get", kOperators},
    Listed{"config|help", c::slow},
    Listed{"config|set", kOperators},
    Listed{"flushall", c::keyspace | c::write | c::slow | c::dangerous},
    Listed{"flushdb", c::keyspace | c::write | c::slow | c::dangerous},
    Listed{"info", c::slow | c::dangerous},
    Listed{"leasehold", c::slow | c::leasehold},
    Listed{"leasehold|backup", kOperators | c::leasehold},
    Listed{"leasehold|clock", c::fast | c::leasehold | c::dangerous},
    Listed{"leasehold|expect", c::fast | c::leasehold | c::transaction | c::read},
    Listed{"leasehold|explain", c::slow | c::leasehold},
    Listed{"leasehold|group", c::slow | c::leasehold | c::connection},
    Listed{"leasehold|help", c::slow | c::leasehold},
    Listed{"leasehold|host", kOperators | c::leasehold},
    Listed{"leasehold|member", kOperators | c::leasehold},
    Listed{"leasehold|once", c::slow | c::leasehold | c::write},
    Listed{"leasehold|pool", kOperators | c::leasehold},
    Listed{"leasehold|read", c::slow | c::leasehold | c::read},
    Listed{"leasehold|readbackup", kOperators | c::leasehold},
    Listed{"leasehold|readmode", c::fast | c::leasehold | c::connection},
    Listed{"leasehold|session", c::slow | c::leasehold | c::write},
    Listed{"leasehold|settings", kOperators | c::leasehold},
    Listed{"leasehold|slots", kOperators | c::leasehold},
    Listed{"leasehold|snapshot", kOperators | c::leasehold},
    Listed{"leasehold|status", c::slow | c::leasehold | c::dangerous},
    Listed{"leasehold|trace", kOperators | c::leasehold},
    Listed{"leasehold|traceparent", c::fast | c::leasehold | c::connection},
    Listed{"leasehold|transfer", kOperators | c::leasehold},
    Listed{"leasehold|unwatch", c::slow | c::leasehold | c::pubsub},
    Listed{"leasehold|watch", c::slow | c::leasehold | c::pubsub | c::read},
    Listed{"object", c::slow},
    Listed{"object|help", c::slow | c::keyspace},
    Listed{"psubscribe", c::slow | c::pubsub},
    Listed{"punsubscribe", c::slow | c::pubsub},
    Listed{"readonly", c::fast | c::connection},
    Listed{"readwrite", c::fast | c::connection},
    Listed{"role", c::fast | c::admin | c::dangerous},
    Listed{"slowlog", c::slow},
    Listed{"slowlog|get", c::slow | c::admin | c::dangerous},
    Listed{"slowlog|help", c::slow},
    Listed{"slowlog|len", c::slow | c::admin | c::dangerous},
    Listed{"slowlog|reset", c::slow | c::admin | c::dangerous},
    Listed{"subscribe", c::slow | c::pubsub},
    Listed{"time", c::fast},
    Listed{"unsubscribe", c::slow | c::pubsub},
    Listed{"wait", c::slow | c::connection},
};
/// Commands on keys that Redis calls slow, or dangerous, too.
constexpr std::array kSlow = {
    Listed{"bitcount", c::slow}, Listed{"copy", c::slow}, Listed{"lcs", c::slow},
    Listed{"setbit", c::slow},
    Listed{"del", c::slow},    Listed{"exec", c::slow},      Listed{"getrange", c::slow},
    Listed{"mset", c::slow},   Listed{"msetnx", c::slow},    Listed{"psetex", c::slow},
    Listed{"rename", c::slow}, Listed{"scan", c::slow},      Listed{"randomkey", c::slow},
    Listed{"set", c::slow},    Listed{"setex", c::slow},     Listed{"setrange", c::slow},
    Listed{"substr", c::slow}, Listed{"keys", c::slow | c::dangerous},
};
// clang-format on

template <class List>
const Listed* find(const List& list, std::string_view name) {
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const Listed& one) { return one.name == name; });
  return at == list.end() ? nullptr : &*at;
}

Categories of_group(CommandGroup group) {
  switch (group) {
    case CommandGroup::string: return c::string;
    case CommandGroup::generic: return c::keyspace;
    case CommandGroup::transactions: return c::transaction;
    case CommandGroup::connection: return c::connection;
    case CommandGroup::leasehold: return c::leasehold;
    case CommandGroup::scripting: return c::scripting | c::slow;
    case CommandGroup::server: return c::keyspace;  // with `make`: DBSIZE
    case CommandGroup::cluster: return 0;
  }
  return 0;
}

}  // namespace

Categories categories_of_command(const CommandSpec& spec) {
  if (const Listed* listed = find(kAboutTheNode, spec.name)) return listed->categories;
  const bool on_keys = spec.make != nullptr || spec.scan != nullptr;
  const bool about_node = spec.group == CommandGroup::server ||
                          spec.group == CommandGroup::cluster ||
                          spec.group == CommandGroup::leasehold;
  if (!on_keys && about_node) return kOperators;
  Categories all = of_group(spec.group);
  if (on_keys) all |= spec.effect == CommandEffect::read ? c::read : c::write;
  if (spec.name.substr(0, 6) == "lease.") all |= c::lease;
  const Listed* slow = find(kSlow, spec.name);
  if (slow != nullptr) return all | slow->categories;
  const bool is_slow =
      (all & c::slow) != 0 || spec.scan != nullptr || spec.name.find('|') != std::string_view::npos;
  return all | (is_slow ? c::slow : c::fast);
}

}  // namespace leasehold::server
