// Between the visits of the lab and scenario files (docs/scenarios/README.md).
//
// A scenario moves bare cores, in which nothing happens but what it says; in the lab whole nodes
// run, and timers, messages and disks take their course. So only some words have a counterpart, and
// the same words are not the same run: the two draw their chances from different places.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lab/visit.h>
#include <leasehold/story/scenario.h>

#include <cstddef>
#include <string>
#include <vector>

namespace leasehold::lab {

/// A visit that was asked of a scenario file.
struct AskedVisit {
  Visit visit;        ///< without a steady load, which scenarios have not
  Duration until{0};  ///< how far the scenario goes
  /// Each command that has no counterpart: its line, its words and the reason. If there is any, the
  /// visit is not what the scenario says.
  std::vector<std::string> without;
  /// Each look and each `expect`: nothing in a visit says what they say, and it needs none.
  std::vector<std::string> left_out;
};

/// Errors: malformed or invalid_argument, if even `nodes` has no counterpart; the text names the
/// line.
Result<AskedVisit> visit_of_scenario(const story::ScenarioFile& file);

/// Of a scenario that is written.
inline constexpr Duration kScenarioLongest = std::chrono::seconds(60);
/// Numbers that are tried for the seed of its random delays.
inline constexpr std::uint64_t kScenarioSeeds = 60;

/// `visit` up to `until` as a scenario file with its output, which `leasehold scenario` finds as it
/// says. The first seed is taken with which the same nodes lead one after another as in the visit;
/// the prose says if there is none, and names what was left out. Errors: invalid_argument, with the
/// step that no scenario can say and the reason.
Result<std::string> scenario_of_visit(const Visit& visit, Duration until);

}  // namespace leasehold::lab
