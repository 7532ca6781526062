#include <leasehold/sim/plan/hand_overs.h>

#include <chrono>
#include <utility>

namespace leasehold::sim {

using std::chrono::milliseconds;

HandOvers::HandOvers(World& world, std::vector<SimNode*> nodes)
    : world_(world), nodes_(std::move(nodes)), random_(world.random(9)) {}

void HandOvers::start() {
  if (world_.plan.enabled.has(FaultClass::hand_over)) schedule_next();
}

void HandOvers::schedule_next() {
  const Duration mean = world_.plan.hand_over_interval;
  world_.queue.after(draw_duration(random_, mean / 4, mean * 7 / 4), [this] {
    if (world_.healed) return;
    if (world_.fault_happens()) hand_over();
    world_.begin_sequence(random_, FaultMoment::after);
    schedule_next();
  });
}

void HandOvers::hand_over() {
  const std::uint64_t drawn = random_.next();
  const std::uint64_t target = random_.below(nodes_.size() + 1);
  SimNode* const leader = some_leader(nodes_, drawn);
  if (leader == nullptr) return;
  SimNode& node = *leader;
  replica::HandOver event;
  // 0: to the most advanced.
  event.to = raft::NodeId(target);
  event.deadline = node.clock().now().promise + std::chrono::seconds(30);
  event.done = [this](const replica::HandOverResult& result) {
    if (result.status == replica::GroupCallStatus::done) ++world_.nodes.hand_overs;
  };
  node.post(std::move(event));
  ++world_.nodes.hand_overs_asked;
  world_.used(FaultClass::hand_over);
}

}  // namespace leasehold::sim
