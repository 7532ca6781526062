#include <leasehold/base/assert.h>
#include <leasehold/server/front/glob.h>
#include <leasehold/server/users/rights.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

UserRules closed(UserRules rules, bool readable) {
  rules.on = rules.on && readable;
  return rules;
}

/// Takes `steps` off `budget`. False: it has no more.
bool spend(std::size_t& budget, std::size_t steps) {
  budget -= std::min(budget, steps);
  return budget > 0;
}

bool matches(std::string_view pattern, std::string_view text, std::size_t& budget) {
  if (pattern == "*") return budget > 0;
  return spend(budget, 1) && glob_matches(pattern, text, budget) && budget > 0;
}

/// Whether the pattern matches everything that begins with `prefix`. Only patterns that are a
/// beginning and a star are understood; the others do not.
bool covers(std::string_view pattern, std::string_view prefix, std::size_t& budget) {
  if (!spend(budget, 1) || pattern.empty() || pattern.back() != '*') return false;
  const std::string_view beginning = pattern.substr(0, pattern.size() - 1);
  return prefix.substr(0, beginning.size()) == beginning && spend(budget, beginning.size()) &&
         beginning.find_first_of("*?[\\") == std::string_view::npos;
}

}  // namespace

Rights::Rights(std::string user, UserRules rules, std::uint64_t version, std::uint64_t created,
               const CommandCatalogue& catalogue, bool readable)
    : user_(std::move(user)),
      rules_(closed(std::move(rules), readable)),
      version_(version),
      created_(created) {
  LEASEHOLD_ASSERT(catalogue.size() <= kCommandsMax);
  for (const std::string& rule : rules_.commands) {
    if (rule_covers(rule, {}, category::lease_others)) lease_others_ = rule[0] == '+';
    if (rule_covers(rule, {}, category::cluster_admin)) operates_ = rule[0] == '+';
    for (std::size_t i = 0; i < catalogue.size(); ++i) {
      if (!rule_covers(rule, catalogue.name_of(i), catalogue.categories_of(i))) continue;
      commands_.set(i, rule[0] == '+');
    }
  }
  unrestricted_ = rules_.on && lease_others_ && commands_.count() == catalogue.size() &&
                  rules_.all_keys() && rules_.all_channels();
}

bool Rights::is_password(const std::string& stored) const {
  return rules_.nopass || std::find(rules_.passwords.begin(), rules_.passwords.end(), stored) !=
                              rules_.passwords.end();
}

bool Rights::may_use(std::string_view key, KeyAccess access, std::size_t& budget) const {
  return std::any_of(rules_.keys.begin(), rules_.keys.end(), [&](const KeyPattern& one) {
    return (one.access & access) == access && matches(one.pattern, key, budget);
  });
}

bool Rights::may_use_prefix(std::string_view prefix, KeyAccess access, std::size_t& budget) const {
  return std::any_of(rules_.keys.begin(), rules_.keys.end(), [&](const KeyPattern& one) {
    return (one.access & access) == access && covers(one.pattern, prefix, budget);
  });
}

bool Rights::may_listen(std::string_view channel, std::size_t& budget) const {
  return std::any_of(rules_.channels.begin(), rules_.channels.end(),
                     [&](const std::string& pattern) { return matches(pattern, channel, budget); });
}

bool Rights::may_listen_to_pattern(std::string_view pattern, std::size_t& budget) const {
  if (rules_.all_channels()) return true;
  return spend(budget, rules_.channels.size()) &&
         std::find(rules_.channels.begin(), rules_.channels.end(), pattern) !=
             rules_.channels.end();
}

}  // namespace leasehold::server
