// Whether this node serves, and what keeps it from that.
#pragma once

#include <leasehold/server/admin/looks.h>
#include <leasehold/server/front/served_groups.h>
#include <leasehold/server/front/server_state.h>

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::server {

/// A node that lacks more committed entries than this is not ready yet.
inline constexpr std::uint64_t kReadyLagMax = 1000;

struct ReadyCondition {
  const char* name;
  bool met;
  std::string detail;  ///< why not; empty if it is met
};

/// All of them, in an order that stays. Of many groups each condition is about all.
std::vector<ReadyCondition> ready_conditions(const Look& look, const ServedGroups& groups,
                                             const ServerState& state);
bool is_ready(const std::vector<ReadyCondition>& conditions);
/// {"ready": ..., "conditions": [{"name", "met", "detail"}, ...]}
std::string ready_json(const std::vector<ReadyCondition>& conditions);

}  // namespace leasehold::server
