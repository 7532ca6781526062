#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/plan/drawing.h>
#include <leasehold/sim/plan/reduction.h>

#include <algorithm>
#include <chrono>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

/// One of the choices, drawn from the subject's own stream.
template <class Choice, std::size_t N>
Choice pick(std::uint64_t seed, const char* subject, const Choice (&choices)[N]) {
  return choices[stream(seed, subject).below(N)];
}

void draw_fault_classes(Plan& plan) {
  // The classes behind it are drawn with what they affect.
  for (std::size_t i = 0; i <= static_cast<std::size_t>(FaultClass::reader_pause); ++i) {
    const auto fault = static_cast<FaultClass>(i);
    if (stream(plan.seed, fault_class_name(fault)).chance(1, 2)) plan.enabled.add(fault);
  }
  // A seed in which no leader is ever disturbed shows nothing about leases.
  const FaultClass disturbing[] = {FaultClass::crash, FaultClass::pause, FaultClass::partition};
  plan.enabled.add(pick(plan.seed, "disturbing fault", disturbing));
  // Two that take effect in any run, whatever else happens.
  plan.enabled.add(FaultClass::loss);
  const FaultClass steady[] = {FaultClass::duplication, FaultClass::reordering,
                               FaultClass::extreme_drift, FaultClass::late_handling};
  plan.enabled.add(pick(plan.seed, "steady fault", steady));
}

/// What is done to a leader, and to one that was deposed, because it is one.
void draw_leader_faults(Plan& plan) {
  Random random = stream(plan.seed, "leaders");
  const std::uint64_t young[] = {0, 0, 25, 60};
  plan.young_leader_percent = young[random.below(4)];
  const std::uint64_t hunt[] = {0, 0, 20, 60};
  const std::uint64_t hunt_percent = hunt[random.below(4)];
  if (plan.enabled.has(FaultClass::partition)) plan.hunt_percent = hunt_percent;
  plan.wake_percent = random.chance(1, 2) ? 30 : 0;
}

void draw_drift(const SimOptions& options, Plan& plan) {
  plan.drift_extreme = plan.enabled.has(FaultClass::extreme_drift);
  plan.drift_ppm_max = plan.nodes[0].timing.max_clock_drift_ppm;
  plan.drift_against_leader = stream(plan.seed, "drift").chance(1, 2);
  if (!options.drift_ppm) return;
  plan.drift_extreme = true;
  plan.enabled.add(FaultClass::extreme_drift);
  plan.drift_ppm_max = *options.drift_ppm;
  plan.drift_unbounded = true;
}

void draw_ground(const SimOptions& options, Plan& plan) {
  // Each ground has fault rates of its own.
  if (options.drift_ppm || options.long_life) return;
  const std::uint64_t ground = stream(plan.seed, "ground").below(20);
  if (ground < 4) draw_figure_8(plan);
  if (ground >= 4 && ground < 7) draw_edge_of_the_lease(plan);
  if (ground >= 7 && ground < 9) draw_late_copies(plan);
}

/// Processes that die at a moment of the protocol.
void draw_crashes(Plan& plan) {
  Random random = stream(plan.seed, "crashes");
  const bool at_send = random.chance(1, 2);
  const auto at_send_ppm = static_cast<std::uint64_t>(random.between(200, 3000));
  const auto at_persist_ppm = static_cast<std::uint64_t>(random.between(500, 10'000));
  if (plan.enabled.has(FaultClass::crash) && at_send) plan.crash_at_send_ppm = at_send_ppm;
  if (plan.disk.loses_unsynced) plan.crash_at_persist_ppm = at_persist_ppm;
}

/// Good links, disks and machines, on clocks that drift; 3, 5 or 7 nodes.
Plan draw_trial_plan(std::uint64_t seed, const SimOptions& options) {
  Plan plan;
  plan.seed = seed;
  const std::size_t sizes[] = {3, 5, 5, 7};
  plan.nodes.resize(pick(seed, "size of a trial", sizes));
  // A ring of three is whole, and of seven nodes none reaches a majority through two links.
  const bool ring = *options.shape == PartitionShape::ring;
  const bool chain = *options.shape == PartitionShape::chain;
  if (ring || (chain && plan.nodes.size() > 5)) plan.nodes.resize(5);
  plan.founders = plan.nodes.size();
  draw_timings(options, plan);
  draw_links(plan);
  draw_disks(plan);
  draw_nodes(plan);
  draw_workload(plan);
  plan.drift_ppm_max = plan.nodes[0].timing.max_clock_drift_ppm;
  plan.fault_interval = std::chrono::seconds(1);
  draw_settings(options, plan);
  return plan;
}

}  // namespace

Plan draw_plan(std::uint64_t seed, const SimOptions& options) {
  if (options.plan) {
    Plan plan = *options.plan;
    draw_upgrade(options, plan);
    reduce(options.reduction, plan);
    return plan;
  }
  if (options.shape) return draw_trial_plan(seed, options);
  Plan plan;
  plan.seed = seed;
  plan.nodes.resize(stream(seed, "size").chance(1, 5) ? 5 : 3);
  draw_timings(options, plan);
  draw_fault_classes(plan);
  draw_links(plan);
  draw_disks(plan);
  draw_nodes(plan);
  draw_workload(plan);
  draw_limits(plan);
  draw_snapshots(plan);
  draw_cut_demands(plan);
  draw_transfers(plan);
  draw_sessions(plan);
  draw_leader_faults(plan);
  draw_drift(options, plan);
  plan.fault_interval = milliseconds(stream(seed, "fault interval").between(400, 5000));
  draw_ground(options, plan);
  draw_leases(plan);
  draw_key_locks(options, plan);
  draw_member_changes(plan);
  draw_witnesses(plan);
  draw_crashes(plan);
  draw_deputies(plan);
  draw_settings(options, plan);
  draw_upgrade(options, plan);
  draw_beats(options, plan);
  if (options.long_life) draw_long_life(plan);
  if (options.lease_work) draw_lease_work(plan);
  draw_lease_terms(plan);
  reduce(options.reduction, plan);
  return plan;
}

}  // namespace leasehold::sim
