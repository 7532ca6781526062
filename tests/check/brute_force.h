// The definition of linearizability, word for word, and small random histories to compare with.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/check/linearizability.h>

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::check {

/// What a random history is made of.
enum class Flavour : std::uint8_t {
  unique_values,  ///< reads and writes; the fast path
  few_values,     ///< reads and writes of two values
  compares,       ///< and compares
  removes,        ///< and compares and removes
  appends,        ///< and appends
};
constexpr std::uint64_t kFlavours = 5;

/// At most six operations on key 1. Half of the answers come from a register that executes them at
/// random instants, so that histories with and without an order are both common.
History random_history(Random& random, Flavour flavour);

/// Tries every order of every subset that holds all answered operations. Written apart from the
/// checker: it shares no line with it.
bool has_an_order(const History& history);

/// Compares the checker with brute force on `histories`; returns what differs, empty if nothing
/// does. Counts those with an order in `good`.
std::string compare_with_brute_force(std::uint64_t seed, std::uint64_t histories,
                                     std::uint64_t& good);

}  // namespace leasehold::check
