// Whether a user may run a command.
#pragma once

#include <leasehold/server/front/command_spec.h>
#include <leasehold/server/users/acl_log.h>
#include <leasehold/server/users/rights.h>

#include <cstddef>
#include <string>

namespace leasehold::server {

/// Why not, in the words of Redis, with reason and object in `refusal`; empty: it may. `args` whose
/// number does not fit the command: only the command itself is judged. `steps`: what the patterns
/// have cost.
std::string why_not(const Rights& rights, const CommandTable& commands, const CommandSpec& spec,
                    const Arguments& args, AclRefusal& refusal, std::size_t& steps);

}  // namespace leasehold::server
