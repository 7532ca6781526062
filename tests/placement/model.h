// A pool that steps are applied to, and what must be true of every step.
#pragma once

#include <leasehold/placement/planner.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace leasehold::placement {

inline Host a_host(std::uint64_t id, const std::string& zone = "", std::uint32_t weight = 1) {
  Host host;
  host.id = raft::NodeId(id);
  host.zone = zone;
  host.weight = weight;
  return host;
}

/// Replica 1 at the first of `hosts`, which leads, and so on.
inline Group a_group(std::uint64_t id, const std::vector<std::uint64_t>& hosts) {
  Group group;
  group.id = raft::GroupId(id);
  for (const std::uint64_t host : hosts) {
    group.last_replica = group.last_replica.next();
    group.voters.push_back({group.last_replica, raft::NodeId(host)});
  }
  group.leader = raft::NodeId(1);
  group.replicas = static_cast<std::uint32_t>(hosts.size());
  return group;
}

/// Applies steps as groups do, and says what is wrong with one.
class Model {
 public:
  explicit Model(Pool start) : pool(std::move(start)) {
    for (std::size_t i = 0; i < pool.groups.size(); ++i) index_[pool.groups[i].id] = i;
  }

  const Host& host(raft::NodeId id) const {
    return *std::find_if(pool.hosts.begin(), pool.hosts.end(),
                         [id](const Host& host) { return host.id == id; });
  }
  Group& group(raft::GroupId id) { return pool.groups[index_.at(id)]; }
  bool reachable(raft::NodeId at) const { return host(at).contact == Contact::reachable; }

  std::size_t copies() const {
    std::size_t count = 0;
    for (const Group& group : pool.groups) {
      for (const Learner& learner : group.learners) count += learner.caught_up ? 0 : 1;
    }
    return count;
  }
  /// Into and out of `id`.
  std::size_t copies_at(raft::NodeId id) const {
    std::size_t count = 0;
    for (const Group& group : pool.groups) {
      for (const Learner& learner : group.learners) {
        if (learner.caught_up) continue;
        count += learner.host == id ? 1 : 0;
        for (const Replica& voter : group.voters) {
          count += voter.id == group.leader && voter.host == id ? 1 : 0;
        }
      }
    }
    return count;
  }
  void catch_up() {
    for (Group& group : pool.groups) {
      for (Learner& learner : group.learners) learner.caught_up = true;
    }
  }

  /// Empty: the step was fine, and is made.
  std::string apply(const Step& step) {
    Group& of = group(step.group);
    if (of.changing) return "a change is under way";
    const auto leader = voter(of, of.leader);
    if (leader == of.voters.end() || !reachable(leader->host)) return "no leader makes it";
    if (reachable_voters(of) < quorum(of)) return "no quorum makes it";
    switch (step.what) {
      case Step::What::add_learner: return add(of, step);
      case Step::What::promote: return promote(of, step);
      case Step::What::remove: return remove(of, step);
      case Step::What::transfer: return transfer(of, step);
    }
    return "?";
  }

  Pool pool;

 private:
  static std::vector<Replica>::iterator voter(Group& group, raft::NodeId id) {
    return std::find_if(group.voters.begin(), group.voters.end(),
                        [id](const Replica& voter) { return voter.id == id; });
  }
  static std::vector<Learner>::iterator learner(Group& group, raft::NodeId id) {
    return std::find_if(group.learners.begin(), group.learners.end(),
                        [id](const Learner& learner) { return learner.id == id; });
  }
  static std::size_t quorum(const Group& group) { return group.voters.size() / 2 + 1; }
  std::size_t reachable_voters(const Group& group) const {
    return static_cast<std::size_t>(
        std::count_if(group.voters.begin(), group.voters.end(),
                      [this](const Replica& voter) { return reachable(voter.host); }));
  }

  std::string add(Group& group, const Step& step) {
    if (step.replica <= group.last_replica) return "a number is used twice";
    const auto at = [&step](const auto& member) { return member.host == step.host; };
    if (std::any_of(group.voters.begin(), group.voters.end(), at) ||
        std::any_of(group.learners.begin(), group.learners.end(), at)) {
      return "two replicas at one host";
    }
    if (!reachable(step.host) || host(step.host).draining || host(step.host).weight == 0) {
      return "the host takes none";
    }
    group.last_replica = step.replica;
    group.leaving = step.instead_of;
    group.learners.push_back({step.replica, step.host, false});
    return {};
  }
  std::string promote(Group& group, const Step& step) {
    const auto found = learner(group, step.replica);
    if (found == group.learners.end() || found->host != step.host) return "no such learner";
    if (!found->caught_up) return "it has not caught up";
    if (!reachable(found->host)) return "it cannot be reached";
    group.voters.push_back({found->id, found->host});
    group.learners.erase(found);
    return reachable_voters(group) < quorum(group) ? "the quorum is lost" : "";
  }
  std::string remove(Group& group, const Step& step) {
    const auto of_learner = learner(group, step.replica);
    if (of_learner != group.learners.end()) {
      group.learners.erase(of_learner);
      return {};
    }
    const auto found = voter(group, step.replica);
    if (found == group.voters.end() || found->host != step.host) return "no such replica";
    if (group.leader == step.replica) return "it leads";
    if (group.voters.size() <= group.replicas) return "too few replicas are left";
    group.voters.erase(found);
    return reachable_voters(group) < quorum(group) ? "the quorum is lost" : "";
  }
  std::string transfer(Group& group, const Step& step) {
    const auto found = voter(group, step.replica);
    if (found == group.voters.end() || found->host != step.host) return "no such voter";
    if (group.leader == step.replica) return "it leads already";
    if (!reachable(found->host)) return "it cannot be reached";
    group.leader = step.replica;
    return {};
  }

  std::map<raft::GroupId, std::size_t> index_;
};

}  // namespace leasehold::placement
