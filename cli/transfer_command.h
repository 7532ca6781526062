// `leasehold transfer`: the program as a client that asks the leader to hand over.
#pragma once

#include <string>
#include <vector>

namespace leasehold::cli {

extern const char* const kTransferUsage;

/// Looks for the leader among the servers, asks it to hand over, and tells who leads then and how
/// long it took. Exit status as in kExitStatuses: 0 (also if the named node leads already), 2, 3
/// (the hand-over may yet happen), 4 (refused, failed, or no leader was found in time).
int run_transfer_command(const std::vector<std::string>& arguments);

}  // namespace leasehold::cli
