// The levels of the operator's log, and the names that Redis has for them.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace leasehold::server {

/// The one with the most lines first, each with Redis's name for it.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kLogLevels = {
    {{"trace", "debug"},
     {"debug", "debug"},
     {"info", "notice"},
     {"warn", "warning"},
     {"error", "warning"},
     {"off", "nothing"}}};

/// Empty: `level` is none.
inline std::string_view redis_log_level(std::string_view level) {
  const auto found = std::find_if(kLogLevels.begin(), kLogLevels.end(),
                                  [level](const auto& one) { return one.first == level; });
  return found == kLogLevels.end() ? std::string_view() : found->second;
}

/// The level that Redis calls so; empty: none. Its `verbose` is `debug` here.
inline std::string_view log_level_of_redis(std::string_view name) {
  if (name == "debug" || name == "verbose") return "debug";
  const auto found = std::find_if(kLogLevels.begin(), kLogLevels.end(),
                                  [name](const auto& one) { return one.second == name; });
  return found == kLogLevels.end() ? std::string_view() : found->first;
}

}  // namespace leasehold::server
