// The page that a browser shows of a node.
#pragma once

#include <map>
#include <string>

#include <leasehold/raft/types.h>

namespace leasehold::server {

/// The document, which is the same for every node and has no value of one in it: it asks
/// /status.json for them. It is complete in itself.
extern const char* const kStatusPage;

/// The header Content-Security-Policy of that document: it runs the script and the style in it and
/// nothing else, and reads from its own origin and from the admin ports at `addresses` alone.
std::string page_policy(const std::map<raft::NodeId, std::string>& addresses);

}  // namespace leasehold::server
