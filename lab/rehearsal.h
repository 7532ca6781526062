// Visits that no visitor made: drawn from a seed, for comparisons between builds.
#pragma once

#include <leasehold/lab/visit.h>

#include <cstdint>

namespace leasehold::lab {

/// Three to seven nodes, timing that differs, ends of processes that are known or not, and up to
/// thirty steps of every kind within twenty seconds. Within the bounds of its settings: clocks
/// drift by rho at most, and never leap.
Visit draw_visit(std::uint64_t seed);
/// Plays it to the end, in portions that `seed` decides, and gives its trace hash.
std::uint64_t rehearse(std::uint64_t seed);

}  // namespace leasehold::lab
