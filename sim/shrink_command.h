// `leasehold sim --seed N --shrink`.
#pragma once

#include <leasehold/sim/shrink.h>
#include <leasehold/sim/world/options.h>

#include <cstdint>
#include <optional>

namespace leasehold::sim {

/// Runs a seed in a process of its own, so that a failed assertion is a finding like any other: by
/// the oracle `assertion`, at an unknown instant. None: it found nothing.
std::optional<Finding> find_in_child(std::uint64_t seed, const SimOptions& options);

/// Shrinks what the seed finds, with progress on standard error unless `quiet`. None: it finds
/// nothing.
std::optional<Shrunk> shrink_seed(std::uint64_t seed, const SimOptions& options, bool quiet);

}  // namespace leasehold::sim
