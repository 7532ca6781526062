// The command `scenario`: runs scenario files.
#pragma once

#include <string>
#include <vector>

namespace leasehold::story {

/// Runs what `arguments` ask for (without the program's name; see kScenarioUsage) and prints to
/// standard output. Returns the exit status: 0 every file says what happens, 1 one does not, 2 the
/// arguments or a file are wrong.
int run_scenario_command(const std::vector<std::string>& arguments);

extern const char* const kScenarioUsage;

}  // namespace leasehold::story
