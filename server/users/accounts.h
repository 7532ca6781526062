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
#include <optional>
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

  /// Which of the user's passwords this is, as it is stored, if it was right a while ago, and the
  /// user's record is still the same. Fast.
  StoredPassword knows(const Rights& rights, std::string_view digest);
  /// Equal for checks that have the same answer; empty: there is no telling.
  std::string same_check(const RightsPointer& rights, std::string_view name,
                         std::string_view digest);
  /// Slow. Which of the user's passwords the digest is that of, as it is stored; remembers it if it
  /// is one. Null rights, and users without a password: none, after the time that a check takes.
  StoredPassword check(const RightsPointer& rights, std::string_view digest);

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
  std::map<std::string, std::string> known_;
};

}  // namespace leasehold::server
