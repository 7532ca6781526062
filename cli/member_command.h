// `leasehold member`: the members of a group, listed and changed.
#pragma once

#include <string>
#include <vector>

namespace leasehold::cli {

extern const char* const kMemberUsage;

/// `arguments` are those behind "member". Returns the exit status, see kExitStatuses.
int run_member_command(const std::vector<std::string>& arguments);

}  // namespace leasehold::cli
