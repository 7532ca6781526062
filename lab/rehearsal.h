// Visits that no visitor made: drawn from a seed, for comparisons between builds.
#pragma once

#include <leasehold/lab/visit.h>

#include <cstdint>
#include <string>

namespace leasehold::lab {

/// Three to seven nodes, timing that differs, ends of processes that are known or not, and up to
/// thirty steps of every kind within twenty seconds. Within the bounds of its settings: clocks
/// drift by rho at most, and never leap.
Visit draw_visit(std::uint64_t seed);

/// How a drawn visit went.
struct Rehearsal {
  Visit visit;  ///< with the steps about messages that were chosen under way
  std::uint64_t hash = 0;
  std::string violation;
  std::string refusal;
};

/// Plays the drawn visit to its end, in portions that `seed` decides. In half of them messages
/// under way are lost, delayed, or arrive twice.
Rehearsal rehearse(std::uint64_t seed);

}  // namespace leasehold::lab
