// In the variant of the lab in which a visitor may break the inequalities, this file takes the
// place of lease/timing_check.cc: another core is compiled. Nothing that serves clients has it.
#include <leasehold/base/scaled.h>
#include <leasehold/lease/timing.h>

#include <chrono>
#include <string>
#include <utility>

namespace leasehold::lease {
namespace {

/// As in the room's own check.
constexpr Duration kTimeMax = std::chrono::hours(1);

}  // namespace

// What is left is what the core's arithmetic needs.
Result<void> Timing::validate() const {
  const auto wrong = [](std::string what) {
    return Error{ErrorCode::invalid_argument, std::move(what)};
  };
  for (const Duration span : {lease, heartbeat, max_round_trip, election_timeout}) {
    if (span <= Duration(0) || span > kTimeMax) {
      return wrong("even unchecked, each time is above zero and at most one hour");
    }
  }
  if (margin > kTimeMax || max_clock_drift_ppm < 0 || max_clock_drift_ppm > 500'000) {
    return wrong("even unchecked, rho is 0 to 500000 ppm, and sigma at most one hour");
  }
  const std::int64_t sure =
      lease.count() * (kMillion - max_clock_drift_ppm) / (kMillion + max_clock_drift_ppm);
  const std::int64_t least = (sure - lease.count()) / 1'000'000;
  if (Duration(sure) - margin > lease) {
    return wrong(
        "even unchecked, a holder counts on the whole promise and not more: with this D "
        "and this rho, sigma is at least " +
        std::to_string(least) + " ms");
  }
  return {};
}

}  // namespace leasehold::lease
