#include <leasehold/base/assert.h>
#include <leasehold/sim/plan/drawing.h>

#include <algorithm>
#include <chrono>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

}  // namespace

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

void draw_timings(const SimOptions& options, Plan& plan) {
  Random random = stream(plan.seed, "timing");
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
    const std::int64_t tenths = random.between(10, 20);
    node.timing = base;
    if (differ) node.timing.lease = base.lease * tenths / 10;
    LEASEHOLD_ASSERT(node.timing.validate().ok());
  }
}

void draw_transfers(Plan& plan) {
  Random random = stream(plan.seed, "hand-overs");
  if (!random.chance(1, 2)) return;
  plan.enabled.add(FaultClass::transfer);
  const std::int64_t interval_ms[] = {200, 700, 2'000};
  plan.transfer_interval = milliseconds(interval_ms[random.below(3)]);
}

void draw_deputies(Plan& plan) {
  Random random = stream(plan.seed, "deputies");
  const std::uint64_t percent[] = {0, 50, 100, 100};
  const std::int64_t delay_ms[] = {1, 10, 150, 3'000};
  const std::uint64_t loss[] = {0, 0, 30};
  const std::uint64_t repeat[] = {0, 30, 80};
  plan.deputies.percent = percent[random.below(4)];
  plan.deputies.delay_max = milliseconds(delay_ms[random.below(4)]);
  plan.deputies.loss_percent = loss[random.below(3)];
  plan.deputies.repeat_percent = repeat[random.below(3)];
}

void draw_beats(const SimOptions& options, Plan& plan) {
  Random random = stream(plan.seed, "beats");
  const bool shared = random.chance(1, 3);
  // What is lost is sent again with a heartbeat. In a long life there is less patience for that.
  const std::uint64_t idle[] = {0, 50, options.long_life ? 50U : 95U};
  const std::uint64_t idle_percent = idle[random.below(3)];
  const std::int64_t interval_s[] = {0, 5, 30};
  const std::int64_t silence_ms[] = {300, 2'000, 6'000};
  const std::int64_t interval = interval_s[random.below(3)] * (options.long_life ? 120 : 1);
  const Duration silence_max = milliseconds(silence_ms[random.below(3)]);
  if (!shared || plan.upgrade.earlier_percent > 0) return;
  plan.beats = {shared, 0, idle_percent, std::chrono::seconds(interval), silence_max};
  // Clocks keep the bounds of the first group's settings, which may become wider.
  if (plan.settings.change_interval > Duration{0} || plan.drift_unbounded) return;
  if (options.long_life || plan.settings.other_drift_percent > 0) return;
  plan.beats.side_groups = stream(plan.seed, "side groups").below(4);
}

void draw_member_changes(Plan& plan) {
  plan.founders = plan.nodes.size();
  Random random = stream(plan.seed, "members");
  // The script of a duel relies on which nodes vote.
  if (plan.duel || !random.chance(1, 3)) return;
  plan.enabled.add(FaultClass::membership);
  const std::int64_t interval_ms[] = {150, 500, 1'500};
  plan.member_change_interval = milliseconds(interval_ms[random.below(3)]);
  const std::uint64_t joiners = 1 + random.below(2);
  // A client that asks an outsider waits in vain, and a group of few voters soon has no leader.
  plan.workload.clients += 12;
  plan.workload.think_max = std::min(plan.workload.think_max, Duration(milliseconds(400)));
  for (std::uint64_t i = 0; i < joiners; ++i) {
    const NodePlan like = plan.nodes[static_cast<std::size_t>(random.below(plan.founders))];
    plan.nodes.push_back(like);
  }
}

void draw_witnesses(Plan& plan) {
  Random random = stream(plan.seed, "witnesses");
  // The script of a duel relies on which nodes may lead.
  if (plan.duel || !random.chance(1, 4)) return;
  const std::size_t most = random.chance(1, 8) ? plan.founders - 1 : plan.founders / 2;
  const std::size_t wanted = 1 + static_cast<std::size_t>(random.below(most));
  for (std::size_t i = 0; i < wanted; ++i) {
    plan.nodes[static_cast<std::size_t>(random.below(plan.founders))].witness = true;
  }
  for (std::size_t i = plan.founders; i < plan.nodes.size(); ++i) {
    plan.nodes[i].witness = random.chance(1, 2);
  }
  // A client that asks a witness waits in vain.
  plan.workload.clients += 12;
  plan.workload.think_max = std::min(plan.workload.think_max, Duration(milliseconds(200)));
}

}  // namespace leasehold::sim
