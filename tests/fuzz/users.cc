// What decides what a client may do: rules of ACL SETUSER one by one, the text of a user's record,
// patterns of keys and channels, and stored passwords. The first byte chooses.
//
// A user's rights are compared with what slow and simple code makes of the same rules.
#include <leasehold/kv/command.h>
#include <leasehold/kv/users.h>
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/glob.h>
#include <leasehold/server/users/password.h>
#include <leasehold/server/users/rights.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/input.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace leasehold::fuzz {
namespace {

using server::KeyAccess;
using server::Rights;
using server::UserRules;

/// As slow as nothing.
class CheapPasswords final : public server::PasswordWork {
 public:
  std::string digest(std::string_view password) override { return server::sha256_hex(password); }
  std::string hash(std::string_view digest) override {
    return "scrypt$14$8$1$" + std::string(32, '0') + "$" + std::string(digest);
  }
  bool matches(std::string_view stored, std::string_view digest) override {
    return stored.substr(stored.size() - digest.size()) == digest;
  }
};

std::string_view take_line(std::string_view& bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
  return line;
}

/// A part of a pattern: the bytes that may stand there; none: any number of any bytes.
using Part = std::optional<std::bitset<256>>;

std::size_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// Of the bytes behind '['.
std::bitset<256> take_set(std::string_view& rest) {
  std::bitset<256> set;
  const bool negated = !rest.empty() && rest[0] == '^';
  if (negated) rest.remove_prefix(1);
  while (!rest.empty() && rest[0] != ']') {
    if (rest[0] == '\\' && rest.size() > 1) {
      set.set(byte_at(rest, 1));
      rest.remove_prefix(2);
    } else if (rest.size() > 2 && rest[1] == '-') {
      const auto [low, high] = std::minmax({byte_at(rest, 0), byte_at(rest, 2)});
      for (std::size_t i = low; i <= high; ++i) set.set(i);
      rest.remove_prefix(3);
    } else {
      set.set(byte_at(rest, 0));
      rest.remove_prefix(1);
    }
  }
  if (!rest.empty()) rest.remove_prefix(1);
  return negated ? ~set : set;
}

std::vector<Part> parts_of(std::string_view pattern) {
  std::vector<Part> parts;
  while (!pattern.empty()) {
    const char c = pattern[0];
    pattern.remove_prefix(1);
    if (c == '*') {
      parts.emplace_back();
    } else if (c == '?') {
      parts.emplace_back(std::bitset<256>().set());
    } else if (c == '[') {
      parts.emplace_back(take_set(pattern));
    } else {
      const bool escaped = c == '\\' && !pattern.empty();
      const auto byte = static_cast<unsigned char>(escaped ? pattern[0] : c);
      if (escaped) pattern.remove_prefix(1);
      parts.emplace_back(std::bitset<256>().set(byte));
    }
  }
  return parts;
}

bool slow_matches(std::string_view pattern, std::string_view text) {
  // Beginnings of the text, by length, that the parts so far match.
  std::vector<bool> reached(text.size() + 1);
  reached[0] = true;
  for (const Part& part : parts_of(pattern)) {
    std::vector<bool> next(text.size() + 1);
    for (std::size_t i = 0; i <= text.size(); ++i) {
      if (!part) next[i] = reached[i] || (i > 0 && next[i - 1]);
      if (part && i > 0) next[i] = reached[i - 1] && part->test(byte_at(text, i - 1));
    }
    reached = std::move(next);
  }
  return reached[text.size()];
}

/// Is not compared with more than this: it would take most of the time.
constexpr std::size_t kSlowBytesMax = std::size_t{1} << 14U;

void take_pattern(std::string_view bytes) {
  const std::string_view pattern = take_line(bytes);
  constexpr std::size_t kMuch = std::size_t{1} << 40U;
  std::size_t budget = kMuch;
  const bool matches = server::glob_matches(pattern, bytes, budget);
  const std::size_t steps = kMuch - budget;
  LEASEHOLD_ASSERT(steps <= (bytes.size() + 1) * (pattern.size() + 2) + pattern.size());
  if (pattern.size() * bytes.size() <= kSlowBytesMax) {
    LEASEHOLD_ASSERT(matches == slow_matches(pattern, bytes));
  }
  budget = steps + 1;
  LEASEHOLD_ASSERT(server::glob_matches(pattern, bytes, budget) == matches && budget == 1);
}

constexpr std::array<KeyAccess, 3> kAccesses = {server::kReads, server::kWrites,
                                                server::kReadsAndWrites};

/// A command asks for this one thing.
template <class Ask>
bool permits(Ask ask) {
  std::size_t budget = server::right_steps_max(1);
  const bool permitted = ask(budget);
  LEASEHOLD_ASSERT(!permitted || budget > 0);
  return permitted;
}

/// None: slow code would take too long, or the patterns cost more than a command may have.
std::optional<bool> one_permits(const Rights& rights, std::string_view key, KeyAccess access) {
  std::size_t bytes = 0;
  bool permitted = false;
  for (const server::KeyPattern& one : rights.rules().keys) {
    bytes += one.pattern.size();
    if (bytes * key.size() > kSlowBytesMax) return std::nullopt;
    permitted = permitted || ((one.access & access) == access && slow_matches(one.pattern, key));
  }
  return permitted;
}

void ask_for_keys(const Rights& rights, std::string_view key) {
  for (const KeyAccess access : kAccesses) {
    const bool may = permits([&](auto& budget) { return rights.may_use(key, access, budget); });
    if (const auto expected = one_permits(rights, key, access)) {
      LEASEHOLD_ASSERT(may == *expected);
    }
    LEASEHOLD_ASSERT(may || !rights.unrestricted());
    if (!permits([&](auto& budget) { return rights.may_use_prefix(key, access, budget); })) {
      continue;
    }
    // A pattern that covers a prefix permits the prefix itself, and what follows it.
    for (const std::string_view more : {"", "x", "*", "]", "\\", "a longer one"}) {
      const std::string longer = std::string(key) + std::string(more);
      std::size_t budget = server::right_steps_max(1);
      LEASEHOLD_ASSERT(rights.may_use(longer, access, budget) || budget == 0);
    }
  }
}

void ask_for_channels(const Rights& rights, std::string_view channel) {
  const auto& all = rights.rules().channels;
  const bool may = permits([&](auto& budget) { return rights.may_listen(channel, budget); });
  std::size_t bytes = 0;
  for (const std::string& one : all) bytes += one.size();
  if (bytes * channel.size() <= kSlowBytesMax) {
    const bool expected = std::any_of(all.begin(), all.end(), [&](const std::string& pattern) {
      return slow_matches(pattern, channel);
    });
    LEASEHOLD_ASSERT(may == expected);
  }
  const bool may_all =
      permits([&](auto& budget) { return rights.may_listen_to_pattern(channel, budget); });
  LEASEHOLD_ASSERT(may_all == (rights.rules().all_channels() ||
                               std::find(all.begin(), all.end(), channel) != all.end()));
  LEASEHOLD_ASSERT((may && may_all) || !rights.unrestricted());
}

/// The last rule about a command decides.
bool may_run(const UserRules& rules, std::size_t command) {
  const auto& catalogue = server::command_table();
  for (auto rule = rules.commands.rbegin(); rule != rules.commands.rend(); ++rule) {
    if (server::rule_covers(*rule, catalogue.name_of(command), catalogue.categories_of(command)))
      return rule->front() == '+';
  }
  return false;
}

void ask_for_commands(const Rights& rights) {
  for (std::size_t i = 0; i < server::command_table().size(); ++i) {
    LEASEHOLD_ASSERT(rights.may_run(i) == may_run(rights.rules(), i));
    LEASEHOLD_ASSERT(rights.may_run(i) || !rights.unrestricted());
  }
}

/// What a node writes into the log and into the store is read back the same.
void write_and_read(const UserRules& rules) {
  const std::string text = rules.text();
  UserRules again;
  LEASEHOLD_ASSERT(server::parse_rules(text, again) && again.text() == text);
  UserRules same;
  LEASEHOLD_ASSERT(server::parse_rules(again.text(), same) && same == again);
  const auto encoded = kv::encode_command(kv::SetUser{"user", 7, text});
  LEASEHOLD_ASSERT(encoded.ok() == (text.size() <= kv::kUserRulesBytesMax));
  if (!encoded.ok()) return;
  const auto decoded = kv::decode_command(encoded.value().view());
  LEASEHOLD_ASSERT(decoded.ok());
  LEASEHOLD_ASSERT(std::get<kv::SetUser>(decoded.value()).rules == text);
}

void ask(const UserRules& rules, std::string_view word) {
  const Rights rights("user", rules, 1, 1, server::command_table());
  LEASEHOLD_ASSERT(rights.on() == rules.on);
  LEASEHOLD_ASSERT(!Rights("user", rules, 1, 1, server::command_table(), false).on());
  ask_for_commands(rights);
  ask_for_keys(rights, word);
  ask_for_channels(rights, word);
}

/// The same user in another group, by what ACL LIST shows of it.
void copy(const UserRules& rules) {
  CheapPasswords work;
  UserRules copied;
  std::string text = rules.text();
  std::replace(text.begin(), text.end(), ' ', '\n');
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view word = take_line(rest);
    LEASEHOLD_ASSERT(server::apply_rule(copied, word, server::command_table(), work).empty());
  }
  LEASEHOLD_ASSERT(copied.text() == rules.text());
}

/// Rules, one a line, and then a word, which is a key, a prefix, a channel and a pattern.
void take_rules(std::string_view bytes) {
  CheapPasswords work;
  UserRules rules;
  std::string_view line;
  while (!bytes.empty()) {
    line = take_line(bytes);
    const UserRules before = rules;
    const auto problem = server::apply_rule(rules, line, server::command_table(), work);
    LEASEHOLD_ASSERT(problem.empty() || rules == before);
    LEASEHOLD_ASSERT(server::shown_rule(line).size() <= line.size() + 10);
  }
  LEASEHOLD_ASSERT(rules.passwords.size() <= server::kPasswordsMax);
  LEASEHOLD_ASSERT(!rules.nopass || rules.passwords.empty());
  write_and_read(rules);
  copy(rules);
  ask(rules, line);
}

/// The text of a record, from a disk or a snapshot, and behind a line's end a word.
void take_record(std::string_view bytes) {
  UserRules rules;
  if (!server::parse_rules(take_line(bytes), rules)) return;
  write_and_read(rules);
  ask(rules, bytes);
}

bool is_hex(std::string_view text, std::size_t size) {
  return text.size() == size &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// A password, a digest or a stored form.
void take_password(std::string_view bytes) {
  constexpr std::string_view kCosts = "scrypt$14$8$1$";
  const bool stored = server::is_password_hash(bytes);
  const std::string_view rest = bytes.substr(std::min(bytes.size(), kCosts.size()));
  LEASEHOLD_ASSERT(stored == (bytes.substr(0, kCosts.size()) == kCosts && rest.size() == 97 &&
                              is_hex(rest.substr(0, 32), 32) && rest[32] == '$' &&
                              is_hex(rest.substr(33), 64)));
  const bool digest = server::is_sha256_hex(bytes);
  LEASEHOLD_ASSERT(digest == is_hex(bytes, 64));
  CheapPasswords work;
  UserRules rules;
  const std::string rule = "#" + std::string(bytes);
  const auto problem = server::apply_rule(rules, rule, server::command_table(), work);
  LEASEHOLD_ASSERT(problem.empty() == (stored || digest));
  LEASEHOLD_ASSERT(server::shown_rule(rule) == "#(password)");
  if (!problem.empty()) return;
  write_and_read(rules);
  LEASEHOLD_ASSERT(
      server::apply_rule(rules, "!" + std::string(bytes), server::command_table(), work).empty());
  LEASEHOLD_ASSERT(rules.passwords.empty());
}

}  // namespace

void take(std::string_view input) {
  Input in(input);
  const unsigned chosen = in.byte();
  switch (chosen % 8) {
    case 0:
    case 1: return take_record(in.rest());
    case 2: return take_pattern(in.rest());
    case 3: return take_password(in.rest());
    default: return take_rules(in.rest());
  }
}

}  // namespace leasehold::fuzz
