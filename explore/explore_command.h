// The command `explore`: all schedules of three real cores within bounds.
#pragma once

#include <string>
#include <vector>

namespace leasehold::explore {

/// Runs what `arguments` ask for (without the program's name; see kExploreUsage) and prints to
/// standard output. Returns the exit status: 0 no violation within the bounds, 1 one was found, 2
/// the arguments are wrong, 3 there was none before the limit of states.
int run_explore_command(const std::vector<std::string>& arguments);

extern const char* const kExploreUsage;

}  // namespace leasehold::explore
