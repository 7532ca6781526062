#include <leasehold/sim/plan/cut_demands.h>

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <utility>

namespace leasehold::sim {

CutDemands::CutDemands(World& world, std::vector<SimNode*> nodes)
    : world_(world), nodes_(std::move(nodes)), random_(world.random(15)) {}

void CutDemands::start() {
  if (world_.plan.enabled.has(FaultClass::cut_demand)) schedule_next();
}

void CutDemands::schedule_next() {
  const Duration mean = world_.plan.cut_demand_interval;
  world_.queue.after(draw_duration(random_, mean / 4, mean * 7 / 4), [this] {
    if (world_.healed) return;
    if (world_.fault_happens()) demand();
    world_.begin_sequence(random_, FaultMoment::after);
    schedule_next();
  });
}

void CutDemands::demand() {
  SimNode& node = *nodes_[static_cast<std::size_t>(random_.below(nodes_.size()))];
  const std::uint64_t count = 1 + random_.below(3);
  if (!node.up()) return;
  world_.used(FaultClass::cut_demand);
  for (std::uint64_t i = 0; i < count && node.up(); ++i) {
    const raft::Index applied = node.running().applied();
    const auto answers = std::make_shared<int>(0);
    node.post(
        replica::CutLog{[this, &node, applied, answers](const Result<replica::LogCut>& result) {
          if (++*answers > 1)
            world_.fail("completion", "a demand to cut the log was answered twice");
          if (!result.ok()) return;
          ++world_.snapshots.demands;
          // A node that has a full disk, or has not learned that there is space again, answers by
          // what is durable already.
          const bool asked = world_.snapshots.full_disks == 0;
          answered(node, result.value(), asked ? applied : raft::Index());
        }});
  }
}

void CutDemands::answered(const SimNode& node, const replica::LogCut& cut,
                          raft::Index applied) const {
  const std::uint64_t id = node.id().value();
  if (!node.witness() && cut.durable > node.machine().durable_index()) {
    world_.fail("cut_answer",
                fmt::format("node {} answers that its state is durable up to {}, and "
                            "it is up to {}",
                            id, cut.durable.value(), node.machine().durable_index().value()));
  }
  if (!node.witness() && cut.durable < applied) {
    world_.fail("cut_answer",
                fmt::format("node {} answers with a state that is durable up to {}, though it had "
                            "applied {} when it was asked",
                            id, cut.durable.value(), applied.value()));
  }
  const raft::Index first = node.disk().written().base_id().index.next();
  if (cut.first > first || cut.first_before > cut.first) {
    world_.fail("cut_answer", fmt::format("node {} answers that its log begins at {}, and it "
                                          "begins at {}",
                                          id, cut.first.value(), first.value()));
  }
}

}  // namespace leasehold::sim
