// What the planner knows of hosts and groups once all moves that have been begun are made.
#pragma once

#include <leasehold/placement/planner.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace leasehold::placement {

/// A host, by its place in Pool::hosts.
using HostIndex = std::size_t;

struct Member {
  raft::NodeId id;
  HostIndex host = 0;
  bool voter = true;
  bool caught_up = true;
  bool stays = true;  ///< it is not to be replaced
};

/// A group and what its members are to become.
struct GroupAccount {
  const Group* group = nullptr;
  std::vector<Member> members;  ///< voters, then learners
  std::size_t voters = 0;
  std::size_t reachable = 0;  ///< voters
  std::size_t staying = 0;    ///< members
  /// Its leader among `members`; none also if the leader's host is not reachable.
  std::optional<std::size_t> leader{};
  /// It may get a step: it has a leader and a quorum, and nothing is under way.
  bool open = false;

  std::size_t wanted() const { return group->replicas; }
  std::uint64_t load() const { return group->load; }
  bool has_learner() const { return members.size() > voters; }
  bool is_at(HostIndex host) const;
};

/// The quorum of so many voters.
constexpr std::size_t quorum_of(std::size_t voters) {
  return voters / 2 + 1;
}

/// Loads by host, and which of them a move would bring nearer to the hosts' shares.
///
/// With a_1, a_2, ... the loads and w_1, w_2, ... the weights, every move that improves() lowers
/// the sum of a_i * a_i / w_i. So no sequence of such moves comes back to where it began.
class Balance {
 public:
  Balance() = default;
  Balance(const std::vector<Host>& hosts, std::uint32_t tolerance_percent);

  /// Only for hosts that keep their replicas.
  void add(HostIndex host, std::uint64_t load);
  void remove(HostIndex host, std::uint64_t load);
  /// `from` would not be less loaded after the move than `to`, and one of them is too far from its
  /// share now.
  bool improves(HostIndex from, HostIndex to, std::uint64_t load) const;
  /// With `load` in addition at either, `a` would be less loaded than `b` for its weight.
  bool lighter(HostIndex a, HostIndex b, std::uint64_t load) const;
  /// Some host is too far from its share.
  bool uneven() const;

 private:
  bool above(HostIndex host) const;
  bool below(HostIndex host) const;
  std::uint64_t share(HostIndex host) const;

  std::vector<std::uint64_t> loads_;
  std::vector<std::uint64_t> weights_;  ///< 0: the host does not keep replicas
  std::uint64_t load_ = 0;
  std::uint64_t weight_ = 0;
  std::uint64_t tolerance_percent_ = 0;
};

/// All accounts of a pool. A plan changes them as it goes, so that its later steps see the earlier.
class Accounts {
 public:
  /// `pool` is valid, and outlives this.
  Accounts(const Pool& pool, const Limits& limits);

  const Host& host(HostIndex index) const { return pool_.hosts[index]; }
  std::size_t hosts() const { return pool_.hosts.size(); }
  std::vector<GroupAccount>& groups() { return groups_; }

  /// How many of the members that stay, `except` aside, are in the zone of `host`.
  std::size_t in_zone_of(HostIndex host, const GroupAccount& group, const Member* except) const;
  /// The group's leader may send a copy now. The group is open.
  bool may_send(const GroupAccount& group) const;
  bool may_receive(HostIndex host) const { return copies_[host] < limits_.moves_per_host; }

  /// A new replica at `to`; `from` (or none) leaves for it. The group is open.
  void move(const GroupAccount& group, const Member* from, HostIndex to);
  void remove(const GroupAccount& group, const Member& member);
  void transfer(const GroupAccount& group, const Member& to);

  Balance replicas;  ///< their load
  Balance leaders;   ///< the load of the groups that a host leads

 private:
  GroupAccount account_of(const Group& group) const;
  void count(const GroupAccount& group);
  void count_copy(const GroupAccount& group, HostIndex to);

  const Pool& pool_;
  Limits limits_;
  std::unordered_map<raft::NodeId, HostIndex> places_;
  std::vector<std::size_t> zones_;  ///< of each host, numbered
  std::vector<GroupAccount> groups_;
  std::vector<std::size_t> copies_;  ///< into and out of each host
  std::size_t copies_in_all_ = 0;
};

}  // namespace leasehold::placement
