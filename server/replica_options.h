// What this process opens its host and its replicas with, of its settings.
#pragma once

#include <leasehold/node/host.h>
#include <leasehold/node/node.h>
#include <leasehold/raft/types.h>
#include <leasehold/server/settings.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace leasehold::server {

/// This node, and the others that it knows at its start.
std::vector<node::Peer> first_hosts(const ServeSettings& settings,
                                    const node::NodeOptions& options);

node::HostOptions host_options(const ServeSettings& settings, const node::NodeOptions& options);

/// The nodes that have the group, which counts from 0, at its beginning. The first one, which has
/// the users, is everywhere.
std::vector<raft::NodeId> first_nodes(const ServeSettings& settings,
                                      const node::NodeOptions& options, std::size_t group);

/// `number` counts from 0.
node::GroupOptions group_options(const ServeSettings& settings, const node::NodeOptions& options,
                                 std::size_t number, raft::NodeId replica);

inline bool contains(const std::vector<raft::NodeId>& nodes, raft::NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace leasehold::server
