#include <leasehold/sim/workload/side_group_writers.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

constexpr Duration kCallPatience = std::chrono::seconds(2);
/// Entries that wait at a leader: behind them, where entries travel one by one, nothing of a later
/// term is committed for long.
constexpr std::uint64_t kBacklogMax = 50;

}  // namespace

SideGroupWriters::SideGroupWriters(World& world, std::vector<SimNode*> nodes)
    : world_(world), nodes_(std::move(nodes)), random_(random_for(world.plan.seed, 700)) {
  // Often, or so rarely that the groups rest.
  const std::int64_t pause_ms[] = {20, 200, 3'000};
  pause_ = std::chrono::milliseconds(pause_ms[random_.below(3)]);
}

void SideGroupWriters::start() {
  if (world_.plan.beats.side_groups > 0) next();
}

void SideGroupWriters::next() {
  world_.queue.after(draw_duration(random_, Duration{0}, 2 * pause_), [this] {
    SimNode& node = *nodes_[random_.below(nodes_.size())];
    const auto& groups = node.side_groups();
    if (node.up() && !groups.empty()) ask(node, *groups[random_.below(groups.size())]);
    next();
  });
}

void SideGroupWriters::ask(SimNode& node, const SideGroup& group) {
  if (group.core() == nullptr) return;
  const raft::PromiseInstant deadline = node.clock().now().promise + kCallPatience;
  const bool leads = group.core()->role() == raft::Role::leader;
  if (leads && !world_.healed && random_.chance(1, 10)) {
    return node.post_side(group.group(),
                          replica::TransferLeadership{raft::kNobody, deadline, [](const auto&) {}});
  }
  if (backlog(group.group()) >= kBacklogMax) return;
  ++world_.nodes.side_writes;
  node.post_side(group.group(), replica::Propose{Bytes("x"), deadline, [](const auto&) {}});
}

std::uint64_t SideGroupWriters::backlog(raft::GroupId group) const {
  std::uint64_t most = 0;
  for (const SimNode* const node : nodes_) {
    for (const auto& replica : node->side_groups()) {
      const raft::Core* const core = replica->group() == group ? replica->core() : nullptr;
      if (core == nullptr || core->role() != raft::Role::leader) continue;
      most = std::max(most, core->log().last_index() - core->commit_index());
    }
  }
  return most;
}

}  // namespace leasehold::sim
