#include <leasehold/base/assert.h>
#include <leasehold/placement/accounts.h>

#include <algorithm>
#include <string_view>

namespace leasehold::placement {

bool GroupAccount::is_at(HostIndex host) const {
  return std::any_of(members.begin(), members.end(),
                     [host](const Member& member) { return member.host == host; });
}

Balance::Balance(const std::vector<Host>& hosts, std::uint32_t tolerance_percent)
    : loads_(hosts.size()), tolerance_percent_(tolerance_percent) {
  weights_.reserve(hosts.size());
  for (const Host& host : hosts) {
    weights_.push_back(host.keeps() ? host.weight : 0);
    weight_ += weights_.back();
  }
}

void Balance::add(HostIndex host, std::uint64_t load) {
  if (weights_[host] == 0) return;
  loads_[host] += load;
  load_ += load;
}

void Balance::remove(HostIndex host, std::uint64_t load) {
  if (weights_[host] == 0) return;
  LEASEHOLD_ASSERT(loads_[host] >= load);
  loads_[host] -= load;
  load_ -= load;
}

bool Balance::improves(HostIndex from, HostIndex to, std::uint64_t load) const {
  if (!above(from) && !below(to)) return false;
  if (loads_[from] < load) return false;
  return (loads_[to] + load) * weights_[from] <= (loads_[from] - load) * weights_[to];
}

bool Balance::lighter(HostIndex a, HostIndex b, std::uint64_t load) const {
  return (loads_[a] + load) * weights_[b] < (loads_[b] + load) * weights_[a];
}

bool Balance::uneven() const {
  for (HostIndex host = 0; host < loads_.size(); ++host) {
    if (above(host) || below(host)) return true;
  }
  return false;
}

bool Balance::above(HostIndex host) const {
  return loads_[host] * 100 > share(host) * (100 + tolerance_percent_);
}

bool Balance::below(HostIndex host) const {
  return loads_[host] * 100 < share(host) * (100 - tolerance_percent_);
}

std::uint64_t Balance::share(HostIndex host) const {
  return weight_ == 0 ? 0 : load_ * weights_[host] / weight_;
}

Accounts::Accounts(const Pool& pool, const Limits& limits)
    : replicas(pool.hosts, limits.tolerance_percent),
      leaders(pool.hosts, limits.tolerance_percent),
      pool_(pool),
      limits_(limits),
      copies_(pool.hosts.size()) {
  std::unordered_map<std::string_view, std::size_t> zones;
  for (HostIndex index = 0; index < pool.hosts.size(); ++index) {
    const Host& host = pool.hosts[index];
    places_.emplace(host.id, index);
    zones_.push_back(zones.emplace(host.zone, zones.size()).first->second);
  }
  groups_.reserve(pool.groups.size());
  for (const Group& group : pool.groups) {
    groups_.push_back(account_of(group));
    count(groups_.back());
  }
}

GroupAccount Accounts::account_of(const Group& group) const {
  GroupAccount account;
  account.group = &group;
  // Until the group has more members than it wants, nobody has replaced the one that is to leave.
  const bool one_leaves = group.voters.size() + group.learners.size() > group.replicas;
  for (const Replica& voter : group.voters) {
    Member member;
    member.id = voter.id;
    member.host = places_.at(voter.host);
    member.stays = host(member.host).keeps() && !(one_leaves && voter.id == group.leaving);
    if (host(member.host).contact == Contact::reachable) {
      ++account.reachable;
      if (voter.id == group.leader) account.leader = account.members.size();
    }
    account.members.push_back(member);
  }
  account.voters = account.members.size();
  for (const Learner& learner : group.learners) {
    const HostIndex at = places_.at(learner.host);
    account.members.push_back({learner.id, at, false, learner.caught_up, host(at).takes()});
  }
  for (const Member& member : account.members) account.staying += member.stays ? 1 : 0;
  account.open = !group.changing && account.leader.has_value() &&
                 account.reachable >= quorum_of(account.voters);
  return account;
}

void Accounts::count(const GroupAccount& group) {
  for (const Member& member : group.members) {
    if (member.stays) replicas.add(member.host, group.load());
    if (!member.caught_up) count_copy(group, member.host);
  }
  if (group.leader) leaders.add(group.members[*group.leader].host, group.load());
}

void Accounts::count_copy(const GroupAccount& group, HostIndex to) {
  ++copies_in_all_;
  ++copies_[to];
  if (group.leader) ++copies_[group.members[*group.leader].host];
}

std::size_t Accounts::in_zone_of(HostIndex host, const GroupAccount& group,
                                 const Member* except) const {
  std::size_t count = 0;
  for (const Member& member : group.members) {
    if (member.stays && &member != except && zones_[member.host] == zones_[host]) ++count;
  }
  return count;
}

bool Accounts::may_send(const GroupAccount& group) const {
  return copies_in_all_ < limits_.moves && may_receive(group.members[*group.leader].host);
}

void Accounts::move(const GroupAccount& group, const Member* from, HostIndex to) {
  if (from != nullptr) replicas.remove(from->host, group.load());
  replicas.add(to, group.load());
  count_copy(group, to);
}

void Accounts::remove(const GroupAccount& group, const Member& member) {
  if (member.stays) replicas.remove(member.host, group.load());
}

void Accounts::transfer(const GroupAccount& group, const Member& to) {
  leaders.remove(group.members[*group.leader].host, group.load());
  leaders.add(to.host, group.load());
  // The transfer may fail: then the copies still come from the host of before.
  for (const Member& member : group.members) copies_[to.host] += member.caught_up ? 0 : 1;
}

}  // namespace leasehold::placement
