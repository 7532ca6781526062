#include <leasehold/sim/plan/drawing.h>

#include <algorithm>
#include <chrono>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

}  // namespace

void draw_workload(Plan& plan) {
  Random random = stream(plan.seed, "workload");
  plan.workload.clients = static_cast<std::uint64_t>(random.between(4, 10));
  plan.workload.keys = static_cast<std::uint64_t>(random.between(1, 6));
  plan.workload.read_percent = static_cast<std::uint64_t>(random.between(30, 85));
  const bool quiet = random.chance(1, 2);
  const Duration quiet_period = milliseconds(random.between(2000, 12'000));
  if (quiet) plan.workload.quiet_period = quiet_period;
  plan.workload.all_quiet = stream(plan.seed, "all quiet").chance(1, 2);
  plan.workload.think_max = milliseconds(random.between(30, 300));
  const std::uint64_t quorum_percent[] = {20, 20, 50};
  plan.workload.quorum_percent = quorum_percent[random.below(3)];
  const std::uint64_t watchers[] = {0, 2, 6};
  plan.workload.watchers = watchers[random.below(3)];
  const auto reader_pause_ppm = static_cast<std::uint64_t>(random.between(10'000, 200'000));
  if (plan.enabled.has(FaultClass::reader_pause)) {
    plan.workload.reader_pause_ppm = reader_pause_ppm;
    plan.workload.reader_pause_max = 3 * plan.lease_max();
  }
}

void draw_sessions(Plan& plan) {
  Random random = stream(plan.seed, "sessions");
  if (!random.chance(1, 2)) return;
  SessionPlan& sessions = plan.sessions;
  sessions.clients = 2 + random.below(4);
  const std::uint64_t outstanding[] = {1, 2, 3};
  sessions.outstanding_max = outstanding[random.below(3)];
  sessions.think_max = milliseconds(random.between(10, 150));
  const std::uint64_t double_percent[] = {0, 20, 60};
  sessions.double_percent = double_percent[random.below(3)];
  const std::int64_t idle_ms[] = {500, 2'000, 5'000, 60'000};
  sessions.idle_max = milliseconds(idle_ms[random.below(4)]);
}

void draw_leases(Plan& plan) {
  Random random = stream(plan.seed, "leases");
  if (!random.chance(1, 2)) return;
  LeasePlan& leases = plan.leases;
  leases.clients = 3 + random.below(6);
  leases.names = 1 + random.below(3);
  const std::int64_t ttl_ms[] = {60, 200, 600, 2'000};
  leases.ttl = milliseconds(ttl_ms[random.below(4)]);
  leases.margin = milliseconds(random.between(0, 5));
  leases.drift_ppm = plan.drift_ppm_max;
  leases.watchers = random.below(4);
  leases.look_max = milliseconds(random.between(5, 300));
  const std::size_t events[] = {2, 20, 100'000};
  leases.events_max = events[random.below(3)];
}

void draw_lease_terms(Plan& plan) {
  LeasePlan& leases = plan.leases;
  Random random = stream(plan.seed, "lease terms");
  if (!random.chance(1, 2)) return;
  const std::int64_t graces[] = {1, 2, 6};
  leases.grace_max = leases.ttl * graces[random.below(3)];
  leases.delay_max = leases.ttl * random.between(1, 4);
}

void draw_key_locks(const SimOptions& options, Plan& plan) {
  Random random = stream(plan.seed, "key locks");
  // Every command of theirs stands in the log.
  if (!random.chance(options.lease_work ? 2 : 1, 4)) return;
  KeyLockPlan& locks = plan.key_locks;
  locks.clients = 3 + random.below(options.lease_work ? 6 : 4);
  locks.keys = 1 + random.below(options.lease_work ? 3 : 2);
  const std::int64_t ttl_ms[] = {120, 250, 600, 2'000};
  locks.ttl = milliseconds(ttl_ms[random.below(options.lease_work ? 3 : 4)]);
  locks.margin = milliseconds(random.between(0, 5));
}

void draw_lease_work(Plan& plan) {
  Random random = stream(plan.seed, "lease work");
  LeasePlan& leases = plan.leases;
  leases.clients = 8 + random.below(25);
  leases.names = leases.clients - random.below(leases.clients / 2);
  const std::int64_t ttl_ms[] = {60, 120, 250, 600};
  leases.ttl = milliseconds(ttl_ms[random.below(4)]);
  leases.margin = milliseconds(random.between(0, 5));
  leases.drift_ppm = plan.drift_ppm_max;
  leases.watchers = 2;
  leases.look_max = milliseconds(random.between(5, 300));
  const std::size_t events[] = {2, 20, 100'000};
  leases.events_max = events[random.below(3)];
  plan.sessions.clients = 0;
  plan.workload.watchers = 0;
  plan.workload.think_max = plan.workload.clients * milliseconds(50);
  // A lease lives for some time to live between two faults, as a rule.
  plan.fault_interval *= 3;
  plan.transfer_interval *= 3;
  plan.member_change_interval *= 3;
  for (NodePlan& node : plan.nodes) {
    // What is applied more slowly than it is asked for would not be done in time.
    node.apply_max = std::min(node.apply_max, Duration(milliseconds(2)));
  }
  if (plan.key_locks.clients > 0) {
    // Each of their commands has to be committed in less than a time to live.
    plan.young_leader_percent = std::min<std::uint64_t>(plan.young_leader_percent, 25);
    plan.hunt_percent = std::min<std::uint64_t>(plan.hunt_percent, 20);
    plan.duel = false;
    plan.driver.append_bytes_max = std::max<std::size_t>(plan.driver.append_bytes_max, 1'000);
    plan.driver.apply_bytes_max = std::max<std::size_t>(plan.driver.apply_bytes_max, 1'000);
  }
  // Nor would a log of thousands of entries, applied again after each restart.
  plan.driver.log_tail_bytes = std::min<std::uint64_t>(plan.driver.log_tail_bytes, 8'000);
  plan.driver.log_cut_bytes = std::min<std::uint64_t>(plan.driver.log_cut_bytes, 1'000);
  // Nor a state of kilobytes in chunks of a few bytes, or at a rate for small ones.
  plan.driver.snapshot_chunk_bytes *= 30;
  plan.driver.snapshot_window_bytes *= 30;
  plan.driver.snapshot_bytes_per_second *= 30;
}

}  // namespace leasehold::sim
