// A plan as text: how a schedule is kept when the drawing of plans changes.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/sim/world/plan.h>

#include <string>
#include <string_view>

namespace leasehold::sim {

/// One "name value" a line; durations in nanoseconds. Nodes are numbered from 1:
///
///     leasehold-plan 1
///     seed 5926
///     enabled crash,pause,loss
///     nodes 3
///     link.delay_max 3120000
///     node 1 timing.lease 1000000000
///
/// Empty lines and lines that begin with # are comments. What is not named keeps its default: a
/// plan that was kept stays good when plans get another field.
std::string text_of(const Plan& plan);

/// Reads it. An error names the line, or the values that contradict each other. A plan that this
/// returns can be run: no value of it reaches an assertion.
Result<Plan> plan_of(std::string_view text);

}  // namespace leasehold::sim
