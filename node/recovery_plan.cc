#include <leasehold/base/fnv.h>
#include <leasehold/lease/timing.h>
#include <leasehold/node/recovery_plan.h>
#include <leasehold/raft/quorum.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace leasehold::node {
namespace {

std::string node_text(const Survivor& survivor) {
  return "node " + std::to_string(survivor.id.value());
}

Error no_plan(ErrorCode code, std::string text) {
  return {code, std::move(text)};
}

/// The election rule: the longer log has everything committed that the shorter one has.
bool has_more(const Survivor& a, const Survivor& b) {
  return std::pair(a.last.term, a.last.index) > std::pair(b.last.term, b.last.index);
}

/// The state has to be in the log, or at its base.
bool has_state(const Survivor& survivor) {
  return survivor.applied && *survivor.applied >= survivor.base.index &&
         *survivor.applied <= survivor.last.index;
}

Result<void> check_one_group(const std::vector<Survivor>& survivors) {
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    const Survivor& one = survivors[i];
    if (one.cluster_id != survivors.front().cluster_id) {
      return no_plan(ErrorCode::invalid_argument,
                     node_text(one) + " and " + node_text(survivors.front()) +
                         " are of two clusters: give the directories of one");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (survivors[j].id != one.id) continue;
      return no_plan(ErrorCode::invalid_argument,
                     survivors[j].uuid == one.uuid
                         ? node_text(one) + " is there twice: give each directory once"
                         : "two directories are of " + node_text(one) +
                               ": give the one that was a member last");
    }
  }
  return {};
}

bool survives(const std::vector<Survivor>& survivors, const raft::Member& member) {
  return std::any_of(survivors.begin(), survivors.end(), [&](const Survivor& one) {
    return one.id == member.id && one.uuid == member.uuid;
  });
}

/// Whether the voters for which `counted` holds are a quorum.
template <class Counted>
bool are_quorum(const raft::Membership& membership, const Counted& counted) {
  return raft::quorum_value<int>(
             membership,
             [&](raft::NodeId id) {
               const raft::Member* const member = membership.find(id);
               return member != nullptr && counted(*member) ? std::optional<int>(1) : std::nullopt;
             })
      .has_value();
}

std::string names_of(const std::vector<Survivor>& survivors) {
  std::string out;
  for (const Survivor& one : survivors) {
    out += (out.empty() ? "" : ", ") + std::to_string(one.id.value());
  }
  return out;
}

void add(Fnv& hash, std::uint64_t number) {
  hash.add(std::to_string(number) + " ");
}

std::uint64_t number_of(std::vector<Survivor> survivors) {
  std::sort(survivors.begin(), survivors.end(),
            [](const Survivor& a, const Survivor& b) { return a.id < b.id; });
  Fnv hash;
  for (const Survivor& one : survivors) {
    for (const std::uint64_t part :
         {one.cluster_id, one.id.value(), one.uuid.high, one.uuid.low, one.base.term.value(),
          one.base.index.value(), one.last.term.value(), one.last.index.value(),
          one.membership_index.value(), one.applied ? one.applied->value() : 0}) {
      add(hash, part);
    }
    hash.add(raft::encode_membership(one.membership).view());
  }
  return std::max<std::uint64_t>(hash.value(), 1);
}

/// The longest promise, on a clock that is as slow as they may be, measured by one that is as fast.
raft::Duration wait_of(const std::vector<Survivor>& survivors, const raft::Membership& membership) {
  const lease::Timing timing = membership.settings ? membership.settings->timing : lease::Timing{};
  raft::Duration longest = timing.lease;
  for (const Survivor& one : survivors) longest = std::max(longest, one.promise);
  constexpr double kMillion = 1e6;
  const double drift = static_cast<double>(timing.max_clock_drift_ppm) / kMillion;
  const double factor = (1 + drift) / std::max(1 - drift, 0.1);
  return raft::Duration(
             static_cast<raft::Duration::rep>(static_cast<double>(longest.count()) * factor)) +
         timing.margin;
}

std::size_t newest_of(const std::vector<Survivor>& survivors) {
  std::size_t newest = 0;
  for (std::size_t i = 1; i < survivors.size(); ++i) {
    if (has_more(survivors[i], survivors[newest])) newest = i;
  }
  return newest;
}

bool is_member(const Survivor& one, const raft::Membership& members) {
  const raft::Member* const member = members.find(one.id);
  return member != nullptr && member->uuid == one.uuid;
}

Error no_state_left(const std::vector<Survivor>& survivors) {
  std::string why;
  for (const Survivor& one : survivors) {
    why += "; " + node_text(one) + ": " +
           (one.no_state.empty() ? "its state does not fit to its log" : one.no_state);
  }
  return no_plan(ErrorCode::unavailable,
                 "no survivor has a state to go on from" + why +
                     ". Restore the group from a backup (leasehold restore)");
}

}  // namespace

std::vector<std::size_t> members_among(const std::vector<Survivor>& survivors) {
  std::vector<std::size_t> out;
  if (survivors.empty()) return out;
  const raft::Membership& members = survivors[newest_of(survivors)].membership;
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    if (is_member(survivors[i], members)) out.push_back(i);
  }
  return out;
}

Result<RecoveryPlan> plan_recovery(const std::vector<Survivor>& survivors, MajorityLeft majority) {
  if (survivors.empty()) {
    return no_plan(ErrorCode::invalid_argument,
                   "no survivor is given: name the directory of each member that is left");
  }
  if (auto one = check_one_group(survivors); !one.ok()) return one.error();
  const std::size_t newest = newest_of(survivors);
  std::optional<std::size_t> source;
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    if (!has_state(survivors[i])) continue;
    if (!source || has_more(survivors[i], survivors[*source])) source = i;
  }
  const raft::Membership& members = survivors[newest].membership;
  for (const Survivor& one : survivors) {
    if (is_member(one, members)) continue;
    return no_plan(ErrorCode::invalid_argument,
                   "the directory of " + node_text(one) + " is no member's, as the log of " +
                       node_text(survivors[newest]) + " says: leave it out");
  }
  RecoveryPlan plan;
  plan.majority =
      are_quorum(members, [&](const raft::Member& m) { return survives(survivors, m); });
  if (plan.majority && majority == MajorityLeft::refused) {
    return no_plan(ErrorCode::in_use,
                   "nodes " + names_of(survivors) +
                       " are a majority: nothing is lost. Start them, and remove the lost members "
                       "(leasehold member remove)");
  }
  if (!source) return no_state_left(survivors);
  plan.number = number_of(survivors);
  plan.source = *source;
  if (has_more(survivors[newest], survivors[*source])) plan.longer = newest;
  for (const raft::Member& member : members.members) {
    if (!survives(survivors, member)) plan.lost.push_back(member);
  }
  plan.may_lose = plan.longer || are_quorum(members, [&](const raft::Member& m) {
                    return !survives(survivors, m);
                  });
  for (const Survivor& one : survivors) {
    if (one.applied) plan.committed = std::max(plan.committed, *one.applied);
    plan.committed = std::max(plan.committed, one.base.index);
  }
  plan.committed = std::min(plan.committed, survivors[*source].last.index);
  plan.wait = wait_of(survivors, members);
  plan.base = raft::Index(survivors[*source].last.index.value() + kRecoveryGap);
  return plan;
}

}  // namespace leasehold::node
