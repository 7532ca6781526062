// Breadth first through all states within the bounds: the first violation has a shortest schedule.
#pragma once

#include <leasehold/explore/world.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace leasehold::explore {

struct SearchLimits {
  std::size_t depth_max = 64;
  /// States in all; each takes some 30 bytes.
  std::size_t states_max = 20'000'000;
};

/// How far a search has come.
struct SearchNews {
  std::size_t depth = 0;     ///< steps from the beginning; all states nearer were seen
  std::size_t states = 0;    ///< that differ
  std::size_t steps = 0;     ///< that were taken
  std::size_t at_depth = 0;  ///< states at `depth`
};

struct SearchReport {
  SearchNews news;
  bool everything = false;  ///< no state is left within the bounds
  std::vector<Step> path;   ///< to the violation; empty: none
  std::string violation;
};

/// `news` is called after each depth, and with each path right before the search extends it, so
/// that a failed assertion can be reported too; both may be empty.
SearchReport search(const Bounds& bounds, const SearchLimits& limits,
                    const std::function<void(const SearchNews&)>& news,
                    const std::function<void(const std::vector<Step>&)>& about_to_take);

}  // namespace leasehold::explore
