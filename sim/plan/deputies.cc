#include <leasehold/sim/plan/deputies.h>

#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

/// Until a notice comes again: the process that followed may have ended as well by then.
constexpr Duration kRepeatedWithin = std::chrono::seconds(4);

}  // namespace

Deputies::Deputies(World& world, std::vector<SimNode*> nodes, SimNetwork& network)
    : world_(world), nodes_(std::move(nodes)), network_(network), random_(world.random(18)) {}

void Deputies::process_died(const SimNode& node) {
  const DeputyPlan& plan = world_.plan.deputies;
  if (node.runs_earlier() || plan.percent == 0 || random_.below(100) >= plan.percent) return;
  for (SimNode* other : nodes_) {
    if (other == &node || network_.blocked(node.id(), other->id())) continue;
    if (random_.below(100) >= plan.loss_percent) send(node.peer(), *other, plan.delay_max);
    if (random_.below(100) < plan.repeat_percent) send(node.peer(), *other, kRepeatedWithin);
  }
}

void Deputies::send(const raft::Peer& ended, SimNode& to, Duration longest) {
  const Duration delay = draw_duration(random_, Duration{0}, longest);
  world_.queue.after(delay, [this, ended, &to] {
    if (!to.up()) return;
    ++world_.nodes.notices;
    to.post(replica::PeerEnded{ended});
  });
}

}  // namespace leasehold::sim
