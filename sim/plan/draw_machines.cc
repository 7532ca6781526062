#include <leasehold/sim/plan/drawing.h>

#include <algorithm>
#include <chrono>

namespace leasehold::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

}  // namespace

void draw_links(Plan& plan) {
  Random random = stream(plan.seed, "links");
  plan.link.delay_min = microseconds(50);
  plan.link.delay_max = microseconds(random.between(100, 5000));
  const std::uint64_t rates[] = {2'000, 20'000, 100'000};
  const std::uint64_t loss_ppm = rates[random.below(3)];
  const auto duplicate_ppm = static_cast<std::uint64_t>(random.between(2'000, 100'000));
  const auto spike_ppm = static_cast<std::uint64_t>(random.between(1'000, 60'000));
  const Duration spike_max = milliseconds(random.between(50, 4000));
  const std::uint64_t echo_percent[] = {0, 30, 90};
  const std::uint64_t drawn_echo_percent = echo_percent[random.below(3)];
  if (plan.enabled.has(FaultClass::loss)) plan.link.loss_ppm = loss_ppm;
  if (plan.enabled.has(FaultClass::duplication)) plan.link.duplicate_ppm = duplicate_ppm;
  if (plan.enabled.has(FaultClass::reordering)) {
    plan.link.keeps_order = false;
    plan.link.spike_ppm = spike_ppm;
    plan.link.spike_max = spike_max;
  }
  if (plan.enabled.has(FaultClass::replay)) plan.link.echo_percent = drawn_echo_percent;
}

void draw_disks(Plan& plan) {
  Random random = stream(plan.seed, "disks");
  plan.disk.sync_min = microseconds(100);
  plan.disk.sync_max = microseconds(random.between(200, 8000));
  const auto stall_ppm = static_cast<std::uint64_t>(random.between(1'000, 40'000));
  const Duration stall_max = milliseconds(random.between(100, 3000));
  if (plan.enabled.has(FaultClass::disk_stall)) {
    plan.disk.stall_ppm = stall_ppm;
    plan.disk.stall_max = stall_max;
  }
  for (NodePlan& node : plan.nodes) {
    node.sync_max = plan.disk.sync_max;
    // One disk of the cluster may be much slower than the others: what waits for it waits long.
    const bool slow = random.chance(1, 4);
    const Duration long_sync = milliseconds(random.between(20, 120));
    if (plan.enabled.has(FaultClass::disk_stall) && slow) node.sync_max = long_sync;
  }
  plan.disk.loses_unsynced = plan.enabled.has(FaultClass::unsynced_loss);
  if (plan.enabled.has(FaultClass::disk_error)) plan.disk.error_ppm = 500;
}

void draw_nodes(Plan& plan) {
  Random random = stream(plan.seed, "threads");
  for (NodePlan& node : plan.nodes) {
    node.apply_min = microseconds(1);
    node.apply_max = microseconds(random.between(2, 500));
    const bool slow = random.chance(1, 2);
    const Duration slow_apply = milliseconds(random.between(5, 800));
    const auto late_ppm = static_cast<std::uint64_t>(random.between(200, 10'000));
    const Duration late_max = milliseconds(random.between(1, 3000));
    if (plan.enabled.has(FaultClass::slow_apply) && slow) node.apply_max = slow_apply;
    if (plan.enabled.has(FaultClass::late_handling)) {
      node.late_ppm = late_ppm;
      node.late_max = late_max;
    }
  }
}

void draw_limits(Plan& plan) {
  Random random = stream(plan.seed, "limits");
  const std::size_t cache_bytes[] = {0, 300, 32U << 20U};
  const std::size_t append_bytes[] = {1, 200, 1U << 20U};
  const std::size_t inflights[] = {1, 4, 64};
  plan.driver.cache_bytes_max = cache_bytes[random.below(3)];
  plan.driver.append_bytes_max = append_bytes[random.below(3)];
  plan.driver.apply_bytes_max = append_bytes[random.below(3)];
  plan.driver.applies_max = static_cast<std::size_t>(random.between(1, 5));
  plan.driver.core.inflight_messages_max = inflights[random.below(3)];
  // As production does, and at once.
  if (random.chance(1, 4)) plan.driver.core.commit_news_delay = std::chrono::milliseconds(1);
  // Some calls of a slow state machine take longer.
  const Duration patience[] = {milliseconds(10'000), milliseconds(400), milliseconds(50)};
  const Duration drawn_patience = patience[random.below(3)];
  if (plan.enabled.has(FaultClass::slow_apply)) plan.driver.apply_patience = drawn_patience;
}

void draw_snapshots(Plan& plan) {
  Random random = stream(plan.seed, "snapshots");
  SnapshotPlan& snapshots = plan.snapshots;
  const std::int64_t work_us[] = {500, 5'000, 50'000, 300'000};
  snapshots.work_min = microseconds(50);
  snapshots.work_max = microseconds(work_us[random.below(4)]);
  snapshots.flushes = random.chance(1, 2);
  snapshots.quick_return = random.chance(2, 3);
  const bool straggler = random.chance(1, 2);
  if (straggler) plan.enabled.add(FaultClass::straggler);
  const bool full_disk = random.chance(1, 3);
  if (full_disk) plan.enabled.add(FaultClass::full_disk);
  plan.disk.full_max = milliseconds(random.between(200, 6000));
  const std::uint64_t crash_ppm[] = {0, 20'000, 80'000, 250'000};
  const std::uint64_t drawn_crash_ppm = crash_ppm[random.below(4)];
  if (plan.enabled.has(FaultClass::crash)) snapshots.crash_ppm = drawn_crash_ppm;
  if (plan.enabled.has(FaultClass::disk_error)) snapshots.failure_ppm = 100'000;

  replica::DriverOptions& driver = plan.driver;
  const std::uint64_t tail_bytes[] = {0, 150, 1'000, 8'000};
  const std::uint64_t cut_bytes[] = {1, 100, 1'000};
  const std::uint64_t held_bytes[] = {0, 400, 1U << 30U};
  const std::size_t chunk_bytes[] = {9, 40, 40, 150, 256U << 10U};
  const std::size_t window[] = {1, 3, 16};
  const std::uint64_t bytes_per_second[] = {0, 0, 3'000};
  const Duration ages[] = {Duration{0}, Duration{0}, milliseconds(700), milliseconds(6000)};
  const Duration patience[] = {milliseconds(600), milliseconds(3000), milliseconds(30'000)};
  const Duration keep[] = {Duration{0}, milliseconds(200), milliseconds(10'000)};
  const bool cuts = random.chance(5, 6);
  const std::uint64_t tail = tail_bytes[random.below(4)];
  const std::uint64_t cut = cut_bytes[random.below(3)];
  const Duration age = ages[random.below(4)];
  if (cuts) {
    driver.log_tail_bytes = tail;
    driver.log_cut_bytes = cut;
    driver.log_age_max = age;
  }
  driver.log_held_bytes_max = held_bytes[random.below(3)];
  const std::size_t window_chunks = window[random.below(3)];
  driver.snapshot_chunk_bytes = chunk_bytes[random.below(5)];
  driver.snapshot_bytes_per_second = bytes_per_second[random.below(3)];
  // Where few entries or none are held for a peer, a snapshot has to arrive between two cuts.
  if (driver.log_held_bytes_max < held_bytes[2]) {
    driver.snapshot_chunk_bytes = std::max(driver.snapshot_chunk_bytes, std::size_t{150});
    driver.snapshot_bytes_per_second = 0;
  }
  driver.snapshot_window_bytes = driver.snapshot_chunk_bytes * window_chunks;
  driver.snapshot_patience = patience[random.below(3)];
  driver.snapshot_keep = keep[random.below(3)];
  // Room for a window: what is dropped costs a silence of heartbeats each time.
  driver.chunks_storing_max = window_chunks + random.below(4);
  Random holds = stream(plan.seed, "held blocks");
  const std::uint64_t held_percent[] = {0, 0, 50, 90};
  snapshots.held_percent = held_percent[holds.below(4)];
}

void draw_cut_demands(Plan& plan) {
  Random random = stream(plan.seed, "cut demands");
  if (!random.chance(1, 3)) return;
  plan.enabled.add(FaultClass::cut_demand);
  const std::int64_t interval_ms[] = {50, 300, 2'000};
  plan.cut_demand_interval = milliseconds(interval_ms[random.below(3)]);
}

}  // namespace leasehold::sim
