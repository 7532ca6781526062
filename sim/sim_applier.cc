#include <leasehold/base/assert.h>
#include <leasehold/node/apply.h>
#include <leasehold/sim/sim_applier.h>

#include <chrono>
#include <utility>

namespace leasehold::sim {

SimApplier::SimApplier(World& world, raft::NodeId node, raft::Incarnation incarnation, Ports ports)
    : world_(world),
      node_(node),
      incarnation_(incarnation),
      ports_(std::move(ports)),
      random_(random_for(world.plan.seed, 1000 * node.value() + incarnation.value())) {}

void SimApplier::apply(std::vector<raft::Entry> entries) {
  LEASEHOLD_ASSERT(!entries.empty());
  ports_.asked(entries);
  waiting_.push_back(std::move(entries));
  if (!busy_) start_next();
}

void SimApplier::install(const raft::SnapshotId& /*id*/) {
  LEASEHOLD_UNREACHABLE();  // no snapshot is ever complete: see node::NoSnapshots
}

void SimApplier::start_next() {
  busy_ = true;
  const NodePlan& plan = world_.plan.nodes[node_.value() - 1];
  const Duration longest = world_.healed ? plan.apply_min : plan.apply_max;
  const Duration delay = draw_duration(random_, plan.apply_min, longest);
  if (delay > std::chrono::milliseconds(2)) world_.used(FaultClass::slow_apply);
  // The process may die meanwhile, and this object with it: `run` knows.
  world_.queue.after(delay, [this, run = ports_.run] { run([this] { finish(); }); });
}

void SimApplier::finish() {
  const std::vector<raft::Entry> entries = std::move(waiting_.front());
  waiting_.pop_front();
  Result<node::Applied> answer = node::apply_entries(entries, node_, incarnation_, ports_.machine);
  LEASEHOLD_ASSERT(answer.ok());
  LEASEHOLD_ASSERT(ports_.machine.malformed() == 0);
  ports_.view.publish_applied(answer.value().last);
  world_.trace.add(TraceKind::applied, node_.value(), answer.value().last.value());
  ports_.applied(entries);
  if (random_.chance(1, 8)) static_cast<void>(ports_.machine.make_durable());
  busy_ = false;
  if (!waiting_.empty()) start_next();
  ports_.post(std::move(answer).value());
}

}  // namespace leasehold::sim
