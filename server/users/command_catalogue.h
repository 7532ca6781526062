// What the rules of users may name: commands, and their categories.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leasehold::server {

/// Bits. The names are those of Redis; those from `leasehold` on are ours.
using Categories = std::uint32_t;
namespace category {
// They are read as category::write, like the alternatives of an enumeration.
// NOLINTBEGIN(readability-identifier-naming)
inline constexpr Categories keyspace = 1U << 0U;
inline constexpr Categories read = 1U << 1U;
inline constexpr Categories write = 1U << 2U;
inline constexpr Categories string = 1U << 3U;
inline constexpr Categories pubsub = 1U << 4U;
inline constexpr Categories admin = 1U << 5U;
inline constexpr Categories fast = 1U << 6U;
inline constexpr Categories slow = 1U << 7U;
inline constexpr Categories dangerous = 1U << 8U;
inline constexpr Categories connection = 1U << 9U;
inline constexpr Categories transaction = 1U << 10U;
inline constexpr Categories scripting = 1U << 11U;
/// Commands that Redis does not have.
inline constexpr Categories leasehold = 1U << 12U;
/// The leases of clients.
inline constexpr Categories lease = 1U << 13U;
/// What an operator needs and an application does not: members, transfers, backups, other clients,
/// users.
inline constexpr Categories cluster_admin = 1U << 14U;
/// Of no command: to renew and to revoke the leases of other users, and to attach keys to them.
inline constexpr Categories lease_others = 1U << 15U;
// NOLINTEND(readability-identifier-naming)
}  // namespace category

inline constexpr std::array<std::string_view, 16> kCategoryNames = {
    "keyspace",  "read",  "write",         "string",      "pubsub",      "admin",
    "fast",      "slow",  "dangerous",     "connection",  "transaction", "scripting",
    "leasehold", "lease", "cluster-admin", "lease-others"};

/// The bit of a name in lower case; 0: there is no such category. "all" is none.
inline Categories category_named(std::string_view name) {
  for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
    if (kCategoryNames[i] == name) return 1U << i;
  }
  return 0;
}

/// Commands that a catalogue may hold.
inline constexpr std::size_t kCommandsMax = 256;

/// The commands by number, from 0 to size() - 1; size() is at most kCommandsMax. Any thread.
class CommandCatalogue {
 public:
  virtual ~CommandCatalogue() = default;
  virtual std::size_t size() const = 0;
  /// Lower case; of a subcommand "client|id".
  virtual std::string_view name_of(std::size_t command) const = 0;
  virtual Categories categories_of(std::size_t command) const = 0;
};

}  // namespace leasehold::server
