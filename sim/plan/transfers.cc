#include <leasehold/sim/plan/transfers.h>

#include <chrono>
#include <utility>

namespace leasehold::sim {

using std::chrono::milliseconds;

Transfers::Transfers(World& world, std::vector<SimNode*> nodes)
    : world_(world), nodes_(std::move(nodes)), random_(world.random(9)) {}

void Transfers::start() {
  if (world_.plan.enabled.has(FaultClass::transfer)) schedule_next();
}

void Transfers::schedule_next() {
  const Duration mean = world_.plan.transfer_interval;
  world_.queue.after(draw_duration(random_, mean / 4, mean * 7 / 4), [this] {
    if (world_.healed) return;
    if (world_.fault_happens()) transfer();
    world_.begin_sequence(random_, FaultMoment::after);
    schedule_next();
  });
}

void Transfers::transfer() {
  const std::uint64_t drawn = random_.next();
  const std::uint64_t target = random_.below(nodes_.size() + 1);
  SimNode* const leader = some_leader(nodes_, drawn);
  if (leader == nullptr) return;
  SimNode& node = *leader;
  replica::TransferLeadership event;
  // 0: to the most advanced.
  event.to = raft::NodeId(target);
  event.deadline = node.clock().now().promise + std::chrono::seconds(30);
  event.done = [this](const replica::TransferResult& result) {
    if (result.status == replica::GroupCallStatus::done) ++world_.nodes.transfers;
  };
  node.post(std::move(event));
  ++world_.nodes.transfers_asked;
  world_.used(FaultClass::transfer);
}

}  // namespace leasehold::sim
