// Schedules that found something, as the plans in tests/sim/plans/.
#pragma once

#include <leasehold/sim/plan/plan_text.h>
#include <leasehold/sim/simulator.h>
#include <leasehold/story/files.h>

#include <string>
#include <utility>

namespace leasehold::sim {

/// Runs the plan. A file that cannot be read or run is a finding of the oracle `plan`.
inline SeedReport run_kept_plan(const std::string& name, SimOptions options = {}) {
  const std::string file = LEASEHOLD_SIM_PLANS "/" + name;
  SeedReport unread;
  const Result<std::string> text = story::read_file(file);
  if (!text) {
    unread.violation = Violation{"plan", {}, text.error().message, {}};
    return unread;
  }
  Result<Plan> plan = plan_of(text.value());
  if (!plan) {
    unread.violation = Violation{"plan", {}, file + ": " + plan.error().message, {}};
    return unread;
  }
  options.plan = std::move(plan).value();
  return run_seed(options.plan->seed, options);
}

}  // namespace leasehold::sim
