// The command `check`: judges a recorded history.
#pragma once

#include <string>
#include <vector>

namespace leasehold::check {

/// Runs what `arguments` ask for (without the program's name; see kCheckUsage) and prints to
/// standard output; progress goes to standard error. Returns the exit status: 0 linearizable, 1
/// not, 2 the arguments or the file are wrong, 3 undecided.
int run_check_command(const std::vector<std::string>& arguments);

extern const char* const kCheckUsage;

}  // namespace leasehold::check
