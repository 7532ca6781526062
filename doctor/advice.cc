#include <leasehold/base/scaled.h>
#include <leasehold/doctor/advice.h>
#include <leasehold/doctor/judge.h>
#include <leasehold/doctor/make_finding.h>
#include <leasehold/raft/settings.h>
#include <leasehold/server/front/settings_words.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace leasehold::doctor {
namespace {

using std::chrono::milliseconds;

/// What a round trip in a data centre takes; for a group that does not run yet.
constexpr lease::Duration kNetworkAssumed = milliseconds(1);
/// Below these, numbers cost messages and gain nothing that people notice.
constexpr lease::Duration kRoundTripLeast = milliseconds(10);
constexpr lease::Duration kElectionLeast = milliseconds(100);
constexpr lease::Duration kMarginLeast = milliseconds(10);
constexpr std::int64_t kDriftLeast = 100'000;
constexpr std::int64_t kDriftMost = 500'000;

/// The worst that any clock surely differs from this machine's.
double drift_seen(const Facts& facts) {
  double worst = std::abs(facts.clock.slewed_ppm);
  for (const ServerFacts& server : facts.servers) {
    for (const auto& drift : {promise_drift(server.samples), holder_drift(server.samples)}) {
      if (drift) worst = std::max(worst, drift->surely_ppm());
    }
  }
  return worst;
}

/// What the numbers are made of.
struct Seen {
  bool network_measured = false;
  lease::Duration network{0};  ///< p99
  lease::Duration sync{0};     ///< p99
  lease::Duration longest_sync{0};
  lease::Duration pause{0};
  double drift_ppm = 0;
};

Seen look(const Facts& facts) {
  Seen seen;
  seen.network = network_seen(facts);
  seen.network_measured = seen.network > lease::Duration(0);
  if (!seen.network_measured) seen.network = kNetworkAssumed;
  if (facts.disk.sync && facts.disk.sync->syncs > 0) {
    seen.sync = facts.disk.sync->p99;
    seen.longest_sync = facts.disk.sync->longest;
  }
  seen.pause = facts.pause.longest;
  seen.drift_ppm = drift_seen(facts);
  return seen;
}

lease::Timing timing_for(const Seen& seen) {
  lease::Timing timing;
  timing.max_round_trip = rounded_up(std::max(kRoundTripLeast, 2 * (seen.network + seen.sync)));
  timing.heartbeat = 2 * timing.max_round_trip;
  timing.max_clock_drift_ppm =
      std::clamp(static_cast<std::int64_t>(std::ceil(2 * seen.drift_ppm)), kDriftLeast, kDriftMost);
  // Twice what the inequalities ask for: two renewals may be lost, and a pause come beside.
  const lease::Duration usable =
      2 *
      std::max(3 * timing.heartbeat, 2 * timing.heartbeat + timing.max_round_trip + 2 * seen.pause);
  timing.margin = std::max(kMarginLeast, rounded_up(usable / 100));
  timing.lease = rounded_up(lease::Duration(scaled_up((usable + timing.margin).count(),
                                                      kMillion + timing.max_clock_drift_ppm,
                                                      kMillion - timing.max_clock_drift_ppm)));
  timing.election_timeout = rounded_up(
      std::max({kElectionLeast, 3 * seen.longest_sync, 10 * seen.network, 2 * timing.heartbeat}));
  return timing;
}

std::string network_text(const Seen& seen) {
  return seen.network_measured
             ? fmt::format("round trip (p99 {})", short_text(seen.network))
             : fmt::format("round trip ({}, assumed: name running nodes by --servers)",
                           short_text(seen.network));
}

std::string why(const std::string& name, const Seen& seen, const lease::Timing& timing) {
  if (name == "lease") {
    return fmt::format(
        "twice what three heartbeats, a renewal and the longest pause ({}) need of "
        "it: {}",
        short_text(seen.pause), server::usable_text(timing));
  }
  if (name == "heartbeat")
    return "two of the longest round trips, so that one ends before the next";
  if (name == "max-clock-drift") {
    return fmt::format(
        "clocks differed by {:.0f} ppm at least; a time daemon may turn one by 8.3 %",
        seen.drift_ppm);
  }
  if (name == "max-round-trip") {
    return fmt::format("twice a {} with a sync (p99 {})", network_text(seen),
                       short_text(seen.sync));
  }
  if (name == "margin") return "a hundredth of the usable lease, and 10 ms at least";
  return fmt::format(
      "the largest of two heartbeats, three of the longest sync ({}) and ten of the {}",
      short_text(seen.longest_sync), network_text(seen));
}

}  // namespace

Result<Advice> advise(const Facts& facts) {
  const Seen seen = look(facts);
  Advice advice;
  advice.timing = timing_for(seen);
  if (const auto valid = advice.timing.validate(); !valid) {
    return Error{valid.error().code,
                 fmt::format("what was measured here allows no lease ({}): leasehold doctor says "
                             "what is wrong",
                             valid.error().message)};
  }
  raft::GroupSettings settings;
  settings.timing = advice.timing;
  for (const server::SettingWord& word : server::settings_words(settings)) {
    if (word.name == "lease-reads") continue;
    advice.numbers.push_back({word.name, word.value, why(word.name, seen, advice.timing)});
  }
  return advice;
}

}  // namespace leasehold::doctor
