// Where the replicas of many groups should be: the next steps on the way there.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/placement/pool.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::placement {

struct Limits {
  /// Copies of a group's state into or out of one host at a time, those under way included: a
  /// learner that has not caught up is one, into its host and out of the leader's. From 1 on. More:
  /// faster repairs, and less of disk and network for callers meanwhile.
  std::size_t moves_per_host = 2;
  std::size_t moves = 16;  ///< copies at a time in the whole pool, in the same sense; from 1 on
  std::size_t steps = 64;  ///< in one plan; from 1 on
  /// A host whose load differs from its share by no more than this part is as it should be: larger
  /// than the noise of how loads are measured. 0 to 100.
  std::uint32_t tolerance_percent = 5;
};

/// The rule behind a step, the most urgent first.
enum class Rule : std::uint8_t {
  finish,   ///< a move that was begun is finished, or given up because its target is lost
  repair,   ///< a group has too few voters, or has a replica at a host that is gone
  drain,    ///< a host drains, or has no weight
  zones,    ///< another zone has fewer replicas of the group
  load,     ///< a host has more than its share of the replicas' load
  leaders,  ///< a host has more than its share of the leaders' load
};
const char* rule_name(Rule rule);

/// One change of one group, for the group's leader to make.
struct Step {
  enum class What : std::uint8_t {
    /// Start `replica` at `host`, then add it to the group as a learner. Remember its number
    /// (Group::last_replica) and `instead_of` (Group::leaving) before that.
    add_learner,
    promote,   ///< the learner `replica`, which becomes a voter
    remove,    ///< `replica`, a learner or a voter; then its host, if it is there, deletes it
    transfer,  ///< the leadership to `replica`, a voter
  };
  What what = What::add_learner;
  raft::GroupId group;
  raft::NodeId replica;
  raft::NodeId host;  ///< that of `replica`
  /// add_learner: the voter that `replica` replaces; kNobody: those at hosts that lose theirs.
  raft::NodeId instead_of{};
  Rule rule = Rule::finish;
  friend bool operator==(const Step&, const Step&) = default;
};

/// The step for a log: "group 7: add replica 14 at host 4 (drain)".
std::string describe(const Step& step);

struct Plan {
  /// Of different groups: they may be made in any order, or at the same time, and any of them may
  /// fail. Begin with the first: it is the most urgent one.
  std::vector<Step> steps;
  /// What the pool does not allow to be done, a sentence for a person each: "group 7 wants 3
  /// replicas, and 2 hosts can have one". At most kReasonsMax, then one about the number of others.
  std::vector<std::string> reasons;
};
inline constexpr std::size_t kReasonsMax = 100;

/// The next steps for `pool`. Make them, look at the groups again, and call it again; no step and
/// no reason: the pool is as it should be. A pure function: equal pools get equal plans. It may be
/// called by any thread.
///
/// No step makes a group less available. A voter is removed only while the group has more voters
/// than it wants, never while it leads, and only if those that are left have a quorum of reachable
/// ones. A group that has no leader, or whose members are being changed, gets no step.
///
/// It ends: if hosts, wanted numbers and loads stay the same and steps are made, after a finite
/// number of steps there are no others (docs/decisions, 29).
///
/// Errors: invalid_argument: as validate(), or `limits` is out of its ranges.
Result<Plan> next_steps(const Pool& pool, const Limits& limits);

}  // namespace leasehold::placement
