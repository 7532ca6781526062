#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/plan/drawing.h>
#include <leasehold/sim/plan/reduction.h>

#include <algorithm>
#include <chrono>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

void draw_faults(Random& random, Plan& plan) {
  // Those of draw_snapshots() are behind it.
  for (std::size_t i = 0; i <= static_cast<std::size_t>(FaultClass::reader_pause); ++i) {
    if (random.chance(1, 2)) plan.enabled.add(static_cast<FaultClass>(i));
  }
  // A seed in which no leader is ever disturbed shows nothing about leases.
  const FaultClass disturbing[] = {FaultClass::crash, FaultClass::pause, FaultClass::partition};
  plan.enabled.add(disturbing[random.below(3)]);
  // Two that show in any run, however it goes.
  plan.enabled.add(FaultClass::loss);
  const FaultClass steady[] = {FaultClass::duplication, FaultClass::reordering,
                               FaultClass::extreme_drift, FaultClass::late_handling};
  plan.enabled.add(steady[random.below(4)]);
}

/// Good links, disks and machines, on clocks that drift; 3, 5 or 7 nodes.
Plan draw_trial_plan(std::uint64_t seed, const SimOptions& options) {
  Random random(seed);
  Plan plan;
  plan.seed = seed;
  const std::size_t sizes[] = {3, 5, 5, 7};
  plan.nodes.resize(sizes[random.below(4)]);
  // A ring of three is whole, and of seven nodes none reaches a majority through two links.
  const bool ring = *options.shape == PartitionShape::ring;
  const bool chain = *options.shape == PartitionShape::chain;
  if (ring || (chain && plan.nodes.size() > 5)) plan.nodes.resize(5);
  plan.founders = plan.nodes.size();
  draw_timings(random, options, plan);
  draw_links(random, plan);
  draw_disk(random, plan);
  draw_nodes(random, plan);
  draw_workload(random, plan);
  plan.drift_ppm_max = plan.nodes[0].timing.max_clock_drift_ppm;
  plan.fault_interval = std::chrono::seconds(1);
  return plan;
}

}  // namespace

Plan draw_plan(std::uint64_t seed, const SimOptions& options) {
  if (options.plan) {
    Plan plan = *options.plan;
    reduce(options.reduction, plan);
    return plan;
  }
  if (options.shape) return draw_trial_plan(seed, options);
  Random random(seed);
  Plan plan;
  plan.seed = seed;
  plan.nodes.resize(random.chance(1, 5) ? 5 : 3);
  draw_timings(random, options, plan);
  draw_faults(random, plan);
  draw_links(random, plan);
  draw_disk(random, plan);
  draw_nodes(random, plan);
  draw_workload(random, plan);
  draw_limits(random, plan);
  draw_snapshots(plan);
  draw_hand_overs(plan);
  draw_sessions(plan);
  plan.drift_extreme = plan.enabled.has(FaultClass::extreme_drift);
  plan.drift_ppm_max = plan.nodes[0].timing.max_clock_drift_ppm;
  const std::uint64_t young[] = {0, 0, 25, 60};
  plan.young_leader_percent = young[random.below(4)];
  const std::uint64_t hunt[] = {0, 0, 20, 60};
  const std::uint64_t hunt_percent = hunt[random.below(4)];
  if (plan.enabled.has(FaultClass::partition)) plan.hunt_percent = hunt_percent;
  plan.wake_percent = random.chance(1, 2) ? 30 : 0;
  if (options.drift_ppm) {
    plan.drift_extreme = true;
    plan.enabled.add(FaultClass::extreme_drift);
    plan.drift_ppm_max = *options.drift_ppm;
  }
  plan.fault_interval = milliseconds(random.between(400, 5000));
  plan.drift_against_leader = random.chance(1, 2);
  // The grounds live by how much goes wrong.
  const bool plain = options.drift_ppm || options.long_life;
  const std::uint64_t ground = plain ? 19 : random.below(20);
  if (ground < 4) draw_figure_8(random, plan);
  if (ground >= 4 && ground < 7) draw_edge_of_the_lease(plan);
  if (ground >= 7 && ground < 9) draw_late_copies(random, plan);
  draw_echoes(plan);
  draw_leases(plan);
  draw_key_locks(options, plan);
  draw_member_changes(plan);
  draw_witnesses(plan);
  if (plan.enabled.has(FaultClass::crash) && random.chance(1, 2)) {
    plan.crash_at_send_ppm = static_cast<std::uint64_t>(random.between(200, 3000));
  }
  if (plan.disk.loses_unsynced) {
    plan.crash_at_persist_ppm = static_cast<std::uint64_t>(random.between(500, 10'000));
  }
  if (options.long_life) draw_long_life(plan);
  if (options.lease_work) draw_lease_work(plan);
  draw_lease_terms(plan.leases, plan.seed);
  reduce(options.reduction, plan);
  return plan;
}

}  // namespace leasehold::sim
