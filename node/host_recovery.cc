#include <leasehold/base/assert.h>
#include <leasehold/base/fnv.h>
#include <leasehold/node/host_recovery.h>

#include <algorithm>
#include <string>
#include <utility>

namespace leasehold::node {
namespace {

std::string host_text(const HostSurvivor& host) {
  return "node " + std::to_string(host.id.value());
}

const Survivor* find_group(const HostSurvivor& host, raft::GroupId group) {
  const auto at = std::find_if(host.groups.begin(), host.groups.end(),
                               [group](const GroupSurvivor& one) { return one.group == group; });
  return at == host.groups.end() ? nullptr : &at->survivor;
}

bool has(const std::vector<raft::GroupId>& groups, raft::GroupId group) {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

Result<void> check_hosts(const std::vector<HostSurvivor>& survivors) {
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    const HostSurvivor& one = survivors[i];
    if (one.cluster_id != survivors.front().cluster_id) {
      return Error{ErrorCode::invalid_argument,
                   host_text(one) + " and " + host_text(survivors.front()) +
                       " are of two clusters: give the directories of one"};
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (survivors[j].id != one.id) continue;
      return Error{ErrorCode::invalid_argument,
                   survivors[j].uuid == one.uuid
                       ? host_text(one) + " is there twice: give each directory once"
                       : "two directories are of " + host_text(one) +
                             ": give the one that was a member last"};
    }
  }
  return {};
}

Result<void> check_groups(const std::vector<HostSurvivor>& survivors, const RecoveryScope& scope) {
  for (const raft::GroupId group : scope.only) {
    if (has(scope.all, group)) continue;
    return Error{ErrorCode::invalid_argument, "there is no group " + std::to_string(group.value()) +
                                                  " among the " + std::to_string(scope.all.size()) +
                                                  " groups"};
  }
  for (const HostSurvivor& host : survivors) {
    for (const GroupSurvivor& one : host.groups) {
      if (has(scope.all, one.group)) continue;
      return Error{ErrorCode::invalid_argument,
                   host_text(host) + " has group " + std::to_string(one.group.value()) +
                       ", and there are said to be " + std::to_string(scope.all.size()) +
                       " groups: give the number with which the nodes were started"};
    }
  }
  return {};
}

/// The group as its members among the survivors say.
Result<GroupRecovery> recovery_of(const std::vector<HostSurvivor>& survivors, raft::GroupId group) {
  GroupRecovery out;
  out.group = group;
  std::vector<std::size_t> hosts;
  std::vector<Survivor> found;
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    const Survivor* const one = find_group(survivors[i], group);
    if (one == nullptr) continue;
    hosts.push_back(i);
    found.push_back(*one);
  }
  // A replica that was removed while its host was away is no member any more.
  std::vector<Survivor> members;
  for (const std::size_t i : members_among(found)) {
    out.hosts.push_back(hosts[i]);
    members.push_back(found[i]);
  }
  if (members.empty()) return out;
  auto plan = plan_recovery(members, MajorityLeft::taken);
  if (plan.ok()) {
    out.fate = plan.value().majority ? GroupFate::kept_majority : GroupFate::lost_majority;
    out.plan = std::move(plan).value();
    return out;
  }
  if (plan.error().code != ErrorCode::unavailable) {
    return Error{plan.error().code,
                 "group " + std::to_string(group.value()) + ": " + plan.error().message};
  }
  out.fate = GroupFate::no_state;
  out.why = plan.error().message;
  return out;
}

std::uint64_t number_of_all(const std::vector<HostSurvivor>& survivors,
                            const HostRecoveryPlan& plan) {
  Fnv hash;
  const auto add = [&hash](std::uint64_t part) { hash.add(std::to_string(part) + " "); };
  std::vector<raft::Uuid> uuids;
  uuids.reserve(survivors.size());
  for (const HostSurvivor& host : survivors) uuids.push_back(host.uuid);
  std::sort(uuids.begin(), uuids.end());
  add(survivors.front().cluster_id);
  for (const raft::Uuid& uuid : uuids) {
    add(uuid.high);
    add(uuid.low);
  }
  for (const GroupRecovery& one : plan.groups) {
    add(one.group.value());
    add(static_cast<std::uint64_t>(one.fate));
    add(one.plan.number);
  }
  return std::max<std::uint64_t>(hash.value(), 1);
}

}  // namespace

Result<HostRecoveryPlan> plan_host_recovery(const std::vector<HostSurvivor>& survivors,
                                            const RecoveryScope& scope) {
  if (survivors.empty()) {
    return Error{ErrorCode::invalid_argument,
                 "no survivor is given: name the directory of each node that is left"};
  }
  if (auto fits = check_hosts(survivors); !fits.ok()) return fits.error();
  if (auto fits = check_groups(survivors, scope); !fits.ok()) return fits.error();
  HostRecoveryPlan plan;
  bool any_goes_on = false;
  bool all_kept = true;
  for (const raft::GroupId group : scope.all) {
    auto made = recovery_of(survivors, group);
    if (!made.ok()) return made.error();
    GroupRecovery one = std::move(made).value();
    all_kept = all_kept && one.fate == GroupFate::kept_majority;
    if (!scope.only.empty() && !has(scope.only, group)) {
      one.fate = GroupFate::left_out;
    } else if (one.goes_on()) {
      any_goes_on = true;
    }
    plan.wait = std::max(plan.wait, one.plan.wait);
    plan.groups.push_back(std::move(one));
  }
  if (all_kept) {
    return Error{ErrorCode::in_use,
                 "every group has a majority among these nodes: nothing is lost. Start them, and "
                 "remove the lost ones from each group (leasehold member remove)"};
  }
  if (!any_goes_on) {
    return Error{ErrorCode::unavailable,
                 "no survivor has a state to go on from, of any group: restore them from a backup "
                 "(leasehold restore)"};
  }
  plan.number = number_of_all(survivors, plan);
  return plan;
}

std::vector<Survivor> survivors_of(const std::vector<HostSurvivor>& survivors,
                                   const GroupRecovery& recovery) {
  std::vector<Survivor> out;
  for (const std::size_t host : recovery.hosts) {
    const Survivor* const one = find_group(survivors[host], recovery.group);
    LEASEHOLD_ASSERT(one != nullptr);
    out.push_back(*one);
  }
  return out;
}

}  // namespace leasehold::node
