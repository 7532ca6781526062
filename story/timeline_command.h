// The command `timeline`: draws a trace or a scenario.
#pragma once

#include <string>
#include <vector>

namespace leasehold::story {

/// Does what `arguments` ask for (without the program's name; see kTimelineUsage). Returns the exit
/// status: 0 drawn, 2 the arguments or the file are wrong.
int run_timeline_command(const std::vector<std::string>& arguments);

extern const char* const kTimelineUsage;

}  // namespace leasehold::story
