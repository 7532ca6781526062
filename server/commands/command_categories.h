// The categories of the commands (+@read, -@dangerous): what each command is, by its entry in the
// table and the exceptions that are listed in the .cc.
#pragma once

#include <leasehold/server/front/command_spec.h>

namespace leasehold::server {

/// At least one. A command about the node that is not listed is one for operators only.
Categories categories_of_command(const CommandSpec& spec);

}  // namespace leasehold::server
