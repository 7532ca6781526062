// `leasehold lease`: the leases of clients, one command at a time.
#pragma once

#include <string>
#include <vector>

namespace leasehold::cli {

extern const char* const kLeaseUsage;

/// Exit status: 0 done; 1 there is no such lease or key, or the name is held; 2 wrong usage; 3
/// outcome unknown; 4 not executed.
int run_lease_command(const std::vector<std::string>& arguments);

}  // namespace leasehold::cli
