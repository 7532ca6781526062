// What commands do with keys and channels, for the rights of users.
#pragma once

#include <leasehold/server/front/command_spec.h>

#include <string_view>
#include <vector>

namespace leasehold::server {

/// As CommandTable::uses_of().
std::vector<KeyUse> uses_of_command(const CommandSpec& spec, const Arguments& args);

/// The name of the command that does what the operation does, for the operations of scripts.
std::string_view command_of(const kv::Operation& operation);

}  // namespace leasehold::server
