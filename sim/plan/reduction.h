// What is left out of a seed's run: to see what a finding needs, and to make its story short.
#pragma once

#include <leasehold/sim/world/options.h>

#include <string>

namespace leasehold::sim {

struct Plan;

/// Takes out of the plan what is left out.
void reduce(const Reduction& reduction, Plan& plan);

/// As options of `leasehold sim`, each with a space in front; empty if nothing is left out.
std::string options_of(const Reduction& reduction);

/// Takes an option of options_of(). False: `name` is not one, or does not take `value`.
bool take_reduction(const std::string& name, const std::string& value, Reduction& reduction);

}  // namespace leasehold::sim
