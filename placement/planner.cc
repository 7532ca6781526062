#include <leasehold/placement/accounts.h>
#include <leasehold/placement/planner.h>

#include <algorithm>
#include <tuple>

namespace leasehold::placement {
namespace {

/// Where a new replica would be, and how many of its group are in that zone. No host: those that
/// are as good have as many copies as they may have, or there is none.
struct Target {
  std::optional<HostIndex> host;
  std::optional<std::size_t> in_zone;
};

/// Makes one plan: pass after pass, the most urgent rule first. Each pass goes once over the
/// groups, and a group gets one step at most.
class Planner {
 public:
  Planner(const Pool& pool, const Limits& limits) : accounts_(pool, limits), limits_(limits) {}

  Plan run() {
    for (const GroupAccount& group : accounts_.groups()) explain(group);
    each(&Planner::finish);
    each(&Planner::repair);
    each(&Planner::drain_leader);
    each(&Planner::drain_replica);
    each(&Planner::spread);
    if (accounts_.replicas.uneven()) each(&Planner::move_load);
    if (accounts_.leaders.uneven()) each(&Planner::move_leader);
    if (hidden_reasons_ > 0) {
      plan_.reasons.push_back("and " + std::to_string(hidden_reasons_) + " others");
    }
    return std::move(plan_);
  }

 private:
  using Pass = void (Planner::*)(GroupAccount&);
  void each(Pass pass);
  void explain(const GroupAccount& group);

  void finish(GroupAccount& group);
  void repair(GroupAccount& group);
  void drain_leader(GroupAccount& group);
  void drain_replica(GroupAccount& group);
  void spread(GroupAccount& group);
  void move_load(GroupAccount& group);
  void move_leader(GroupAccount& group);

  bool keeps_quorum_without(const GroupAccount& group, const Member& voter) const;
  const Member* useless_learner(const GroupAccount& group) const;
  const Member& next_to_leave(const GroupAccount& group) const;
  const Member* successor(const GroupAccount& group, bool staying) const;
  Target target(const GroupAccount& group, const Member* instead_of) const;
  bool lacks_replica(const GroupAccount& group) const;
  bool is_urgent(const GroupAccount& group) const;
  bool settled(const GroupAccount& group) const;
  bool reachable(const Member& member) const {
    return accounts_.host(member.host).contact == Contact::reachable;
  }

  void add(GroupAccount& group, const Member* instead_of, std::optional<HostIndex> to, Rule rule);
  void transfer(GroupAccount& group, const Member& to, Rule rule);
  void change(GroupAccount& group, const Member& member, Step::What what);
  void give(GroupAccount& group, const Step& step);
  void explain(const GroupAccount& group, const std::string& why);

  Accounts accounts_;
  Limits limits_;
  Plan plan_;
  std::size_t hidden_reasons_ = 0;
};

void Planner::each(Pass pass) {
  for (GroupAccount& group : accounts_.groups()) {
    if (plan_.steps.size() >= limits_.steps) return;
    if (group.open) (this->*pass)(group);
  }
}

// ---- What cannot be done ----

void Planner::explain(const GroupAccount& group, const std::string& why) {
  if (plan_.reasons.size() >= kReasonsMax) {
    ++hidden_reasons_;
    return;
  }
  plan_.reasons.push_back("group " + std::to_string(group.group->id.value()) + " " + why);
}

void Planner::explain(const GroupAccount& group) {
  if (group.group->changing) return;
  if (group.reachable < quorum_of(group.voters)) {
    explain(group, "has lost its quorum: " + std::to_string(group.reachable) + " of " +
                       std::to_string(group.voters) + " voters can be reached");
  } else if (!group.leader) {
    explain(group, "has no leader that can be reached");
  } else if (lacks_replica(group) && !target(group, nullptr).in_zone) {
    explain(group, "wants " + std::to_string(group.wanted()) + " replicas, and " +
                       std::to_string(group.staying) + " hosts can have one");
  }
}

// ---- Moves that were begun ----

void Planner::finish(GroupAccount& group) {
  if (const Member* learner = useless_learner(group)) {
    return change(group, *learner, Step::What::remove);
  }
  const Member* leaves = group.voters > group.wanted() ? &next_to_leave(group) : nullptr;
  if (leaves != nullptr && keeps_quorum_without(group, *leaves)) {
    if (leaves != &group.members[*group.leader]) return change(group, *leaves, Step::What::remove);
    const Member* next = successor(group, true);
    if (next == nullptr) next = successor(group, false);
    if (next != nullptr) transfer(group, *next, Rule::finish);
    return;
  }
  for (const Member& member : group.members) {
    if (!member.voter && member.caught_up) return change(group, member, Step::What::promote);
  }
  if (leaves == nullptr) return;
  explain(group, "keeps replica " + std::to_string(leaves->id.value()) +
                     " until more of its voters can be reached");
}

bool Planner::keeps_quorum_without(const GroupAccount& group, const Member& voter) const {
  return group.reachable - (reachable(voter) ? 1 : 0) >= quorum_of(group.voters - 1);
}

/// One whose host is lost to the group, or one too many. One more than wanted is a move whose
/// reason was forgotten: its copy is not wasted.
const Member* Planner::useless_learner(const GroupAccount& group) const {
  const Member* newest = nullptr;
  for (std::size_t i = group.voters; i < group.members.size(); ++i) {
    const Member& learner = group.members[i];
    if (!learner.stays) return &learner;
    if (newest == nullptr || newest->id < learner.id) newest = &learner;
  }
  return group.staying > group.wanted() + 1 ? newest : nullptr;
}

/// The voter that a group with too many needs least.
const Member& Planner::next_to_leave(const GroupAccount& group) const {
  const auto rank = [this, &group](const Member& member) {
    const Host& host = accounts_.host(member.host);
    return std::make_tuple(host.contact == Contact::gone, !host.keeps(), !member.stays,
                           !reachable(member), accounts_.in_zone_of(member.host, group, &member));
  };
  const Member* worst = &group.members.front();
  for (std::size_t i = 1; i < group.voters; ++i) {
    const Member& member = group.members[i];
    const auto of_worst = rank(*worst);
    const auto of_member = rank(member);
    if (of_worst < of_member ||
        (of_worst == of_member && accounts_.replicas.lighter(worst->host, member.host, 0))) {
      worst = &member;
    }
  }
  return *worst;
}

// ---- Too few replicas at hosts that keep them ----

bool Planner::lacks_replica(const GroupAccount& group) const {
  return group.staying < group.wanted() && !group.has_learner();
}

bool Planner::is_urgent(const GroupAccount& group) const {
  if (group.voters < group.wanted()) return true;
  return std::any_of(group.members.begin(), group.members.end(), [this](const Member& member) {
    return accounts_.host(member.host).contact == Contact::gone;
  });
}

void Planner::repair(GroupAccount& group) {
  if (!lacks_replica(group) || !is_urgent(group)) return;
  add(group, nullptr, target(group, nullptr).host, Rule::repair);
}

void Planner::drain_leader(GroupAccount& group) {
  if (accounts_.host(group.members[*group.leader].host).keeps()) return;
  const Member* next = successor(group, true);
  if (next != nullptr) transfer(group, *next, Rule::drain);
}

void Planner::drain_replica(GroupAccount& group) {
  if (!lacks_replica(group)) return;
  add(group, nullptr, target(group, nullptr).host, Rule::drain);
}

/// The zone decides, then the load. A host that has too many copies now is waited for only if its
/// zone is a better one: another host of the zone is as good.
Target Planner::target(const GroupAccount& group, const Member* instead_of) const {
  Target best;
  for (HostIndex host = 0; host < accounts_.hosts(); ++host) {
    if (!accounts_.host(host).takes() || group.is_at(host)) continue;
    const std::size_t in_zone = accounts_.in_zone_of(host, group, instead_of);
    if (best.in_zone && in_zone > *best.in_zone) continue;
    if (!best.in_zone || in_zone < *best.in_zone) best = {std::nullopt, in_zone};
    if (!accounts_.may_receive(host)) continue;
    if (!best.host || accounts_.replicas.lighter(host, *best.host, group.load())) {
      best.host = host;
    }
  }
  return best;
}

// ---- Zones and loads ----

/// Only such a group is moved for something less urgent than its own repair.
bool Planner::settled(const GroupAccount& group) const {
  return group.voters == group.wanted() && group.staying == group.voters &&
         group.reachable == group.voters && !group.has_learner();
}

void Planner::spread(GroupAccount& group) {
  if (!settled(group)) return;
  const Member* from = nullptr;
  std::size_t gain = 0;
  Target to;
  for (const Member& member : group.members) {
    const std::size_t here = accounts_.in_zone_of(member.host, group, &member);
    if (here == 0) continue;
    const Target there = target(group, &member);
    if (!there.in_zone || *there.in_zone >= here) continue;
    const std::size_t gained = here - *there.in_zone;
    if (gained > gain ||
        (gained == gain && accounts_.replicas.lighter(from->host, member.host, 0))) {
      from = &member;
      gain = gained;
      to = there;
    }
  }
  if (from != nullptr) add(group, from, to.host, Rule::zones);
}

void Planner::move_load(GroupAccount& group) {
  if (!settled(group)) return;
  const Balance& loads = accounts_.replicas;
  const Member* from = nullptr;
  std::optional<HostIndex> to;
  for (const Member& member : group.members) {
    if (from != nullptr && !loads.lighter(from->host, member.host, 0)) continue;
    const std::size_t here = accounts_.in_zone_of(member.host, group, &member);
    std::optional<HostIndex> best;
    for (HostIndex host = 0; host < accounts_.hosts(); ++host) {
      if (!accounts_.host(host).takes() || !accounts_.may_receive(host)) continue;
      if (!loads.improves(member.host, host, group.load()) || group.is_at(host)) continue;
      if (accounts_.in_zone_of(host, group, &member) > here) continue;
      if (!best || loads.lighter(host, *best, group.load())) best = host;
    }
    if (!best) continue;
    from = &member;
    to = best;
  }
  if (from != nullptr) add(group, from, to, Rule::load);
}

void Planner::move_leader(GroupAccount& group) {
  if (!settled(group)) return;
  const Member* next = successor(group, true);
  if (next == nullptr) return;
  const HostIndex from = group.members[*group.leader].host;
  if (accounts_.leaders.improves(from, next->host, group.load())) {
    transfer(group, *next, Rule::leaders);
  }
}

/// The reachable voter, the leader aside, whose host leads least for its weight.
const Member* Planner::successor(const GroupAccount& group, bool staying) const {
  const Member* best = nullptr;
  for (std::size_t i = 0; i < group.voters; ++i) {
    const Member& member = group.members[i];
    if (i == *group.leader || !reachable(member) || (staying && !member.stays)) continue;
    if (best == nullptr || accounts_.leaders.lighter(member.host, best->host, group.load())) {
      best = &member;
    }
  }
  return best;
}

// ---- Steps ----

void Planner::add(GroupAccount& group, const Member* instead_of, std::optional<HostIndex> to,
                  Rule rule) {
  if (!to || !accounts_.may_send(group)) return;
  accounts_.move(group, instead_of, *to);
  Step step;
  step.what = Step::What::add_learner;
  step.replica = group.group->last_replica.next();
  step.host = accounts_.host(*to).id;
  if (instead_of != nullptr) step.instead_of = instead_of->id;
  step.rule = rule;
  give(group, step);
}

void Planner::transfer(GroupAccount& group, const Member& to, Rule rule) {
  accounts_.transfer(group, to);
  Step step;
  step.what = Step::What::transfer;
  step.replica = to.id;
  step.host = accounts_.host(to.host).id;
  step.rule = rule;
  give(group, step);
}

void Planner::change(GroupAccount& group, const Member& member, Step::What what) {
  if (what == Step::What::remove) accounts_.remove(group, member);
  Step step;
  step.what = what;
  step.replica = member.id;
  step.host = accounts_.host(member.host).id;
  give(group, step);
}

void Planner::give(GroupAccount& group, const Step& step) {
  plan_.steps.push_back(step);
  plan_.steps.back().group = group.group->id;
  group.open = false;
}

const char* limits_problem(const Limits& limits) {
  if (limits.moves_per_host < 1) return "moves_per_host is at least 1";
  if (limits.moves < 1) return "moves is at least 1";
  if (limits.steps < 1) return "steps is at least 1";
  if (limits.tolerance_percent > 100) return "tolerance_percent is at most 100";
  return nullptr;
}

}  // namespace

const char* rule_name(Rule rule) {
  switch (rule) {
    case Rule::finish: return "finish";
    case Rule::repair: return "repair";
    case Rule::drain: return "drain";
    case Rule::zones: return "zones";
    case Rule::load: return "load";
    case Rule::leaders: return "leaders";
  }
  return "?";
}

std::string describe(const Step& step) {
  const std::string replica = "replica " + std::to_string(step.replica.value());
  const std::string host = " host " + std::to_string(step.host.value());
  std::string text = "group " + std::to_string(step.group.value()) + ": ";
  switch (step.what) {
    case Step::What::add_learner: text += "add " + replica + " at" + host; break;
    case Step::What::promote: text += "promote " + replica + " at" + host; break;
    case Step::What::remove: text += "remove " + replica + " from" + host; break;
    case Step::What::transfer:
      text += "transfer the leadership to " + replica + " at" + host;
      break;
  }
  if (step.instead_of != raft::kNobody) {
    text += " instead of replica " + std::to_string(step.instead_of.value());
  }
  return text + " (" + rule_name(step.rule) + ")";
}

Result<Plan> next_steps(const Pool& pool, const Limits& limits) {
  if (const char* problem = limits_problem(limits)) {
    return Error{ErrorCode::invalid_argument, std::string("limits: ") + problem};
  }
  const Result<void> valid = validate(pool);
  if (!valid.ok()) return valid.error();
  return Planner(pool, limits).run();
}

}  // namespace leasehold::placement
