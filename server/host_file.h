// The file HOSTS of a node with many groups: the nodes that were added while it ran.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/node.h>

#include <string>
#include <vector>

namespace leasehold::server {

/// None: no file. Errors: corrupted, unsupported_format, io.
Result<std::vector<node::Peer>> load_hosts(const std::string& data_dir);

/// Durable on return. Errors: io.
Result<void> save_hosts(const std::string& data_dir, const std::vector<node::Peer>& hosts);

}  // namespace leasehold::server
