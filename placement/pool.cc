#include <leasehold/placement/pool.h>

#include <limits>
#include <unordered_set>

namespace leasehold::placement {
namespace {

Error invalid(std::string message) {
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

std::string at_most(std::string what, std::uint64_t max) {
  return std::move(what) + " at most " + std::to_string(max);
}

using Hosts = std::unordered_set<raft::NodeId>;

Result<Hosts> known_hosts(const Pool& pool) {
  if (pool.hosts.size() > kHostsMax) return invalid(at_most("hosts: list", kHostsMax));
  Hosts known;
  for (const Host& host : pool.hosts) {
    const std::string name = "host " + std::to_string(host.id.value());
    if (host.id == raft::kNobody) return invalid(name + ": number hosts from 1 on");
    if (!known.insert(host.id).second) return invalid(name + " is listed twice");
    if (host.weight > kWeightMax) return invalid(at_most(name + ": its weight is", kWeightMax));
  }
  return known;
}

/// What is wrong with the members of a group; empty: nothing. `replica` and `host` have those of
/// the members before.
struct Members {
  const Hosts& known;
  raft::NodeId last_replica;
  Hosts ids{};
  Hosts hosts{};

  std::string problem(raft::NodeId id, raft::NodeId host) {
    const std::string name = "replica " + std::to_string(id.value());
    const std::string place = "host " + std::to_string(host.value());
    if (id == raft::kNobody) return "number replicas from 1 on";
    if (id > last_replica) return name + " has a number above last_replica";
    if (!ids.insert(id).second) return name + " is listed twice";
    if (known.find(host) == known.end()) return name + " is at " + place + ", which is not listed";
    if (!hosts.insert(host).second) return place + " has two replicas";
    return {};
  }
};

std::string problem_of(const Group& group, const Hosts& known) {
  if (group.replicas < 1 || group.replicas > kReplicasMax) {
    return at_most("it wants at least 1 replica and", kReplicasMax);
  }
  if (group.load < 1 || group.load > kLoadMax) {
    return at_most("its load is at least 1 and", kLoadMax);
  }
  if (group.last_replica.value() == std::numeric_limits<std::uint64_t>::max()) {
    return "there is no number above last_replica";
  }
  if (group.voters.empty()) return "it has no voter";
  Members members{known, group.last_replica};
  for (const Replica& voter : group.voters) {
    std::string problem = members.problem(voter.id, voter.host);
    if (!problem.empty()) return problem;
  }
  if (group.leader != raft::kNobody && members.ids.find(group.leader) == members.ids.end()) {
    return "its leader " + std::to_string(group.leader.value()) + " is no voter";
  }
  for (const Learner& learner : group.learners) {
    std::string problem = members.problem(learner.id, learner.host);
    if (!problem.empty()) return problem;
  }
  return {};
}

}  // namespace

Result<void> validate(const Pool& pool) {
  const auto known = known_hosts(pool);
  if (!known.ok()) return known.error();
  if (pool.groups.size() > kGroupsMax) return invalid(at_most("groups: list", kGroupsMax));
  std::unordered_set<raft::GroupId> groups;
  for (const Group& group : pool.groups) {
    const std::string name = "group " + std::to_string(group.id.value());
    if (group.id.value() == 0) return invalid(name + ": number groups from 1 on");
    if (!groups.insert(group.id).second) return invalid(name + " is listed twice");
    const std::string problem = problem_of(group, known.value());
    if (!problem.empty()) return invalid(name + ": " + problem);
  }
  return {};
}

}  // namespace leasehold::placement
