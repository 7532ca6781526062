// The names of nodes with many groups, and of their groups.
#pragma once

#include <leasehold/server/front/backup_manifest.h>

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace leasehold::server {

/// The number of groups is part of what the hosts agree on: with another one, keys would be in
/// other groups than those that have them.
inline std::string host_cluster(const std::string& cluster, std::size_t groups) {
  return fmt::format("{} of {} groups", cluster, groups);
}

/// What the backup of one of them says that it is of. It fits into a manifest.
inline std::string name_of_group(const std::string& cluster, std::size_t group) {
  const std::string number = fmt::format(" group {}", group);
  return cluster.substr(0, kClusterNameBytesMax - number.size()) + number;
}

/// Whether a backup with that name is of the group.
inline bool is_of_group(std::string_view name, std::size_t group) {
  const std::string number = fmt::format(" group {}", group);
  return name.size() > number.size() && name.substr(name.size() - number.size()) == number;
}

}  // namespace leasehold::server
