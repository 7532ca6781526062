// What leasehold recover says to people: what is kept, and what may be lost.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/host_recovery.h>
#include <leasehold/node/recovery_plan.h>

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::cli {

/// What is kept and what may be lost of a group: many lines.
std::string loss_text(const std::vector<node::Survivor>& survivors, const node::RecoveryPlan& plan);
/// Of nodes with many groups, with a line for each group.
std::string host_loss_text(const std::vector<node::HostSurvivor>& hosts,
                           const node::HostRecoveryPlan& plan);

/// Why a directory is not recovered: a node has run on it, or the plan does not know it.
Error changed_since_the_plan(const std::string& dir);
Error not_in_the_plan(const std::string& dir, raft::NodeId node, std::uint64_t cluster_id);

}  // namespace leasehold::cli
