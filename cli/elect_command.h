// `leasehold elect`: stands for an office, or watches who holds it.
#pragma once

#include <string>
#include <vector>

namespace leasehold::cli {

extern const char* const kElectUsage;

/// Exit status: 0 a signal ended it, and the office was given up; 1 it is another's; 2 wrong usage;
/// 4 the group was not reached; 6 it was elected, and the office was lost.
int run_elect_command(const std::vector<std::string>& arguments);

}  // namespace leasehold::cli
