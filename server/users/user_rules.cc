#include <leasehold/server/front/words.h>
#include <leasehold/server/users/password.h>
#include <leasehold/server/users/user_rules.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

constexpr const char* kSyntax = "Syntax error";
constexpr const char* kUnknownCommand = "Unknown command or category name in ACL";
constexpr const char* kNoSuchPassword =
    "The password you are trying to remove from the user does not exist";
constexpr const char* kBadHash =
    "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
    "characters";
constexpr const char* kAfterAllKeys =
    "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have "
    "any effect. Try 'resetkeys' to start with an empty list of patterns";
constexpr const char* kAfterAllChannels =
    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not "
    "have any effect. Try 'resetchannels' to start with an empty list of channels";

bool has_blanks(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0'; });
}

bool is_all(std::string_view rule) {
  return rule.substr(1) == "@all";
}

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string key_text(const KeyPattern& one) {
  if (one.access == kReadsAndWrites) return "~" + one.pattern;
  return (one.access == kReads ? "%R~" : "%W~") + one.pattern;
}

/// "R", "W", "RW" of "%RW~pattern". 0: something else.
KeyAccess access_of(std::string_view letters) {
  KeyAccess access = 0;
  for (const char c : letters) {
    const KeyAccess one = lower(c) == 'r' ? kReads : lower(c) == 'w' ? kWrites : KeyAccess{0};
    if (one == 0 || (access & one) != 0) return 0;
    access = static_cast<KeyAccess>(access | one);
  }
  return access;
}

/// Splits "~pattern" and "%R~pattern". False: it is neither.
bool take_key_pattern(std::string_view rule, KeyPattern& key) {
  const std::size_t tilde = rule.find('~');
  if (tilde == std::string_view::npos) return false;
  key.access = rule[0] == '~' ? kReadsAndWrites : access_of(rule.substr(1, tilde - 1));
  key.pattern = rule.substr(tilde + 1);
  return key.access != 0 && (rule[0] == '~' || rule[0] == '%') && !has_blanks(rule);
}

std::size_t cost_of(std::string_view pattern) {
  const auto stars = std::count(pattern.begin(), pattern.end(), '*');
  return pattern.size() * (1 + static_cast<std::size_t>(stars));
}

/// The text of an error, or empty. `rule` is about keys or a channel.
std::string check_cost(const UserRules& rules, std::string_view rule) {
  std::size_t cost = cost_of(rule.substr(rule.find_first_of("~&") + 1));
  for (const KeyPattern& one : rules.keys) cost += cost_of(one.pattern);
  for (const std::string& one : rules.channels) cost += cost_of(one);
  if (cost <= kPatternCostMax) return {};
  return fmt::format(
      "The patterns of a user may cost {} together, where each costs its bytes times one more than "
      "its stars: use fewer, shorter or simpler patterns",
      kPatternCostMax);
}

/// A rule about the same commands as `rule` has no effect any more.
void add_command_rule(UserRules& rules, std::string rule) {
  auto& all = rules.commands;
  const auto overruled = [&](const std::string& old) {
    return is_all(rule) || std::string_view(old).substr(1) == std::string_view(rule).substr(1);
  };
  all.erase(std::remove_if(all.begin(), all.end(), overruled), all.end());
  all.push_back(std::move(rule));
}

std::string add_key(UserRules& rules, std::string_view rule) {
  KeyPattern key;
  if (!take_key_pattern(rule, key)) return kSyntax;
  if (rules.all_keys()) {
    const bool again = key.pattern == "*" && key.access == kReadsAndWrites;
    return again ? "" : kAfterAllKeys;
  }
  const auto same = std::find_if(rules.keys.begin(), rules.keys.end(),
                                 [&](const auto& old) { return old.pattern == key.pattern; });
  if (same != rules.keys.end()) key.access = static_cast<KeyAccess>(key.access | same->access);
  if (key.pattern == "*" && key.access == kReadsAndWrites) {
    rules.keys.assign(1, std::move(key));
  } else if (same != rules.keys.end()) {
    same->access = key.access;
  } else {
    rules.keys.push_back(std::move(key));
  }
  return {};
}

std::string add_channel(UserRules& rules, std::string_view pattern) {
  if (has_blanks(pattern)) return kSyntax;
  if (rules.all_channels()) return pattern == "*" ? "" : kAfterAllChannels;
  if (pattern == "*") rules.channels.clear();
  const bool known =
      std::find(rules.channels.begin(), rules.channels.end(), pattern) != rules.channels.end();
  if (!known) rules.channels.emplace_back(pattern);
  return {};
}

std::string add_password(UserRules& rules, std::string_view digest, PasswordWork& work) {
  const auto known = [&](const std::string& stored) { return work.matches(stored, digest); };
  const bool has_it = std::any_of(rules.passwords.begin(), rules.passwords.end(), known);
  if (!has_it) {
    if (rules.passwords.size() >= kPasswordsMax) {
      return fmt::format("A user has at most {} passwords: remove one first", kPasswordsMax);
    }
    std::string stored = work.hash(digest);
    if (stored.empty()) return "The password cannot be hashed: this node has no memory left";
    rules.passwords.push_back(std::move(stored));
  }
  rules.nopass = false;
  return {};
}

std::string add_stored_password(UserRules& rules, std::string_view stored) {
  if (rules.passwords.size() >= kPasswordsMax) {
    return fmt::format("A user has at most {} passwords: remove one first", kPasswordsMax);
  }
  rules.passwords.emplace_back(stored);
  rules.nopass = false;
  return {};
}

template <class Matches>
std::string remove_password(UserRules& rules, Matches matches) {
  auto& all = rules.passwords;
  const auto at = std::find_if(all.begin(), all.end(), matches);
  if (at == all.end()) return kNoSuchPassword;
  all.erase(at);
  return {};
}

/// >password, <password, #hash, !hash.
std::string apply_password(UserRules& rules, std::string_view rule, PasswordWork& work) {
  const std::string_view word = rule.substr(1);
  if (rule[0] == '>' || rule[0] == '<') {
    if (word.size() > kPasswordBytesMax) {
      return fmt::format("A password has at most {} bytes", kPasswordBytesMax);
    }
    std::string digest = work.digest(word);
    std::string problem = rule[0] == '>' ? add_password(rules, digest, work)
                                         : remove_password(rules, [&](const std::string& stored) {
                                             return work.matches(stored, digest);
                                           });
    wipe(digest);
    return problem;
  }
  const bool stored = is_password_hash(word);
  if (!stored && !is_sha256_hex(word)) return kBadHash;
  if (rule[0] == '#') {
    return stored ? add_stored_password(rules, word) : add_password(rules, word, work);
  }
  return remove_password(rules, [&](const std::string& one) {
    return stored ? one == word : work.matches(one, word);
  });
}

std::string apply_command(UserRules& rules, std::string_view rule,
                          const CommandCatalogue& catalogue) {
  if (has_blanks(rule)) return kSyntax;
  std::string word = lowered(rule);
  if (rule.size() > kQuotedBytesMax) return kUnknownCommand;
  if (word.size() > 1 && word[1] == '@') {
    if (!is_all(word) && category_named(std::string_view(word).substr(2)) == 0) {
      return kUnknownCommand;
    }
  } else {
    bool known = false;
    for (std::size_t i = 0; i < catalogue.size() && !known; ++i) {
      known = rule_covers(word, catalogue.name_of(i), 0);
    }
    if (!known) return kUnknownCommand;
  }
  add_command_rule(rules, std::move(word));
  return {};
}

/// The rules that are one word. False: it is none of them.
bool apply_word(UserRules& rules, std::string_view rule) {
  const auto is = [&](std::string_view word) { return equals_ignoring_case(rule, word); };
  if (is("on")) {
    rules.on = true;
  } else if (is("off")) {
    rules.on = false;
  } else if (is("nopass")) {
    rules.nopass = true;
    rules.passwords.clear();
  } else if (is("resetpass")) {
    rules.nopass = false;
    rules.passwords.clear();
  } else if (is("allkeys")) {
    rules.keys.assign(1, {"*", kReadsAndWrites});
  } else if (is("resetkeys")) {
    rules.keys.clear();
  } else if (is("allchannels")) {
    rules.channels.assign(1, "*");
  } else if (is("resetchannels")) {
    rules.channels.clear();
  } else if (is("allcommands")) {
    add_command_rule(rules, "+@all");
  } else if (is("nocommands")) {
    add_command_rule(rules, "-@all");
  } else if (is("reset")) {
    rules = UserRules();
  } else {
    // Redis has these; here there is nothing that they could change.
    return is("sanitize-payload") || is("skip-sanitize-payload");
  }
  return true;
}

class RealPasswordWork final : public PasswordWork {
 public:
  std::string digest(std::string_view password) override { return sha256_hex(password); }
  std::string hash(std::string_view digest) override { return hash_password(digest); }
  bool matches(std::string_view stored, std::string_view digest) override {
    return password_matches(stored, digest);
  }
};

}  // namespace

bool UserRules::all_keys() const {
  return keys.size() == 1 && keys[0].pattern == "*" && keys[0].access == kReadsAndWrites;
}
bool UserRules::all_channels() const {
  return channels.size() == 1 && channels[0] == "*";
}

std::string UserRules::keys_text() const {
  std::vector<std::string> parts;
  parts.reserve(keys.size());
  for (const KeyPattern& one : keys) parts.push_back(key_text(one));
  return joined(parts);
}

std::string UserRules::channels_text() const {
  std::vector<std::string> parts;
  parts.reserve(channels.size());
  for (const std::string& one : channels) parts.push_back("&" + one);
  return joined(parts);
}

std::string UserRules::commands_text() const {
  std::string text = joined(commands);
  if (commands.empty()) return "-@all";
  return is_all(commands[0]) ? text : "-@all " + text;
}

std::string UserRules::text() const {
  std::vector<std::string> parts;
  parts.emplace_back(on ? "on" : "off");
  if (nopass) parts.emplace_back("nopass");
  for (const std::string& one : passwords) parts.push_back("#" + one);
  if (!keys.empty()) parts.push_back(keys_text());
  if (!all_channels()) parts.emplace_back("resetchannels");
  if (!channels.empty()) parts.push_back(channels_text());
  parts.push_back(commands_text());
  return joined(parts);
}

UserRules open_rules() {
  UserRules rules;
  rules.on = rules.nopass = true;
  rules.keys.push_back({"*", kReadsAndWrites});
  rules.channels.emplace_back("*");
  rules.commands.emplace_back("+@all");
  return rules;
}

PasswordWork& password_work() {
  static RealPasswordWork work;
  return work;
}

std::string apply_rule(UserRules& rules, std::string_view rule, const CommandCatalogue& catalogue,
                       PasswordWork& work) {
  if (rule.empty()) return kSyntax;
  if (std::string_view("~%&").find(rule[0]) != std::string_view::npos) {
    if (std::string problem = check_cost(rules, rule); !problem.empty()) return problem;
  }
  switch (rule[0]) {
    case '>':
    case '<':
    case '#':
    case '!': return apply_password(rules, rule, work);
    case '~':
    case '%': return add_key(rules, rule);
    case '&': return add_channel(rules, rule.substr(1));
    case '+':
    case '-': return apply_command(rules, rule, catalogue);
    default: return apply_word(rules, rule) ? "" : kSyntax;
  }
}

std::string shown_rule(std::string_view rule) {
  if (!rule.empty() && std::string_view("><#!").find(rule[0]) != std::string_view::npos) {
    return std::string(rule.substr(0, 1)) + "(password)";
  }
  return std::string(rule.substr(0, kQuotedBytesMax));
}

bool parse_rules(std::string_view text, UserRules& rules) {
  rules = UserRules();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view rule = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (rule.empty()) return false;
    bool known = true;
    switch (rule[0]) {
      case '#':
        known = is_password_hash(rule.substr(1));
        rules.passwords.emplace_back(rule.substr(1));
        break;
      case '~':
      case '%': known = add_key(rules, rule).empty(); break;
      case '&': known = add_channel(rules, rule.substr(1)).empty(); break;
      case '+':
      case '-': add_command_rule(rules, std::string(rule)); break;
      default: known = apply_word(rules, rule);
    }
    if (!known) return false;
  }
  return true;
}

bool rule_covers(std::string_view rule, std::string_view command, Categories categories) {
  const std::string_view what = rule.substr(1);
  if (!what.empty() && what[0] == '@') {
    return is_all(rule) || (category_named(what.substr(1)) & categories) != 0;
  }
  // A command with subcommands stands for them, too.
  return what == command || (command.size() > what.size() && command[what.size()] == '|' &&
                             command.substr(0, what.size()) == what && !what.empty());
}

}  // namespace leasehold::server
