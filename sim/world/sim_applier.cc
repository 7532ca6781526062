#include <leasehold/base/assert.h>
#include <leasehold/replica/apply.h>
#include <leasehold/sim/world/sim_applier.h>

#include <fmt/format.h>

#include <chrono>
#include <string>
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
  add({std::move(entries), std::nullopt});
}

void SimApplier::install(const raft::SnapshotId& id) {
  ports_.install_asked(id);
  ++installs_;
  add({{}, id});
}

void SimApplier::add(Call call) {
  waiting_.push_back(std::move(call));
  if (!busy_) start_next();
}

void SimApplier::start_next() {
  busy_ = true;
  const NodePlan& plan = world_.plan.nodes[node_.value() - 1];
  const Duration longest = world_.healed ? plan.apply_min : plan.apply_max;
  const Duration delay = draw_duration(random_, plan.apply_min, longest);
  if (delay > std::chrono::milliseconds(2)) world_.used(FaultClass::slow_apply);
  // The process may die in the meantime, and this object with it: `run` knows.
  world_.queue.after(delay, [this, run = ports_.run] { run([this] { finish(); }); });
}

replica::StateMachine& SimApplier::machine() {
  if (ports_.witness != nullptr) return *ports_.witness;
  return ports_.machine;
}

void SimApplier::finish() {
  const Call call = std::move(waiting_.front());
  waiting_.pop_front();
  if (call.snapshot) {
    install_now(*call.snapshot);
    return;
  }
  const std::vector<raft::Entry>& entries = call.entries;
  Result<replica::AppliedEntries> answer =
      replica::apply_entries(entries, node_, incarnation_, machine());
  LEASEHOLD_ASSERT(answer.ok());
  LEASEHOLD_ASSERT(ports_.machine.malformed() == 0);
  ports_.view.publish_applied(answer.value().last);
  world_.trace.add(TraceKind::applied, node_.value(), answer.value().last.value());
  ports_.applied(entries);
  if (ports_.witness == nullptr && world_.plan.snapshots.flushes && random_.chance(1, 8)) {
    ports_.machine.make_durable(ports_.machine.present());
  }
  end(ports_.complete(std::move(answer).value()));
}

// At one instant the state machine has the new state, durably; at a later one the callers know.
void SimApplier::install_now(const raft::SnapshotId& id) {
  if (ports_.witness != nullptr) {
    ports_.witness->begin_at(id.last.index);
    installed(id);
    return;
  }
  const std::optional<StagedSnapshot>& staged = ports_.staged;
  if (!staged || !staged->complete || staged->id != id) {
    world_.fail("cut_beyond_durable",
                fmt::format("node {} installs a snapshot that is not there", node_.value()));
    return;
  }
  const Result<void> done =
      ports_.machine.install_snapshot(SnapshotBytes(id.last.index, Bytes(staged->bytes)));
  LEASEHOLD_ASSERT(done.ok());
  installed(id);
}

void SimApplier::installed(const raft::SnapshotId& id) {
  world_.trace.add(TraceKind::installed, node_.value(), id.last.index.value());
  ports_.installed(id);
  const SnapshotPlan& plan = world_.plan.snapshots;
  const Duration delay =
      draw_duration(random_, plan.work_min, world_.healed ? plan.work_min : plan.work_max);
  world_.queue.after(delay, [this, id, run = ports_.run] {
    run([this, id] {
      --installs_;
      ports_.view.publish_applied(id.last.index);
      if (ports_.witness == nullptr) ports_.install_known();
      end({id.last.index, {}});
    });
  });
}

void SimApplier::end(replica::Applied answer) {
  busy_ = false;
  if (!waiting_.empty()) start_next();
  ports_.post(std::move(answer));
}

}  // namespace leasehold::sim
