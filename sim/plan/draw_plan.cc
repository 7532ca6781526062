#include <leasehold/base/assert.h>
#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/plan/reduction.h>

#include <algorithm>
#include <chrono>

namespace leasehold::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

lease::Timing timing(int lease_ms, int heartbeat_ms, std::int64_t drift_ppm, int margin_ms,
                     int election_ms) {
  lease::Timing made;
  made.lease = milliseconds(lease_ms);
  made.heartbeat = milliseconds(heartbeat_ms);
  made.max_clock_drift_ppm = drift_ppm;
  made.max_round_trip = milliseconds(50);
  made.margin = milliseconds(margin_ms);
  made.election_timeout = milliseconds(election_ms);
  return made;
}

/// The settings of the cluster. The bound on the drift is one for all; D may differ by node.
void draw_timings(Random& random, const SimOptions& options, Plan& plan) {
  const lease::Timing choices[] = {
      timing(1000, 100, 100'000, 10, 300), timing(2000, 200, 100'000, 10, 300),
      timing(600, 60, 50'000, 5, 200),     timing(2000, 100, 10'000, 1, 200),
      timing(3000, 200, 100'000, 10, 150), timing(2000, 100, 100'000, 5, 100)};
  // The default settings are the most common ones in life, too.
  const std::uint64_t drawn = random.below(8);
  lease::Timing base = choices[drawn < 6 ? drawn : 0];
  if (options.drift_ppm) base.max_clock_drift_ppm = 100'000;
  const bool differ = random.chance(1, 5);
  for (NodePlan& node : plan.nodes) {
    node.timing = base;
    if (differ) node.timing.lease = base.lease * random.between(10, 20) / 10;
    LEASEHOLD_ASSERT(node.timing.validate().ok());
  }
}

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

void draw_links(Random& random, Plan& plan) {
  plan.link.delay_min = microseconds(50);
  plan.link.delay_max = microseconds(random.between(100, 5000));
  if (plan.enabled.has(FaultClass::loss)) {
    const std::uint64_t rates[] = {2'000, 20'000, 100'000};
    plan.link.loss_ppm = rates[random.below(3)];
  }
  if (plan.enabled.has(FaultClass::duplication)) {
    plan.link.duplicate_ppm = static_cast<std::uint64_t>(random.between(2'000, 100'000));
  }
  if (plan.enabled.has(FaultClass::reordering)) {
    plan.link.keeps_order = false;
    plan.link.spike_ppm = static_cast<std::uint64_t>(random.between(1'000, 60'000));
    plan.link.spike_max = milliseconds(random.between(50, 4000));
  }
}

void draw_disk(Random& random, Plan& plan) {
  plan.disk.sync_min = microseconds(100);
  plan.disk.sync_max = microseconds(random.between(200, 8000));
  if (plan.enabled.has(FaultClass::disk_stall)) {
    plan.disk.stall_ppm = static_cast<std::uint64_t>(random.between(1'000, 40'000));
    plan.disk.stall_max = milliseconds(random.between(100, 3000));
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

void draw_nodes(Random& random, Plan& plan) {
  for (NodePlan& node : plan.nodes) {
    node.apply_min = microseconds(1);
    node.apply_max = microseconds(random.between(2, 500));
    if (plan.enabled.has(FaultClass::slow_apply) && random.chance(1, 2)) {
      node.apply_max = milliseconds(random.between(5, 800));
    }
    if (plan.enabled.has(FaultClass::late_handling)) {
      node.late_ppm = static_cast<std::uint64_t>(random.between(200, 10'000));
      node.late_max = milliseconds(random.between(1, 3000));
    }
  }
}

void draw_workload(Random& random, Plan& plan) {
  plan.workload.clients = static_cast<std::uint64_t>(random.between(4, 10));
  plan.workload.keys = static_cast<std::uint64_t>(random.between(1, 6));
  plan.workload.read_percent = static_cast<std::uint64_t>(random.between(30, 85));
  if (random.chance(1, 2)) plan.workload.quiet_period = milliseconds(random.between(2000, 12'000));
  plan.workload.think_max = milliseconds(random.between(30, 300));
  const std::uint64_t quorum_percent[] = {20, 20, 50};
  plan.workload.quorum_percent = quorum_percent[random.below(3)];
  const std::uint64_t watchers[] = {0, 2, 6};
  plan.workload.watchers = watchers[random.below(3)];
  if (plan.enabled.has(FaultClass::reader_pause)) {
    plan.workload.reader_pause_ppm = static_cast<std::uint64_t>(random.between(10'000, 200'000));
    plan.workload.reader_pause_max = 3 * plan.lease_max();
  }
}

/// Small limits make the paths behind them common.
void draw_limits(Random& random, Plan& plan) {
  const std::size_t cache_bytes[] = {0, 300, 32U << 20U};
  const std::size_t append_bytes[] = {1, 200, 1U << 20U};
  const std::size_t inflights[] = {1, 4, 64};
  plan.driver.cache_bytes_max = cache_bytes[random.below(3)];
  plan.driver.append_bytes_max = append_bytes[random.below(3)];
  plan.driver.apply_bytes_max = append_bytes[random.below(3)];
  plan.driver.applies_max = static_cast<std::size_t>(random.between(1, 5));
  plan.driver.core.inflight_messages_max = inflights[random.below(3)];
  // As production does, and at once.
  if (plan.seed % 4 == 3) plan.driver.core.commit_news_delay = std::chrono::milliseconds(1);
}

/// When logs are cut, and how snapshots travel: in most seeds far more often, and in smaller parts,
/// than in life. A sequence of its own, so that all else in a seed is as it would be without.
void draw_snapshots(Plan& plan) {
  Random random = random_for(plan.seed, 4);
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
}

/// What a leader that was elected again hears of its earlier time. A sequence of its own, too.
void draw_echoes(Plan& plan) {
  Random random = random_for(plan.seed, 6);
  const std::uint64_t percent[] = {0, 30, 90};
  const std::uint64_t drawn = percent[random.below(3)];
  if (plan.enabled.has(FaultClass::replay)) plan.link.echo_percent = drawn;
}

/// A sequence of its own, so that all else in a seed is as it would be without.
void draw_hand_overs(Plan& plan) {
  Random random = random_for(plan.seed, 8);
  if (!random.chance(1, 2)) return;
  plan.enabled.add(FaultClass::hand_over);
  const std::int64_t interval_ms[] = {200, 700, 2'000};
  plan.hand_over_interval = milliseconds(interval_ms[random.below(3)]);
}

/// A sequence of its own, too.
void draw_sessions(Plan& plan) {
  Random random = random_for(plan.seed, 13);
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

/// A sequence of its own, too. Behind everything that has a say in the drift.
void draw_leases(Plan& plan) {
  Random random = random_for(plan.seed, 15);
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

/// Of a sequence of their own: what the leases have beside their time to live.
void draw_lease_terms(LeasePlan& leases, std::uint64_t seed) {
  Random random = random_for(seed, 21);
  if (!random.chance(1, 2)) return;
  const std::int64_t graces[] = {1, 2, 6};
  leases.grace_max = leases.ttl * graces[random.below(3)];
  leases.delay_max = leases.ttl * random.between(1, 4);
}

/// A sequence of its own, too.
void draw_key_locks(const SimOptions& options, Plan& plan) {
  Random random = random_for(plan.seed, 17);
  // Every command of theirs stands in the log.
  if (!random.chance(options.lease_work ? 2 : 1, 4)) return;
  KeyLockPlan& locks = plan.key_locks;
  locks.clients = 3 + random.below(options.lease_work ? 6 : 4);
  locks.keys = 1 + random.below(options.lease_work ? 3 : 2);
  const std::int64_t ttl_ms[] = {120, 250, 600, 2'000};
  locks.ttl = milliseconds(ttl_ms[random.below(options.lease_work ? 3 : 4)]);
  locks.margin = milliseconds(random.between(0, 5));
}

/// SimOptions::lease_work. Most names are free at a time, so that most clients hold one.
void draw_lease_work(Plan& plan) {
  Random random = random_for(plan.seed, 16);
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
  plan.hand_over_interval *= 3;
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
  // Nor would a log of thousands of entries, applied anew after each restart.
  plan.driver.log_tail_bytes = std::min<std::uint64_t>(plan.driver.log_tail_bytes, 8'000);
  plan.driver.log_cut_bytes = std::min<std::uint64_t>(plan.driver.log_cut_bytes, 1'000);
  // Nor a state of kilobytes in chunks of a few bytes, or at a rate for small ones.
  plan.driver.snapshot_chunk_bytes *= 30;
  plan.driver.snapshot_window_bytes *= 30;
  plan.driver.snapshot_bytes_per_second *= 30;
}

/// A sequence of its own, too. Behind everything else that is drawn for the nodes.
void draw_member_changes(Plan& plan) {
  plan.founders = plan.nodes.size();
  Random random = random_for(plan.seed, 10);
  // The script of a duel counts on who votes.
  if (plan.duel || !random.chance(1, 3)) return;
  plan.enabled.add(FaultClass::membership);
  const std::int64_t interval_ms[] = {150, 500, 1'500};
  plan.member_change_interval = milliseconds(interval_ms[random.below(3)]);
  const std::uint64_t joiners = 1 + random.below(2);
  // Who asks an outsider waits for nothing, and a group of few voters is soon without a leader.
  plan.workload.clients += 12;
  plan.workload.think_max = std::min(plan.workload.think_max, Duration(milliseconds(400)));
  for (std::uint64_t i = 0; i < joiners; ++i) {
    const NodePlan like = plan.nodes[static_cast<std::size_t>(random.below(plan.founders))];
    plan.nodes.push_back(like);
  }
}

/// A sequence of its own, too. At least one of the founders has a state, two as a rule: with one
/// alone nothing is done while it is away.
void draw_witnesses(Plan& plan) {
  Random random = random_for(plan.seed, 15);
  // The script of a duel counts on who may lead.
  if (plan.duel || !random.chance(1, 4)) return;
  const std::size_t most = random.chance(1, 8) ? plan.founders - 1 : plan.founders / 2;
  const std::size_t wanted = 1 + static_cast<std::size_t>(random.below(most));
  for (std::size_t i = 0; i < wanted; ++i) {
    plan.nodes[static_cast<std::size_t>(random.below(plan.founders))].witness = true;
  }
  for (std::size_t i = plan.founders; i < plan.nodes.size(); ++i) {
    plan.nodes[i].witness = random.chance(1, 2);
  }
  // Who asks a witness waits for nothing.
  plan.workload.clients += 12;
  plan.workload.think_max = std::min(plan.workload.think_max, Duration(milliseconds(200)));
}

/// Nearly every leader falls right after its election, and what it appended travels entry by entry:
/// the ground on which entries of old terms are half replicated.
void draw_figure_8(Random& random, Plan& plan) {
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
  // A key that is written again hides what was lost before.
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

/// Every leader's clocks are as slow as they may be, the others' as fast; elections take little of
/// a long lease. Between the end of its promises and the moment at which it has to notice, a leader
/// that was deposed lives as long as it can, and there it wakes up.
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

/// Commands are forwarded most of the time, their copies come late, and leaders are deposed while
/// they live: a copy meets a node that took the command when it still led.
void draw_late_copies(Random& random, Plan& plan) {
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

/// Everything that was drawn, but far less often (SimOptions::long_life).
void draw_long_life(Plan& plan) {
  using std::chrono::seconds;
  plan.fault_interval = seconds(9);
  plan.straggler_interval = seconds(120);
  // A log that is never cut is applied from its beginning at each restart, for longer and longer.
  plan.driver.log_tail_bytes = std::min<std::uint64_t>(plan.driver.log_tail_bytes, 8'000);
  plan.driver.log_cut_bytes = std::min<std::uint64_t>(plan.driver.log_cut_bytes, 1'000);
  plan.hand_over_interval = seconds(60);
  plan.member_change_interval = seconds(60);
  plan.young_leader_percent = std::min<std::uint64_t>(plan.young_leader_percent, 25);
  plan.hunt_percent = std::min<std::uint64_t>(plan.hunt_percent, 20);
  // What is drawn for each message, sync or turn: now and then in a minute.
  plan.link.loss_ppm = std::min<std::uint64_t>(plan.link.loss_ppm, 2'000);
  plan.link.duplicate_ppm = std::min<std::uint64_t>(plan.link.duplicate_ppm, 2'000);
  plan.link.spike_ppm = std::min<std::uint64_t>(plan.link.spike_ppm, 500);
  plan.disk.stall_ppm /= 20;
  plan.disk.error_ppm /= 20;
  plan.snapshots.crash_ppm /= 20;
  plan.crash_at_send_ppm /= 50;
  plan.crash_at_persist_ppm /= 20;
  for (NodePlan& node : plan.nodes) {
    node.late_ppm /= 20;
    // What is applied more slowly than it is asked for would fall behind for hours.
    node.apply_max = std::min(node.apply_max, Duration(milliseconds(100)));
  }
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
