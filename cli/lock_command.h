// `leasehold lock`: runs a command while a lock is held.
#pragma once

#include <string>
#include <vector>

namespace leasehold::cli {

extern const char* const kLockUsage;

/// Exit status: that of the command; or 1 the name is held, 2 wrong usage, 4 the group was not
/// reached, 6 the lock was over before the command, 126 and 127 as of a shell.
int run_lock_command(const std::vector<std::string>& arguments);

}  // namespace leasehold::cli
