#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/holder_flags.h>
#include <leasehold/cli/leader.h>
#include <leasehold/server/front/duration.h>

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace leasehold::cli {

const char* const kHolderUsage =
    "  --servers HOST:PORT,...        client addresses of the nodes\n"
    "  --holder TEXT                  who holds it, as others see it (default: the host);\n"
    "                                 the number of the process is added\n"
    "  --ttl DURATION                 how long it outlives its holder (default 10s)\n"
    "  --margin DURATION              how long its holder may take to stop (default 1s)\n"
    "  --renew DURATION               how often to renew (default: a third of what can be used)\n"
    "  --max-round-trip DURATION      the longest that a healthy renewal takes (default 500ms)\n"
    "  --max-clock-drift FRACTION     how wrong the clocks may go (default 0.1)\n";

namespace {

using lease::Duration;

/// Nobody stops in less.
constexpr Duration kMarginMin = std::chrono::milliseconds(10);
/// "For ever", in durations that can still be added to an instant.
constexpr Duration kForEver = std::chrono::hours(24 * 365);

Error wrong(std::string text) {
  return {ErrorCode::invalid_argument, std::move(text)};
}

std::string host_name() {
  char host[200] = "localhost";
  gethostname(host, sizeof host - 1);
  return host;
}

/// What no other holder has, though two may give the same text: the process, and when it began by
/// the clock that counts. A grant whose answer was lost is recognised by it.
std::string own_name(const std::string& text, const lease::Clock& clock) {
  return text + ":" + std::to_string(getpid()) + ":" +
         std::to_string(clock.holder_now().since_origin().count());
}

Result<grant::HolderTiming> timing_of(const ClientFlags& flags) {
  grant::HolderTiming timing;
  const auto ttl = flags.duration("--ttl", timing.ttl);
  if (!ttl) return ttl.error();
  const auto margin = flags.duration("--margin", timing.margin);
  if (!margin) return margin.error();
  if (margin.value() < kMarginMin)
    return wrong("--margin: who holds it needs 10ms to stop, or more");
  const auto trip = flags.duration("--max-round-trip", timing.max_round_trip);
  if (!trip) return trip.error();
  timing.ttl = ttl.value();
  timing.margin = margin.value();
  timing.max_round_trip = trip.value();
  if (flags.has("--max-clock-drift")) {
    const auto ppm = server::parse_scaled(flags.text("--max-clock-drift"), 1'000'000);
    // What is larger might not fit the sums below.
    if (!ppm || *ppm > 500'000) {
      return wrong("--max-clock-drift: expected a fraction like 0.1, at most 0.5");
    }
    timing.max_clock_drift_ppm = *ppm;
  }
  const auto renewal = flags.duration("--renew", std::max(timing.usable() / 3, Duration(1)));
  if (!renewal) return renewal.error();
  timing.renewal = renewal.value();
  if (auto valid = timing.validate(); !valid) return valid.error();
  return timing;
}

}  // namespace

const std::vector<std::string_view>& holder_flag_names() {
  static const std::vector<std::string_view> names = {
      "--servers", "--wait",  "--holder",         "--ttl",
      "--margin",  "--renew", "--max-round-trip", "--max-clock-drift"};
  return names;
}

Result<HolderFlags> holder_flags(const ClientFlags& flags, const lease::Clock& clock) {
  HolderFlags out;
  out.servers = split_servers(flags.text("--servers"));
  if (out.servers.empty()) return wrong("--servers is missing");
  out.options.holder =
      own_name(flags.has("--holder") ? flags.text("--holder") : host_name(), clock);
  const auto timing = timing_of(flags);
  if (!timing) return timing.error();
  out.options.timing = timing.value();
  const auto wait = flags.duration("--wait", kForEver);
  if (!wait) return wait.error();
  out.options.wait = wait.value();
  out.options.seed =
      std::hash<std::string>()(out.options.holder) ^ std::hash<std::string>()(host_name());
  return out;
}

Result<grant::LeaseTerms::Milliseconds> term_of(const ClientFlags& flags, std::string_view flag,
                                                Duration most) {
  using Milliseconds = grant::LeaseTerms::Milliseconds;
  const auto term = flags.duration(flag, Duration(0));
  if (!term) return term.error();
  if (term.value() > most || term.value() % Duration(Milliseconds(1)) != Duration(0)) {
    return wrong(std::string(flag) + ": expected whole milliseconds, at most " +
                 server::format_duration(most));
  }
  return std::chrono::duration_cast<Milliseconds>(term.value());
}

int status_of_refusal(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument: return kUsage;
    case ErrorCode::in_use: return kNo;
    default: return kNotExecuted;
  }
}

}  // namespace leasehold::cli
