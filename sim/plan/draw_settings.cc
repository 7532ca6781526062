#include <leasehold/base/assert.h>
#include <leasehold/sim/plan/drawing.h>

#include <algorithm>
#include <chrono>

namespace leasehold::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Of the nodes, so that no two are started with the same numbers.
constexpr int kAttempts = 64;
constexpr std::int64_t kDriftWithoutLeases = 400'000;

/// The flags of one node. In a group that has agreed on settings nothing depends on them but what
/// the node's own clock is worth.
lease::Timing draw_flags(Random& random, const lease::Timing& base, bool agreed) {
  lease::Timing flags = base;
  const std::int64_t lease_percent = random.between(agreed ? 50 : 100, 201);
  const std::int64_t heartbeats = random.between(8, 21);
  const std::int64_t election_percent = random.between(agreed ? 60 : 80, agreed ? 181 : 141);
  const std::int64_t drift_percent[] = {0, 10, 50, 100, 100, 150};
  const std::int64_t drift = drift_percent[random.below(6)];
  const std::int64_t margin_ms = random.between(0, 16);
  const std::int64_t round_trip_ms = random.between(20, 51);
  flags.lease = std::min(base.lease * lease_percent / 100, kSettingsLeaseMax);
  flags.heartbeat = flags.lease / heartbeats;
  flags.election_timeout = base.election_timeout * election_percent / 100;
  flags.max_clock_drift_ppm = base.max_clock_drift_ppm * drift / 100;
  flags.margin = milliseconds(margin_ms);
  flags.max_round_trip = milliseconds(round_trip_ms);
  return flags;
}

/// A leader with this drift bound could renew its lease in time.
bool can_lead(lease::Timing timing, std::int64_t own_drift_ppm) {
  timing.max_clock_drift_ppm = std::max(timing.max_clock_drift_ppm, own_drift_ppm);
  return timing.validate().ok();
}

/// The bound of some starts.
std::int64_t draw_other_drift(Random& random, const lease::Timing& base, lease::Timing flags,
                              bool any) {
  const std::int64_t kept = flags.max_clock_drift_ppm;
  const std::int64_t percent[] = {0, 10, 50, 100, 150, 200};
  flags.max_clock_drift_ppm = base.max_clock_drift_ppm * percent[random.below(6)] / 100;
  const bool fits = flags.validate().ok() && (any || can_lead(base, flags.max_clock_drift_ppm));
  return fits ? flags.max_clock_drift_ppm : kept;
}

}  // namespace

void draw_settings(const SimOptions& options, Plan& plan) {
  Random random = stream(plan.seed, "settings");
  const lease::Timing base = plan.nodes[0].timing;
  const bool agreed = random.chance(7, 8);
  const bool changes = random.chance(2, 3);
  const std::uint64_t other_percent[] = {0, 20, 50};
  const std::uint64_t other = other_percent[random.below(3)];
  const bool wild = random.chance(1, 2);
  const std::int64_t interval_ms[] = {40, 80, 250, 1'000};
  const Duration interval = milliseconds(interval_ms[random.below(4)]);
  plan.settings.agreed = agreed;
  plan.settings.first.timing = base;
  plan.settings.first.lease_reads = true;
  if (!options.drift_ppm) plan.settings.other_drift_percent = other;
  // The leases of clients rely on the clocks of the nodes all the time.
  const bool relied_upon =
      options.lease_work || plan.leases.clients > 0 || plan.key_locks.clients > 0;
  if (wild && !relied_upon && !options.drift_ppm) {
    plan.settings.drift_ppm_without_leases = kDriftWithoutLeases;
  }
  std::int64_t number = 0;
  for (NodePlan& node : plan.nodes) {
    lease::Timing flags = base;
    // One in eight may be unable to renew a lease of the group in time.
    const bool any = random.chance(1, 8);
    for (int i = 0; i < kAttempts; ++i) {
      const lease::Timing drawn = draw_flags(random, base, agreed);
      if (!drawn.validate().ok() || !(any || can_lead(base, drawn.max_clock_drift_ppm))) continue;
      flags = drawn;
      break;
    }
    node.other_drift_ppm = draw_other_drift(random, base, flags, any);
    if (options.drift_ppm) flags.max_clock_drift_ppm = base.max_clock_drift_ppm;
    // Whatever was drawn, no two nodes have the same.
    flags.lease += microseconds(++number);
    node.timing = flags;
    LEASEHOLD_ASSERT(node.timing.validate().ok());
  }
  if (!changes || options.shape) return;
  plan.enabled.add(FaultClass::settings);
  plan.settings.change_interval = interval;
}

void draw_upgrade(const SimOptions& options, Plan& plan) {
  if (!options.earlier) return;
  Random random = stream(plan.seed, "upgrade");
  const std::uint64_t earlier[] = {25, 50, 75};
  const std::int64_t restart_ms[] = {500, 2'000, 6'000};
  plan.upgrade.earlier_percent = earlier[random.below(3)];
  plan.upgrade.restart_interval = milliseconds(restart_ms[random.below(3)]);
  plan.upgrade.over = options.chaos * random.between(50, 96) / 100;
  // The earlier version knows no agreed settings, and demanded of its operators that all nodes have
  // the same drift bound and margin.
  plan.settings.agreed = false;
  plan.settings.other_drift_percent = 0;
  for (NodePlan& node : plan.nodes) {
    node.timing.max_clock_drift_ppm = plan.settings.first.timing.max_clock_drift_ppm;
    node.timing.margin = plan.settings.first.timing.margin;
    if (!node.timing.validate().ok()) node.timing = plan.settings.first.timing;
  }
}

}  // namespace leasehold::sim
