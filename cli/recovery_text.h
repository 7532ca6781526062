// What leasehold recover says to people: what is kept, and what may be lost.
#pragma once

#include <leasehold/node/host_recovery.h>
#include <leasehold/node/recovery_plan.h>

#include <string>
#include <vector>

namespace leasehold::cli {

/// What is kept and what may be lost of a group: many lines.
std::string loss_text(const std::vector<node::Survivor>& survivors, const node::RecoveryPlan& plan);
/// Of nodes with many groups, with a line for each group.
std::string host_loss_text(const std::vector<node::HostSurvivor>& hosts,
                           const node::HostRecoveryPlan& plan);

}  // namespace leasehold::cli
