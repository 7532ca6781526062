// `leasehold watch`: says what happens to keys.
#pragma once

#include <string>
#include <vector>

namespace leasehold::cli {

extern const char* const kWatchUsage;

/// Exit status: 0 a signal ended it; 2 wrong usage; 4 it is refused by every node that was reached,
/// for a reason that does not pass.
int run_watch_command(const std::vector<std::string>& arguments);

}  // namespace leasehold::cli
