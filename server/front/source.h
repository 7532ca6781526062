// Which connections share the limits of one client.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::server {

/// The name of such a client. One IPv4 address is one client. One IPv6 network of 64 bits is one
/// client, since a machine may use every address of it. Each connection of this machine is a client
/// of its own, since a proxy here may serve many. `address`: host:port, as a session has it.
std::string source_of(std::string_view address);

}  // namespace leasehold::server
