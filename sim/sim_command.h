// The command `sim`: runs seeds and says what was found.
#pragma once

#include <leasehold/sim/world/running_replica.h>

#include <string>
#include <vector>

namespace leasehold::sim {

/// Runs what `arguments` ask for (without the program's name; see kSimUsage) and prints to standard
/// output. Returns the exit status: 0 nothing was found, 1 an oracle spoke, an assertion failed or
/// a seed covered too little, 2 the arguments are wrong.
///
/// Each of --jobs is a child process: so a seed that ends in a failed assertion is reported like
/// any other finding, and the rest goes on.
int run_sim_command(const std::vector<std::string>& arguments);
/// The same with SimOptions::earlier.
int run_sim_command(const std::vector<std::string>& arguments, MakeReplica earlier);

extern const char* const kSimUsage;

}  // namespace leasehold::sim
