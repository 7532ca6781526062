// What a user may do, ready to be asked with each command.
#pragma once

#include <leasehold/server/users/command_catalogue.h>
#include <leasehold/server/users/user_rules.h>

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::server {

/// Steps that the patterns of a user may take for one command that names so many keys, channels and
/// prefixes. One client writes the patterns, another chooses the keys, and the thread serves many
/// more. Thirty patterns such as ~app1:* need less than the part of one key.
constexpr std::size_t right_steps_max(std::size_t uses) {
  return (std::size_t{1} << 20U) + 256 * uses;
}

/// Never changes after it was made. Any thread.
class Rights {
 public:
  /// `created`: of the record (kv::User), 0 for the default user that nobody has written.
  /// `readable`: the record's text is understood; else the user is off.
  Rights(std::string user, UserRules rules, std::uint64_t version, std::uint64_t created,
         const CommandCatalogue& catalogue, bool readable = true);

  const std::string& user() const { return user_; }
  const UserRules& rules() const { return rules_; }
  std::uint64_t version() const { return version_; }
  std::uint64_t created() const { return created_; }
  bool on() const { return rules_.on; }
  /// Whether who has proven this password, as it is stored, may still be the user.
  bool is_password(const std::string& stored) const;
  /// There is nothing to ask.
  bool unrestricted() const { return unrestricted_; }

  bool may_touch_leases_of_others() const { return lease_others_; }
  /// It is an operator: the rules give it what +@cluster-admin gives, all of it.
  bool operates() const { return operates_; }
  bool may_run(std::size_t command) const { return commands_.test(command); }

  // These take the steps of their patterns off `budget`. When that is 0 afterwards the answer is
  // no, because it costs too much.

  /// Whether one pattern permits all of `access`.
  bool may_use(std::string_view key, KeyAccess access, std::size_t& budget) const;
  /// Whether one pattern permits it for every key that begins with `prefix`.
  bool may_use_prefix(std::string_view prefix, KeyAccess access, std::size_t& budget) const;
  bool may_listen(std::string_view channel, std::size_t& budget) const;
  /// A pattern of channels has to be one of the user's, letter by letter.
  bool may_listen_to_pattern(std::string_view pattern, std::size_t& budget) const;

 private:
  const std::string user_;
  const UserRules rules_;
  const std::uint64_t version_;
  const std::uint64_t created_;
  std::bitset<kCommandsMax> commands_;
  bool lease_others_ = false;
  bool operates_ = false;
  bool unrestricted_ = false;
};

}  // namespace leasehold::server
