// The users of the client port, as the group has agreed on them. What their rules mean is decided
// above (server/users/); here they are bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace leasehold::kv {

/// Limits. Checked when a command is made and again when it is applied.
inline constexpr std::size_t kUserNameBytesMax = 128;
inline constexpr std::size_t kUserRulesBytesMax = std::size_t{64} << 10U;
inline constexpr std::size_t kUsersMax = 1024;

struct User {
  /// The revision that wrote it, above 0: no two records of users have the same one.
  std::uint64_t version = 0;
  /// The revision that made it: a user that was removed and made again is another one.
  std::uint64_t created = 0;
  std::string rules;
};
using UserMap = std::map<std::string, std::shared_ptr<const User>, std::less<>>;

/// The thread of apply() changes the users, while any other reads them. It remembers the changes
/// since the last saved(), for a store that writes users one by one.
class Users {
 public:
  // Any thread.

  /// A number of this process that rises with every change, and when another state replaces the
  /// store; 1 at first. One atomic load.
  std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  /// All users by name, at least as new as the changes() that was read before. Never null.
  std::shared_ptr<const UserMap> list() const;

  // The thread of apply().

  /// Null: there is no such user.
  const User* find(std::string_view name) const;
  std::size_t size() const { return users_->size(); }
  void set(std::string_view name, User user);
  /// False: there is no such user.
  bool remove(std::string_view name);
  /// Written or removed since the last saved().
  const std::set<std::string>& changed() const { return changed_; }
  std::size_t changed_bytes() const { return changed_bytes_; }
  void saved();
  /// Then no user has to be written.
  void replace(UserMap users);

 private:
  void show(UserMap users);

  std::atomic<std::uint64_t> changes_{1};
  /// Held while `users_` is replaced, and by readers on other threads.
  mutable std::mutex mutex_;
  std::shared_ptr<const UserMap> users_ = std::make_shared<const UserMap>();
  std::set<std::string> changed_;
  std::size_t changed_bytes_ = 0;
};

}  // namespace leasehold::kv
