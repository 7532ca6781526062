#include <leasehold/base/assert.h>
#include <leasehold/sim/plan/drawing.h>

#include <algorithm>
#include <chrono>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

}  // namespace

void draw_figure_8(Plan& plan) {
  Random random = stream(plan.seed, "figure 8");
  plan.enabled.add(FaultClass::crash);
  plan.enabled.add(FaultClass::partition);
  // What is not synced takes longer than a message, and is lost.
  plan.disk.loses_unsynced = true;
  plan.enabled.add(FaultClass::unsynced_loss);
  const bool slow_disks = random.chance(1, 2);
  const Duration sync_max = milliseconds(random.between(5, 30));
  for (NodePlan& node : plan.nodes) {
    if (slow_disks) node.sync_max = std::max(node.sync_max, sync_max);
  }
  plan.workload.think_max = std::min(plan.workload.think_max, Duration(milliseconds(100)));
  plan.workload.read_percent = std::min<std::uint64_t>(plan.workload.read_percent, 50);
  // Most of them wait most of the time, at leaders that get nowhere.
  plan.workload.clients = static_cast<std::uint64_t>(random.between(16, 32));
  // A key that is written again hides an earlier loss.
  plan.workload.keys = static_cast<std::uint64_t>(random.between(4, 20));
  plan.workload.watchers = 8;
  plan.workload.patience = std::chrono::seconds(18);
  plan.young_leader_percent = 85;
  // One entry at a time, or one command with the empty entry of a leader, or two.
  const std::size_t append_bytes[] = {1, 50, 90};
  plan.driver.append_bytes_max = append_bytes[random.below(3)];
  plan.driver.core.inflight_messages_max = 1;
  const std::uint64_t hunt_percent[] = {35, 55, 75};
  plan.hunt_percent = hunt_percent[random.below(3)];
  plan.duel = random.chance(2, 3);
  if (plan.duel) {
    plan.hunt_percent = 0;
    plan.young_leader_percent = 0;
  }
  // Short ones, so that many elections fit into a run.
  const std::int64_t drift_ppm = std::min<std::int64_t>(plan.drift_ppm_max, 50'000);
  plan.drift_ppm_max = drift_ppm;
  for (NodePlan& node : plan.nodes) {
    node.timing = timing(300, 30, drift_ppm, 5, 100);
    LEASEHOLD_ASSERT(node.timing.validate().ok());
  }
}

void draw_edge_of_the_lease(Plan& plan) {
  plan.enabled.add(FaultClass::extreme_drift);
  plan.enabled.add(FaultClass::pause);
  plan.enabled.add(FaultClass::partition);
  plan.drift_extreme = true;
  plan.drift_against_leader = true;
  plan.wake_percent = 40;
  plan.fault_interval = std::min(plan.fault_interval, Duration(milliseconds(1500)));
  plan.workload.think_max = std::min(plan.workload.think_max, Duration(milliseconds(60)));
  plan.workload.watchers = 6;
  plan.workload.quorum_percent = 50;
  plan.drift_ppm_max = 100'000;
  for (NodePlan& node : plan.nodes) {
    node.timing = timing(2000, 100, plan.drift_ppm_max, 5, 60);
    LEASEHOLD_ASSERT(node.timing.validate().ok());
  }
}

void draw_late_copies(Plan& plan) {
  Random random = stream(plan.seed, "late copies");
  plan.enabled.add(FaultClass::duplication);
  plan.enabled.add(FaultClass::reordering);
  plan.enabled.add(FaultClass::replay);
  plan.enabled.add(FaultClass::partition);
  plan.enabled.add(FaultClass::pause);
  plan.link.duplicate_ppm = 400'000;
  plan.link.keeps_order = false;
  plan.link.spike_ppm = 20'000;
  plan.link.spike_max = milliseconds(random.between(200, 1500));
  plan.link.loss_ppm = 20'000;
  plan.fault_interval = std::min(plan.fault_interval, Duration(milliseconds(1000)));
  plan.workload.think_max = std::min(plan.workload.think_max, Duration(milliseconds(40)));
  plan.workload.read_percent = 30;
  plan.workload.clients = static_cast<std::uint64_t>(random.between(10, 20));
  plan.workload.keys = 3;
  plan.workload.quiet_period = Duration{0};
  // Short ones, so that many leaders are deposed.
  const std::int64_t drift_ppm = std::min<std::int64_t>(plan.drift_ppm_max, 50'000);
  plan.drift_ppm_max = drift_ppm;
  for (NodePlan& node : plan.nodes) {
    node.timing = timing(300, 30, drift_ppm, 5, 100);
    LEASEHOLD_ASSERT(node.timing.validate().ok());
  }
}

void draw_long_life(Plan& plan) {
  using std::chrono::seconds;
  plan.fault_interval = seconds(9);
  plan.straggler_interval = seconds(120);
  // A log that is never cut is applied from its beginning at each restart, for longer and longer.
  plan.driver.log_tail_bytes = std::min<std::uint64_t>(plan.driver.log_tail_bytes, 8'000);
  plan.driver.log_cut_bytes = std::min<std::uint64_t>(plan.driver.log_cut_bytes, 1'000);
  plan.transfer_interval = seconds(60);
  plan.member_change_interval = seconds(60);
  plan.cut_demand_interval = seconds(60);
  plan.settings.change_interval = seconds(60);
  plan.young_leader_percent = std::min<std::uint64_t>(plan.young_leader_percent, 25);
  plan.hunt_percent = std::min<std::uint64_t>(plan.hunt_percent, 20);
  // What is drawn for each message, sync or turn: now and then in a minute.
  plan.link.loss_ppm = std::min<std::uint64_t>(plan.link.loss_ppm, 2'000);
  plan.link.duplicate_ppm = std::min<std::uint64_t>(plan.link.duplicate_ppm, 2'000);
  plan.link.spike_ppm = std::min<std::uint64_t>(plan.link.spike_ppm, 500);
  plan.disk.stall_ppm /= 20;
  plan.disk.error_ppm /= 20;
  plan.snapshots.crash_ppm /= 20;
  // Faults change the leader every few seconds, and the next one begins its own snapshot: all that
  // lack one have to get it before that, piece by piece from one thread.
  if (plan.driver.snapshot_chunk_bytes < 150) {
    plan.snapshots.work_max = std::min(plan.snapshots.work_max, Duration(milliseconds(50)));
  }
  plan.crash_at_send_ppm /= 50;
  plan.crash_at_persist_ppm /= 20;
  // A leader leaves whose disk takes an election timeout, which a change of settings may halve.
  // With two voters nobody else may have the log that is needed to be elected.
  Duration election = first_settings(plan).timing.election_timeout;
  for (const NodePlan& node : plan.nodes) {
    election = std::min(election, node.timing.election_timeout);
  }
  for (NodePlan& node : plan.nodes) {
    node.sync_max = std::min(node.sync_max, election / 5);
    node.late_ppm /= 20;
    // What is applied more slowly than it is asked for would fall behind for hours.
    node.apply_max = std::min(node.apply_max, Duration(milliseconds(100)));
  }
  // Nor may a leader leave for each of its slower calls.
  plan.driver.apply_patience = std::max(plan.driver.apply_patience, Duration(milliseconds(400)));
  // They act a few times in a time to live.
  plan.leases.clients = std::min<std::uint64_t>(plan.leases.clients, 3);
  plan.leases.ttl = seconds(20);
  plan.leases.look_max = seconds(10);
  plan.key_locks.clients = std::min<std::uint64_t>(plan.key_locks.clients, 2);
  plan.key_locks.keys = 1;
  plan.key_locks.ttl = seconds(20);
  WorkloadPlan& workload = plan.workload;
  workload.watchers = std::min<std::uint64_t>(workload.watchers, 1);
  // A client's think time is half of the longest in the mean.
  workload.think_max = workload.clients * milliseconds(900);
  plan.sessions.think_max = plan.sessions.clients * seconds(5);
}

}  // namespace leasehold::sim
