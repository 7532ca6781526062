#include <leasehold/base/assert.h>
#include <leasehold/server/front/glob.h>
#include <leasehold/server/users/rights.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

/// Of one pattern and one key: a client chooses the key, so a pattern must not cost much time.
constexpr std::size_t kRightStepsMax = std::size_t{1} << 20U;

UserRules closed(UserRules rules, bool readable) {
  rules.on = rules.on && readable;
  return rules;
}

bool matches(std::string_view pattern, std::string_view text) {
  if (pattern == "*") return true;
  std::size_t budget = kRightStepsMax;
  // A pattern that costs too much permits nothing.
  return glob_matches(pattern, text, budget) && budget > 0;
}

/// Whether the pattern matches everything that begins with `prefix`. Only patterns that are a
/// beginning and a star are understood; the others do not.
bool covers(std::string_view pattern, std::string_view prefix) {
  if (pattern.empty() || pattern.back() != '*') return false;
  const std::string_view beginning = pattern.substr(0, pattern.size() - 1);
  return beginning.find_first_of("*?[\\") == std::string_view::npos &&
         prefix.substr(0, beginning.size()) == beginning;
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
    for (std::size_t i = 0; i < catalogue.size(); ++i) {
      if (!rule_covers(rule, catalogue.name_of(i), catalogue.categories_of(i))) continue;
      commands_.set(i, rule[0] == '+');
    }
  }
  unrestricted_ = rules_.on && lease_others_ && commands_.count() == catalogue.size() &&
                  rules_.all_keys() && rules_.all_channels();
}

bool Rights::may_use(std::string_view key, KeyAccess access) const {
  return std::any_of(rules_.keys.begin(), rules_.keys.end(), [&](const KeyPattern& one) {
    return (one.access & access) == access && matches(one.pattern, key);
  });
}

bool Rights::may_use_prefix(std::string_view prefix, KeyAccess access) const {
  return std::any_of(rules_.keys.begin(), rules_.keys.end(), [&](const KeyPattern& one) {
    return (one.access & access) == access && covers(one.pattern, prefix);
  });
}

bool Rights::may_listen(std::string_view channel) const {
  return std::any_of(rules_.channels.begin(), rules_.channels.end(),
                     [&](const std::string& pattern) { return matches(pattern, channel); });
}

bool Rights::may_listen_to_pattern(std::string_view pattern) const {
  return rules_.all_channels() || std::find(rules_.channels.begin(), rules_.channels.end(),
                                            pattern) != rules_.channels.end();
}

}  // namespace leasehold::server
