#include <leasehold/sim/plan/upgrade.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

/// Between two restarts once the upgrade is over.
constexpr Duration kLastRestarts = milliseconds(300);

}  // namespace

Upgrade::Upgrade(World& world, std::vector<SimNode*> nodes)
    : world_(world), nodes_(std::move(nodes)), random_(world.random(17)) {}

void Upgrade::start() {
  if (world_.plan.upgrade.earlier_percent > 0) schedule_next();
}

void Upgrade::schedule_next() {
  const UpgradePlan& plan = world_.plan.upgrade;
  const Duration mean = plan.restart_interval;
  const TrueInstant over = TrueInstant() + plan.over;
  const Duration wait = draw_duration(random_, mean / 4, mean * 7 / 4);
  const TrueInstant now = world_.queue.now();
  const TrueInstant next = now < over ? std::min(now + wait, over) : now + kLastRestarts;
  world_.queue.at(next, [this] {
    restart_some();
    schedule_next();
  });
}

// When the upgrade is over only those that are left behind, also while the group recovers.
void Upgrade::restart_some() {
  std::vector<SimNode*> candidates = nodes_;
  if (world_.queue.now() >= TrueInstant() + world_.plan.upgrade.over) {
    std::erase_if(candidates, [](const SimNode* node) { return !node->runs_earlier(); });
  }
  if (candidates.empty()) return;
  restart(*candidates[static_cast<std::size_t>(random_.below(candidates.size()))]);
}

void Upgrade::restart(SimNode& node) {
  if (!node.up() || node.suspended()) return;
  node.crash(false);
  const Duration down = draw_duration(random_, milliseconds(1), milliseconds(400));
  world_.queue.after(down, [&node] {
    if (!node.up() && !node.suspended()) node.start();
  });
}

}  // namespace leasehold::sim
