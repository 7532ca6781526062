// The users of this node's client port: what the group has agreed on (kv/users.h), ready for use.
#pragma once

#include <leasehold/kv/users.h>
#include <leasehold/server/users/acl_log.h>
#include <leasehold/server/users/command_catalogue.h>
#include <leasehold/server/users/password_queue.h>
#include <leasehold/server/users/rights.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace leasehold::server {

/// Passwords that were right, kept so that the next connection of a pool costs no slow check.
inline constexpr std::size_t kKnownPasswordsMax = 1024;

/// Any thread.
class Accounts {
 public:
  using RightsPointer = std::shared_ptr<const Rights>;
  using Table = std::map<std::string, RightsPointer, std::less<>>;

  /// `catalogue` outlives it.
  explicit Accounts(const CommandCatalogue& catalogue) : catalogue_(catalogue) {}
  Accounts(const Accounts&) = delete;
  Accounts& operator=(const Accounts&) = delete;

  /// Null: there is no such user. The default user always exists.
  RightsPointer find(const kv::Users& users, std::string_view name);
  /// All of them, by name.
  std::shared_ptr<const Table> table(const kv::Users& users);
  const CommandCatalogue& catalogue() const { return catalogue_; }

  /// Whether this password of the user was right a while ago, and the user's record is still the
  /// same. Fast.
  bool knows(const Rights& rights, std::string_view digest);
  /// Slow. Whether the digest is that of one of the user's passwords; remembers it if so. Null
  /// rights, and users without a password: false, after the time that a check takes.
  bool check(const RightsPointer& rights, std::string_view digest);

  PasswordQueue queue;
  AclLog log;

 private:
  std::string known_as(const Rights& rights, std::string_view digest) const;

  const CommandCatalogue& catalogue_;
  std::mutex mutex_;
  std::shared_ptr<const Table> table_;
  std::uint64_t seen_ = 0;  ///< kv::Users::changes() of table_
  std::mutex known_mutex_;
  /// Of this process, so that what is in memory says nothing elsewhere. With known_mutex_.
  std::string key_;
  std::set<std::string> known_;
};

}  // namespace leasehold::server
