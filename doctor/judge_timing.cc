// The numbers of the lease against what was measured. lease::Timing knows the inequalities.
#include <leasehold/doctor/judge.h>
#include <leasehold/doctor/make_finding.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/settings_words.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace leasehold::doctor {
namespace {

/// Candidates that wait for less than this many round trips ask at the same time.
constexpr int kRoundTripsPerElection = 10;

Finding judge_renewal(const lease::Timing& timing, const Facts& facts) {
  const char* const kName = "timing";
  const lease::Duration seen = renewal_seen(facts);
  lease::Timing measured = timing;
  measured.max_round_trip = std::max(timing.max_round_trip, seen);
  const std::string found =
      seen.count() == 0 ? "no renewal was measured: neither a peer nor a sync"
                        : fmt::format("a renewal takes {} here (p99 of the network and of a sync)",
                                      short_text(seen));
  const std::string number = server::format_duration(rounded_up(2 * seen));
  if (const auto valid = measured.validate(); !valid) {
    return fault(kName, fmt::format("{}: {}", found, valid.error().message),
                 "raise --lease (leasehold settings set lease=...); leasehold advise says to what");
  }
  if (seen > timing.max_round_trip) {
    return warning(kName,
                   fmt::format("{}, longer than --max-round-trip {}", found,
                               server::format_duration(timing.max_round_trip)),
                   fmt::format("--max-round-trip {} (leasehold settings set max-round-trip={})",
                               number, number));
  }
  measured.max_round_trip += facts.pause.longest;
  if (const auto valid = measured.validate(); !valid) {
    return warning(kName,
                   fmt::format("with the longest pause, {}, no time is left for a retry: {}",
                               short_text(facts.pause.longest), valid.error().message),
                   "raise --lease, or see what pauses this process (pauses)");
  }
  return fine(kName, fmt::format("{}; {}", found, server::usable_text(timing)));
}

Finding judge_election(const lease::Timing& timing, const Facts& facts) {
  const char* const kName = "election-timeout";
  const lease::Duration needed = kRoundTripsPerElection * network_seen(facts);
  const std::string found =
      fmt::format("the election timeout is {}", server::format_duration(timing.election_timeout));
  if (timing.election_timeout >= needed) return fine(kName, found);
  const std::string number = server::format_duration(rounded_up(needed));
  return warning(kName,
                 fmt::format("{}, less than {} round trips: votes will be split", found,
                             kRoundTripsPerElection),
                 fmt::format("--election-timeout {} (leasehold settings set election-timeout={})",
                             number, number));
}

}  // namespace

lease::Duration network_seen(const Facts& facts) {
  lease::Duration longest{0};
  for (const ServerFacts& server : facts.servers) {
    longest = std::max(longest, round_trip(server.samples, 99));
  }
  return longest;
}

lease::Timing timing_in_force(const server::ServeSettings& settings, const Facts& facts) {
  for (const ServerFacts& server : facts.servers) {
    if (server.timing) return *server.timing;
  }
  return settings.node.timing;
}

lease::Duration renewal_seen(const Facts& facts) {
  const bool disk = facts.disk.sync && facts.disk.sync->syncs > 0;
  return network_seen(facts) + (disk ? facts.disk.sync->p99 : lease::Duration(0));
}

Findings judge_timing(const server::ServeSettings& settings, const Facts& facts) {
  const lease::Timing timing = timing_in_force(settings, facts);
  return {judge_renewal(timing, facts), judge_election(timing, facts)};
}

Findings judge(const server::ServeSettings& settings, const Facts& facts) {
  Findings all;
  const auto add = [&all](const Findings& some) {
    all.insert(all.end(), some.begin(), some.end());
  };
  add(judge_clock(settings, facts));
  add(judge_drift(settings, facts));
  add(judge_disk(settings, facts));
  add(judge_timing(settings, facts));
  add(judge_limits(settings, facts.machine));
  add(judge_folder(settings, facts));
  add(judge_security(settings, facts));
  add(judge_addresses(facts));
  add(judge_servers(settings, facts));
  return all;
}

}  // namespace leasehold::doctor
