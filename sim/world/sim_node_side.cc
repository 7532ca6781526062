// The side groups of a simulated process.
#include <leasehold/base/assert.h>
#include <leasehold/sim/world/sim_node.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

/// Of side group `group`: all nodes, or, unless the plan is steady, all but one where there are
/// enough. They all vote.
raft::Membership members_of(const Plan& plan, raft::GroupId group) {
  raft::Membership membership;
  const std::uint64_t nodes = plan.nodes.size();
  const bool some = nodes > 3 && !plan.beats.side_steady;
  const std::uint64_t left_out = some ? 1 + group.value() % nodes : 0;
  for (std::uint64_t id = 1; id <= nodes; ++id) {
    if (id == left_out) continue;
    const raft::NodeId node(id);
    membership.members.push_back({node, uuid_of(node), fmt::format("node-{}:1", id)});
    membership.voters.push_back(node);
  }
  if (plan.settings.agreed) membership.settings = plan.settings.first;
  return membership;
}

}  // namespace

void SimNode::make_side_groups() {
  for (std::uint64_t n = 0; n < world_.plan.beats.side_groups; ++n) {
    const raft::GroupId group(kFirstGroup.value() + 1 + n);
    SideGroupPorts ports;
    ports.send = [this, group](raft::NodeId to, wire::PeerMessage message) {
      LEASEHOLD_ASSERT(message.group == group);
      network_.send(peer(), to, std::move(message));
    };
    ports.post = [this, group](replica::Event event) { post_side(group, std::move(event)); };
    ports.judge = [this, group] { judge_.after_side_turn(side_group(group)); };
    auto made = std::make_unique<SideGroup>(world_, group, id_, members_of(world_.plan, group),
                                            std::move(ports));
    if (made->member()) side_groups_.push_back(std::move(made));
  }
}

/// Some begin when the process has run for a while. One member of each may end before its process.
void SimNode::open_side_groups(const RunInProcess& run) {
  for (const auto& group : side_groups_) {
    replica::DriverOptions options = world_.plan.driver;
    options.core.id = id_;
    options.core.uuid = uuid_of(id_);
    options.core.incarnation = incarnation_;
    options.core.timing = timing();
    options.core.seed = side_random_.next();
    const bool moves = !world_.healed && !world_.plan.beats.side_steady;
    const bool late = moves && side_random_.chance(1, 4);
    const Duration wait = draw_duration(side_random_, Duration{0}, milliseconds(3'000));
    const Duration lasts = draw_duration(side_random_, milliseconds(500), milliseconds(20'000));
    const bool may_end = id_.value() == 1 + group->group().value() % world_.plan.nodes.size();
    const bool ends = may_end && moves && side_random_.chance(1, 2);
    const TrueInstant begins = world_.queue.now() + (late ? wait : Duration{0});
    // Not behind the last fault: its group has to have a leader some time later.
    const TrueInstant end = std::min(begins + lasts, TrueInstant() + world_.options.chaos);
    group->open(options, *process_->replica->process(), run, begins,
                ends ? end : TrueInstant::never());
  }
}

SideGroup& SimNode::side_group(raft::GroupId group) {
  const auto found = std::find_if(side_groups_.begin(), side_groups_.end(),
                                  [group](const auto& one) { return one->group() == group; });
  LEASEHOLD_ASSERT(found != side_groups_.end());
  return **found;
}

bool SimNode::a_side_group_failed() const {
  return std::any_of(side_groups_.begin(), side_groups_.end(),
                     [](const auto& one) { return one->storage_failed(); });
}

void SimNode::give(raft::GroupId group, replica::Event event) {
  side_group(group).take(std::move(event));
}

void SimNode::ended(const replica::PeerEnded& ended) {
  for (const auto& group : side_groups_) group->take(ended);
}

void SimNode::turns(lease::Now now) {
  for (const auto& group : side_groups_) group->turn(now);
}

raft::PromiseInstant SimNode::next_deadline() const {
  raft::PromiseInstant next = raft::PromiseInstant::never();
  for (const auto& group : side_groups_) next = std::min(next, group->next_deadline());
  return next;
}

}  // namespace leasehold::sim
