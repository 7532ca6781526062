// What is left of hosts with many groups: which groups a new pool goes on with, from which host's
// log each, and what of each may be lost. Pure.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/recovery_plan.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::node {

/// What the directory of one host says of one group. Survivor::id is the replica's number, and
/// Survivor::uuid the directory's.
struct GroupSurvivor {
  raft::GroupId group;
  Survivor survivor;
  friend bool operator==(const GroupSurvivor&, const GroupSurvivor&) = default;
};

/// What the directory of one host says.
struct HostSurvivor {
  std::uint64_t cluster_id = 0;
  raft::NodeId id;  ///< the host's number
  raft::Uuid uuid;
  std::vector<GroupSurvivor> groups;  ///< ascending; those that have formed
  friend bool operator==(const HostSurvivor&, const HostSurvivor&) = default;
};

enum class GroupFate : std::uint8_t {
  lost_majority,  ///< it goes on from a survivor's log
  kept_majority,  ///< the same, and nothing of it is lost, unless GroupRecovery::plan says so
  no_state,       ///< it has survivors, and none has a state: all of it is lost
  no_survivor,    ///< all of it is lost
  left_out,       ///< nobody asked for it
};

struct GroupRecovery {
  raft::GroupId group;
  GroupFate fate = GroupFate::no_survivor;
  std::vector<std::size_t> hosts;  ///< among the survivors: those with a member of the group
  RecoveryPlan plan;               ///< while goes_on(); `source` and `longer` count within `hosts`
  std::string why;                 ///< of no_state, for people

  bool goes_on() const {
    return fate == GroupFate::lost_majority || fate == GroupFate::kept_majority;
  }
  /// The host from whose log the group goes on, among the survivors. Only while goes_on().
  std::size_t source() const { return hosts[plan.source]; }
};

struct HostRecoveryPlan {
  std::uint64_t number = 0;           ///< a hash of all reports and of what was asked for. Not 0
  std::vector<GroupRecovery> groups;  ///< ascending; all that there were
  raft::Duration wait{0};             ///< as RecoveryPlan::wait, for all groups
};

/// What hosts are recovered to.
struct RecoveryScope {
  std::vector<raft::GroupId> all;   ///< the groups that there were; ascending
  std::vector<raft::GroupId> only;  ///< those to go on with; ascending; empty: all
};

/// All groups of a cluster are given up together, as its hosts and its id are theirs in common; so
/// a group that has kept its majority goes on in the new cluster as well. Errors, each a sentence
/// that says what to do: invalid_argument (no host, hosts of two clusters, one host twice, a group
/// that is not in `all`), in_use (every group has kept its majority: nothing is lost, start the
/// hosts), unavailable (no group can go on).
Result<HostRecoveryPlan> plan_host_recovery(const std::vector<HostSurvivor>& survivors,
                                            const RecoveryScope& scope);

/// The reports of one group, in the order of `recovery.hosts`.
std::vector<Survivor> survivors_of(const std::vector<HostSurvivor>& survivors,
                                   const GroupRecovery& recovery);

}  // namespace leasehold::node
