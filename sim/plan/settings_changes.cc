#include <leasehold/sim/plan/settings_changes.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::sim {

using std::chrono::milliseconds;

SettingsChanges::SettingsChanges(World& world, std::vector<SimNode*> nodes, AgreedNumbers& numbers,
                                 std::function<void()> clocks)
    : world_(world),
      nodes_(std::move(nodes)),
      numbers_(numbers),
      clocks_(std::move(clocks)),
      random_(world.random(16)) {}

void SettingsChanges::start() {
  if (world_.plan.enabled.has(FaultClass::settings)) schedule_next();
}

void SettingsChanges::schedule_next() {
  const Duration mean = world_.plan.settings.change_interval;
  world_.queue.after(draw_duration(random_, mean / 4, mean * 7 / 4), [this] {
    if (world_.healed) return;
    if (world_.fault_happens() && world_.all_quiet_left() == Duration{0}) change();
    world_.begin_sequence(random_, FaultMoment::after);
    schedule_next();
  });
}

void SettingsChanges::change() {
  const std::uint64_t drawn = random_.next();
  SimNode* const leader = some_leader(nodes_, drawn);
  if (leader == nullptr || !all_can_read()) return;
  const auto& agreed = leader->running().membership().settings;
  raft::GroupSettings newest;
  newest.timing = leader->running().timing();
  if (agreed) newest = *agreed;
  replica::ChangeSettings event;
  event.edit = draw_edit(newest);
  if (!agreed) {
    // The first ones would take these from the flags of the node that leads by then.
    event.edit.max_clock_drift_ppm = event.edit.applied_to(newest).timing.max_clock_drift_ppm;
    event.edit.margin = event.edit.applied_to(newest).timing.margin;
  }
  const Duration patience = draw_duration(random_, milliseconds(20), milliseconds(8'000));
  event.deadline = leader->clock().now().promise + patience;
  const std::uint64_t number = ++last_number_;
  asked_[number] = {leader, numbers_.asked(event.edit)};
  clocks_();
  ++counts_.asked;
  world_.used(FaultClass::settings);
  event.done = [this, number](const replica::SettingsResult& result) { answered(number, result); };
  leader->post(std::move(event));
}

// In production the leader asks the members for their builds before it proposes settings.
bool SettingsChanges::all_can_read() const {
  const UpgradePlan& upgrade = world_.plan.upgrade;
  if (upgrade.earlier_percent == 0) return true;
  return world_.queue.now() >= TrueInstant() + upgrade.over &&
         std::none_of(nodes_.begin(), nodes_.end(),
                      [](const SimNode* node) { return node->runs_earlier(); });
}

bool SettingsChanges::suits_all(const raft::GroupSettings& wanted) const {
  return std::all_of(nodes_.begin(), nodes_.end(), [&wanted](const SimNode* node) {
    lease::Timing timing = wanted.timing;
    timing.max_clock_drift_ppm =
        std::max(timing.max_clock_drift_ppm, node->timing().max_clock_drift_ppm);
    return timing.validate().ok();
  });
}

// One in twelve may be impossible, and is refused.
raft::SettingsEdit SettingsChanges::draw_edit(const raft::GroupSettings& newest) {
  const std::uint64_t parts = 1 + random_.below(3);
  const bool any = random_.chance(1, 12);
  // Not every node could hold a lease.
  const bool any_node = random_.chance(1, 6);
  raft::SettingsEdit edit;
  for (std::uint64_t i = 0; i < parts; ++i) {
    raft::SettingsEdit more = edit;
    draw_one(more, newest);
    const raft::GroupSettings wanted = more.applied_to(newest);
    const bool valid = wanted.timing.validate().ok();
    if (suits_all(wanted) || (any && !valid) || (any_node && valid)) edit = more;
  }
  if (!newest.lease_reads && random_.chance(1, 2)) edit.lease_reads = true;
  return edit;
}

void SettingsChanges::draw_one(raft::SettingsEdit& edit, const raft::GroupSettings& newest) {
  const lease::Timing first = first_settings(world_.plan).timing;
  const Duration lease = edit.applied_to(newest).timing.lease;
  const std::uint64_t what = random_.below(16);
  const std::int64_t percent[] = {50, 60, 75, 100, 125, 150, 100 * kElectionGrowth};
  const std::int64_t scale = percent[random_.below(7)];
  const std::int64_t steps[] = {10, 30, 300, 100 * kLeaseGrowth};
  const std::int64_t step = steps[random_.below(4)];
  const std::int64_t drift[] = {0, 10, 50, 100, 150, 200};
  const std::int64_t drift_scale = drift[random_.below(6)];
  const std::int64_t margin_ms[] = {0, 1, 5, 10, 20, 50};
  const Duration margin = milliseconds(margin_ms[random_.below(6)]);
  const std::int64_t heartbeats = random_.between(5, 21);
  const std::int64_t round_trip_ms = random_.between(10, 61);
  if (what < 2) {
    // By many times, with what has to be shorter than a short lease.
    edit.lease = std::clamp(first.lease * step / 100, kSettingsLeaseMin, kSettingsLeaseMax);
    edit.heartbeat = *edit.lease / heartbeats;
    edit.max_round_trip = std::min(Duration(milliseconds(round_trip_ms)), *edit.lease / 10);
  } else if (what < 5) {
    edit.lease = std::min(first.lease * scale / 100, kSettingsLeaseMax);
  } else if (what < 10) {
    // Clocks that break the bound break every bound.
    if (!world_.plan.drift_unbounded) {
      edit.max_clock_drift_ppm = first.max_clock_drift_ppm * drift_scale / 100;
    }
  } else if (what < 12) {
    edit.margin = margin;
  } else if (what == 12) {
    edit.heartbeat = lease / heartbeats;
  } else if (what == 13) {
    edit.election_timeout = first.election_timeout * scale / 100;
  } else if (what == 14) {
    edit.max_round_trip = milliseconds(round_trip_ms);
  } else {
    edit.lease_reads = false;
  }
}

void SettingsChanges::answered(std::uint64_t number, const replica::SettingsResult& result) {
  const auto found = asked_.find(number);
  if (found == asked_.end()) return world_.fail("completion", "a change was answered twice");
  const std::uint64_t request = found->second.request;
  asked_.erase(found);
  switch (result.status) {
    case replica::GroupCallStatus::done: ++counts_.done; break;
    case replica::GroupCallStatus::refused: ++counts_.refused; break;
    case replica::GroupCallStatus::failed:
    case replica::GroupCallStatus::unknown: numbers_.lost(request); return;
  }
  numbers_.closed(request);
  if (!world_.healed) clocks_();
}

void SettingsChanges::node_died(const SimNode& node) {
  for (auto at = asked_.begin(); at != asked_.end();) {
    const auto next = std::next(at);
    if (at->second.node == &node) {
      numbers_.lost(at->second.request);
      asked_.erase(at);
    }
    at = next;
  }
}

}  // namespace leasehold::sim
