// A node's state as text: for INFO, and as JSON for LEASEHOLD STATUS.
#pragma once

#include <leasehold/node/group.h>
#include <leasehold/server/front/served_groups.h>
#include <leasehold/server/front/server_state.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::server {

extern const char* const kVersion;

const char* role_name(raft::Role role);

/// Since the start of this node.
std::int64_t uptime_seconds(const ServerState& state);

/// The text of INFO. `wanted` are names of its sections in lower case; none, "all", "default" and
/// "everything" mean all. An unknown section is an empty text, as in Redis.
std::string info_text(const std::vector<std::string>& wanted, const node::NodeStatus& status,
                      const ServerState& state, const ServedGroup& group);

/// One JSON object, of the group `selected` of `statuses`, and how many of all groups this node
/// leads. The keys id, role, term, leader, commit, applied, lease_left (milliseconds) and members
/// are fixed; others may be added.
std::string status_json(const std::vector<node::NodeStatus>& statuses, const ServerState& state,
                        const ServedGroups& groups, std::size_t selected);

/// What LEASEHOLD MEMBER LIST answers: one JSON object with node, leader, term, last, membership
/// and members, each with the same content as in status_json().
std::string members_json(const node::NodeStatus& status);

/// What LEASEHOLD SETTINGS answers: one JSON object with node, leader, agreed (false: the group has
/// none, and these are the node's own), committed, each setting as its flag is written, and usable
/// (how long a leader may use a promise).
std::string settings_json(const node::NodeStatus& status);

}  // namespace leasehold::server
