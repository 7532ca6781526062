// The rules of one user, in the forms of Redis's ACL: as text, as one change after the other, and
// as what they are.
#pragma once

#include <leasehold/server/users/command_catalogue.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

/// The user of a connection that has not named one.
inline constexpr std::string_view kDefaultUser = "default";
/// Passwords of one user: each costs a slow check.
inline constexpr std::size_t kPasswordsMax = 8;
/// What the patterns of one user may cost: the bytes of each, times one more than it has stars,
/// added up. A rule that exceeds it is refused; a record that an earlier build wrote is read.
inline constexpr std::size_t kPatternCostMax = std::size_t{1} << 16U;

/// Bits: what a command does with a key, and what a pattern permits.
using KeyAccess = std::uint8_t;
inline constexpr KeyAccess kReads = 1;
inline constexpr KeyAccess kWrites = 2;
inline constexpr KeyAccess kReadsAndWrites = 3;

struct KeyPattern {
  std::string pattern;
  KeyAccess access = kReadsAndWrites;
  friend bool operator==(const KeyPattern&, const KeyPattern&) = default;
};

/// A user that was just made has none of all this.
struct UserRules {
  bool on = false;
  bool nopass = false;
  std::vector<std::string> passwords;  ///< as password.h stores them
  std::vector<KeyPattern> keys;        ///< "*" with both: all keys
  std::vector<std::string> channels;   ///< "*": all channels
  /// "+@all", "-get", "+config|get": the later one decides.
  std::vector<std::string> commands;

  bool all_keys() const;
  bool all_channels() const;
  /// Rules that make these of a new user. One blank between two rules, and none inside of one.
  std::string text() const;
  /// As text(), in the three parts that ACL GETUSER shows.
  std::string keys_text() const;
  std::string channels_text() const;
  std::string commands_text() const;
  friend bool operator==(const UserRules&, const UserRules&) = default;
};

/// What the default user is until somebody writes it: on nopass ~* &* +@all.
UserRules open_rules();

/// How passwords are made and compared; password.h, or something fast for tests. Slow.
class PasswordWork {
 public:
  virtual ~PasswordWork() = default;
  virtual std::string digest(std::string_view password) = 0;
  /// Empty: it failed.
  virtual std::string hash(std::string_view digest) = 0;
  virtual bool matches(std::string_view stored, std::string_view digest) = 0;
};
/// That of password.h.
PasswordWork& password_work();

/// Changes `rules` by one rule of ACL SETUSER. Returns the reason why it cannot, in the words of
/// Redis, or nothing; then `rules` are as they were.
std::string apply_rule(UserRules& rules, std::string_view rule, const CommandCatalogue& catalogue,
                       PasswordWork& work);
/// The rule as an error may show it: without a password.
std::string shown_rule(std::string_view rule);

/// Reads what text() has written. Commands and categories that this build does not know stay, and
/// have no effect. False: it has something else that this build does not know; then nobody may be
/// that user.
bool parse_rules(std::string_view text, UserRules& rules);

/// Whether a rule of `rules.commands` is about the command.
bool rule_covers(std::string_view rule, std::string_view command, Categories categories);

}  // namespace leasehold::server
