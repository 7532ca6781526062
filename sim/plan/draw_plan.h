// What one seed decides before anything runs.
#pragma once

#include <leasehold/sim/world/options.h>
#include <leasehold/sim/world/plan.h>

#include <cstdint>

namespace leasehold::sim {

/// Draws the cluster, its settings, and which faults may happen how often. With SimOptions::plan
/// that is decided already.
Plan draw_plan(std::uint64_t seed, const SimOptions& options);

}  // namespace leasehold::sim
