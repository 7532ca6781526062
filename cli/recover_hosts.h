// leasehold recover for nodes with many groups, behind the checks of the command line.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/cli/recovery_file.h>

#include <cstdint>
#include <functional>
#include <string>

namespace leasehold::cli {

/// The plan that follows from the reports. Errors: as plan_host_recovery(); invalid_argument also
/// where nobody has said how many groups there were.
Result<node::HostRecoveryPlan> plan_of_hosts(const HostReports& reports);

struct HostApplication {
  std::string dir;  ///< of a stopped node
  std::string to;   ///< the folder for the files of its groups; empty: none
  /// Whether the person means this cluster.
  std::function<Result<void>(std::uint64_t cluster_id)> confirm;
  /// Whether the directory may be retired by the recovery of this number.
  std::function<Result<void>(std::uint64_t number)> may_retire;
};

/// Retires the directory, and writes a file for each group that goes on from this node. Given
/// again after an interruption, it goes on. Prints what it does. Errors: those of a StoppedHost, of
/// what `wanted` refuses, invalid_argument (the directory is not in the plan, or has changed; `to`
/// is missing or superfluous), in_use (`to` has a file of another plan), and those of
/// write_recovered_state().
Result<void> apply_to_host(const HostApplication& wanted, const HostReports& reports);

}  // namespace leasehold::cli
