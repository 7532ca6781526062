// `leasehold register`: a key that stands for as long as this process lives.
#pragma once

#include <string>
#include <vector>

namespace leasehold::cli {

extern const char* const kRegisterUsage;

/// Exit status: 0 a signal ended it, 2 wrong usage.
int run_register_command(const std::vector<std::string>& arguments);

}  // namespace leasehold::cli
