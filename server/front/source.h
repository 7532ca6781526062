// Which clients are told apart by the limits that each has for itself.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::server {

/// Equal for connections that share such a limit: those from one IPv4 address, or one IPv6 network
/// of 64 bits, of which a machine may use every address. Those of this machine are told apart one
/// by one, since a proxy may stand there for many clients. `address`: as a session has it,
/// host:port.
std::string source_of(std::string_view address);

}  // namespace leasehold::server
