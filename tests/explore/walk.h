// Walks through the explorer's world, by the names of its steps.
#pragma once

#include <gtest/gtest.h>
#include <leasehold/explore/search.h>

#include <algorithm>
#include <string>
#include <vector>

namespace leasehold::explore {

/// Node 1 leads, and its followers have answered.
inline Bounds led() {
  Bounds bounds;
  bounds.beginning = beginning::led(3);
  return bounds;
}

inline SearchReport search_all(const Bounds& bounds, std::size_t depth_max = 64) {
  SearchLimits limits;
  limits.depth_max = depth_max;
  return search(bounds, limits, {}, {});
}

inline bool offers(const World& world, const std::string& text) {
  const std::vector<Step> steps = world.steps();
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step& step) { return world.text(step) == text; });
}

inline World after(World world, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const std::vector<Step> steps = world.steps();
    const auto step = std::find_if(steps.begin(), steps.end(),
                                   [&](const Step& one) { return world.text(one) == text; });
    EXPECT_TRUE(step != steps.end()) << text;
    if (step != steps.end()) world.take(*step);
  }
  return world;
}

}  // namespace leasehold::explore
