// The clocks, and what stops them or this process.
#include <leasehold/doctor/judge.h>
#include <leasehold/doctor/make_finding.h>
#include <leasehold/server/front/duration.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

namespace leasehold::doctor {
namespace {

/// Read without a system call, and in tens of nanoseconds.
constexpr std::array<std::string_view, 6> kFastSources = {
    "tsc",      "kvm-clock",        "hyperv_clocksource_tsc_page", "arch_sys_counter",
    "timebase", "riscv_clocksource"};
constexpr lease::Duration kSuspendSeen = std::chrono::milliseconds(100);
constexpr std::uint64_t kStolenPerMilleMax = 50;
/// Crystals are off by some tens of parts in a million; one that is off by this is turned, or
/// broken.
constexpr double kOddPpm = 1000;

Finding judge_source(const MachineFacts& facts) {
  const char* const kName = "clock-source";
  const std::string& source = facts.clock_source;
  if (source.empty()) return skipped(kName, "the kernel does not show its clock source");
  if (std::find(kFastSources.begin(), kFastSources.end(), source) != kFastSources.end()) {
    return fine(kName, fmt::format("the kernel's clock is {}", source));
  }
  const bool tsc = (" " + facts.clock_sources + " ").find(" tsc ") != std::string::npos;
  return warning(
      kName,
      fmt::format(
          "the kernel's clock is {}: each reading takes long, and every lease read reads it",
          source),
      tsc ? "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, and "
            "clocksource=tsc on the kernel's command line"
          : "dmesg | grep -i clocksource says why the kernel does not offer tsc; a virtual machine "
            "needs kvm-clock or a constant tsc of its host");
}

Finding judge_sync(const server::ServeSettings& settings, const ClockFacts& facts) {
  const char* const kName = "clock-sync";
  if (!facts.synchronised) return skipped(kName, "the kernel does not say how it keeps the time");
  const auto bound = static_cast<double>(settings.node.timing.max_clock_drift_ppm);
  if (std::abs(facts.slewed_ppm) > bound) {
    return fault(kName,
                 fmt::format("the kernel turns the clock by {:.0f} ppm now, and --max-clock-drift "
                             "allows {:.0f}",
                             facts.slewed_ppm, bound),
                 "lower the largest slew of the time daemon (maxslewrate of chrony), or raise "
                 "--max-clock-drift on all nodes");
  }
  if (!*facts.synchronised) {
    return warning(kName,
                   "nobody keeps the time of day of this machine: certificates, instants of keys "
                   "and log lines go by it (leases do not)",
                   "run chronyd, or timedatectl set-ntp true");
  }
  return fine(kName, fmt::format("the time of day is synchronised, corrected by {:.1f} ppm",
                                 facts.slewed_ppm));
}

Finding judge_suspend(const ClockFacts& facts) {
  const char* const kName = "suspend";
  const char* const kCure =
      "switch it off: systemctl mask sleep.target suspend.target hibernate.target";
  if (facts.suspended_now > kSuspendSeen) {
    return fault(
        kName,
        fmt::format("this machine was suspended for {} just now", short_text(facts.suspended_now)),
        kCure);
  }
  if (facts.suspended_before > kSuspendSeen) {
    return warning(kName,
                   fmt::format("this machine was suspended for {} since its boot: a leader that "
                               "sleeps leaves the group without one until its lease is over",
                               short_text(facts.suspended_before)),
                   kCure);
  }
  return fine(kName, "this machine was never suspended since its boot");
}

Finding judge_vm_clock(const server::ServeSettings& settings, const Facts& facts) {
  const char* const kName = "vm-clock";
  const bool off = settings.vm_clock == "off";
  const std::string& problem = facts.clock.vm_clock_problem;
  if (!off && !settings.vm_clock.empty() && !problem.empty()) {
    return fault(kName, fmt::format("serve would not start: {}", problem),
                 "name the device's file by --vm-clock, or leave the flag out");
  }
  if (!off && problem.empty()) return fine(kName, "watched: " + facts.clock.watched);
  if (!facts.machine.virtual_machine) return fine(kName, "this is no virtual machine");
  if (!settings.server.lease_reads) {
    return fine(kName, "a virtual machine without a VM clock, and lease reads are off");
  }
  return warning(
      kName,
      off ? std::string("this is a virtual machine, and --vm-clock is off: a stop by its host is "
                        "not seen, and a lease would outlive it")
          : fmt::format("this is a virtual machine without a VM clock (watched: {}): a stop by its "
                        "host may not be seen, and a lease would outlive it",
                        facts.clock.watched),
      off ? "leave --vm-clock off out"
          : "give it the VM clock device (Linux 6.14), or never pause, move or restore it while it "
            "leads, or --lease-reads off");
}

Finding judge_stolen(const MachineFacts& facts) {
  const char* const kName = "stolen-time";
  if (!facts.stolen_per_mille) return skipped(kName, "the kernel does not say what its host takes");
  const double percent = static_cast<double>(*facts.stolen_per_mille) / 10;
  const std::string found = fmt::format("the host took {:.1f} % of the processors' time", percent);
  if (*facts.stolen_per_mille < kStolenPerMilleMax) return fine(kName, found);
  return warning(kName, found, "give this machine processors of its own, or raise --lease");
}

Finding judge_pauses(const server::ServeSettings& settings, const Facts& facts) {
  const char* const kName = "pauses";
  if (facts.pause.sleeps == 0) return skipped(kName, "nothing was measured");
  const lease::Timing timing = timing_in_force(settings, facts);
  const std::string found =
      fmt::format("the longest pause of a thread within {} was {}", short_text(facts.measured),
                  short_text(facts.pause.longest));
  const char* const kCure =
      "find who takes the processors (top, pidstat -u 1), give the node its own, or raise --lease "
      "and --heartbeat";
  const lease::Duration usable = timing.usable(timing.lease);
  if (facts.pause.longest >= usable) {
    return fault(kName,
                 fmt::format("{}: a leader that pauses so loses its lease, which is good for {}",
                             found, short_text(usable)),
                 kCure);
  }
  if (facts.pause.longest > timing.heartbeat) {
    return warning(kName,
                   fmt::format("{}, longer than the heartbeat of {}", found,
                               server::format_duration(timing.heartbeat)),
                   kCure);
  }
  return fine(kName, found);
}

/// Of the two clocks of that node the one that is surely further off.
std::optional<Drift> worse_drift(const ServerFacts& server) {
  const auto promise = promise_drift(server.samples);
  const auto holder = holder_drift(server.samples);
  if (!promise || !holder) return promise;
  return holder->surely_ppm() > promise->surely_ppm() ? holder : promise;
}

Finding judge_drift_of(const ServerFacts& server, double bound_ppm) {
  const char* const kName = "clock-drift";
  const auto drift = worse_drift(server);
  if (!drift) {
    return skipped(
        kName, fmt::format("{}: {}", server.server,
                           server.clock_problem.empty() ? "no two answers" : server.clock_problem));
  }
  const std::string found = fmt::format(
      "the clock of {} runs {:.0f} ppm {} than this machine's (within {:.0f} ppm)", server.server,
      std::abs(drift->ppm), drift->ppm < 0 ? "slower" : "faster", drift->error_ppm);
  // Two clocks that are both within the bound, one fast and one slow.
  const double rho = bound_ppm / 1e6;
  const double possible = ((1 + rho) / (1 - rho) - 1) * 1e6;
  const char* const kCure =
      "leasehold settings set lease-reads=off until it is repaired; look at the clock source and "
      "the time daemon of both machines, or raise max-clock-drift";
  if (drift->surely_ppm() > possible) {
    return fault(kName,
                 fmt::format("{}: one of the two is outside of --max-clock-drift, {:.0f} ppm, and "
                             "leases are not safe",
                             found, bound_ppm),
                 kCure);
  }
  if (drift->surely_ppm() > std::min(kOddPpm, bound_ppm)) {
    return warning(kName, fmt::format("{}: no healthy clock is so far off", found), kCure);
  }
  if (drift->error_ppm > bound_ppm) {
    return skipped(kName, fmt::format("{}: its answers took too long to tell: --seconds longer",
                                      server.server));
  }
  return fine(kName, found);
}

}  // namespace

Findings judge_clock(const server::ServeSettings& settings, const Facts& facts) {
  return {judge_source(facts.machine), judge_sync(settings, facts.clock),
          judge_suspend(facts.clock),  judge_vm_clock(settings, facts),
          judge_stolen(facts.machine), judge_pauses(settings, facts)};
}

Findings judge_drift(const server::ServeSettings& settings, const Facts& facts) {
  const auto bound = static_cast<double>(timing_in_force(settings, facts).max_clock_drift_ppm);
  Findings all;
  for (const ServerFacts& server : facts.servers) {
    if (!server.problem.empty()) continue;
    all.push_back(judge_drift_of(server, bound));
    const lease::Duration slept = suspended(server.samples);
    if (slept <= kSuspendSeen) continue;
    all.push_back(fault("suspend",
                        fmt::format("the machine of {} was suspended for {} just now",
                                    server.server, short_text(slept)),
                        "on that machine: systemctl mask sleep.target suspend.target"));
  }
  if (facts.servers.empty()) {
    all.push_back(skipped("clock-drift", "no running node was named: --servers HOST:PORT,..."));
  }
  return all;
}

}  // namespace leasehold::doctor
