// The command `lab`: where the page is, and a page that shows a trace.
#pragma once

#include <string>
#include <vector>

namespace leasehold::lab {

/// Does what `arguments` ask for (without the program's name; see kLabUsage). Returns the exit
/// status: 0 done, 2 the arguments or a file are wrong.
int run_lab_command(const std::vector<std::string>& arguments);

extern const char* const kLabUsage;

}  // namespace leasehold::lab
