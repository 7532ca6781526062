#include <leasehold/base/scaled.h>
#include <leasehold/grant/holder_timing.h>
#include <leasehold/grant/lease_table.h>

#include <algorithm>
#include <string>
#include <utility>

namespace leasehold::grant {
namespace {

constexpr std::int64_t kDriftMaxPpm = 500'000;
constexpr lease::Duration kMillisecond = std::chrono::milliseconds(1);
/// The least that a fitted set allows, even if every measurement is zero.
constexpr lease::Duration kRoundTripMin = std::chrono::milliseconds(10);

std::string milliseconds(lease::Duration duration) {
  const std::int64_t us = duration.count() / 1000;
  const std::string fraction = std::to_string(1000 + (us < 0 ? -us : us) % 1000).substr(1);
  const std::string sign = us < 0 && us > -1000 ? "-" : "";
  return sign + std::to_string(us / 1000) + (fraction == "000" ? "" : "." + fraction) + " ms";
}

Error invalid(std::string message) {
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

Result<void> check_drift(std::int64_t ppm) {
  if (ppm >= 0 && ppm <= kDriftMaxPpm) return {};
  return invalid("max clock drift is " + std::to_string(ppm) + " ppm; it must be 0 to 500000");
}

}  // namespace

lease::Duration HolderTiming::usable(lease::Duration granted) const {
  return lease::Duration(scaled(granted.count(), kMillion - max_clock_drift_ppm,
                                kMillion + max_clock_drift_ppm)) -
         margin;
}

lease::Duration HolderTiming::longest(lease::Duration granted) const {
  return lease::Duration(
      scaled(granted.count(), kMillion + max_clock_drift_ppm, kMillion - max_clock_drift_ppm));
}

Result<void> HolderTiming::validate() const {
  if (ttl < kLeaseTtlMin || ttl > kLeaseTtlMax || ttl % kMillisecond != lease::Duration(0)) {
    return invalid("the time to live is " + milliseconds(ttl) +
                   "; it must be whole milliseconds, from 1 ms to ten years");
  }
  if (auto drift = check_drift(max_clock_drift_ppm); !drift) return drift;
  if (renewal <= lease::Duration(0) || max_round_trip <= lease::Duration(0) ||
      margin < lease::Duration(0)) {
    return invalid("the renewal interval is " + milliseconds(renewal) + ", the round trip " +
                   milliseconds(max_round_trip) + " and the margin " + milliseconds(margin) +
                   "; the first two must be above zero, the margin zero or more");
  }
  const lease::Duration u = usable();
  if (u <= lease::Duration(0)) {
    return invalid(
        "unsafe lease: U = TTL * (1 - rho) / (1 + rho) - sigma must be above zero, but is " +
        milliseconds(u) + " with TTL = " + milliseconds(ttl) + ", drift rho = " +
        std::to_string(max_clock_drift_ppm) + " ppm, margin sigma = " + milliseconds(margin) +
        "; raise the time to live or lower the margin");
  }
  // Written so that no sum overflows: each term is below U where the sum matters.
  if (renewal > u / 3 || max_round_trip >= u - 2 * renewal) {
    return invalid("unavailable lease: R + rtt + R = " + milliseconds(renewal) + " + " +
                   milliseconds(max_round_trip) + " + " + milliseconds(renewal) +
                   " must be below U = " + milliseconds(u) + ", and R at most U / 3 = " +
                   milliseconds(u / 3) + "; raise the time to live or renew more often");
  }
  return {};
}

Result<HolderTiming> HolderTiming::fit(const Measured& measured) {
  if (auto drift = check_drift(measured.max_clock_drift_ppm); !drift) return drift.error();
  const lease::Duration most = kLeaseTtlMax / 16;
  for (const lease::Duration given :
       {measured.round_trip, measured.worst_pause, measured.stopping}) {
    if (given >= lease::Duration(0) && given <= most) continue;
    return invalid("a measured time is " + milliseconds(given) +
                   "; it must be zero or more, and at most " + milliseconds(most));
  }
  HolderTiming timing;
  timing.max_clock_drift_ppm = measured.max_clock_drift_ppm;
  timing.max_round_trip = std::max(measured.round_trip, kRoundTripMin);
  timing.margin = measured.stopping;
  // The pause begins just before a renewal would have been sent, the first one behind it fails, and
  // the next one may wait for as long: R + pause + 3 rtt has to be below U. Where a third of U is
  // pause + 2 rtt, it is.
  const lease::Duration third = measured.worst_pause + 2 * timing.max_round_trip + kMillisecond;
  timing.renewal = third;
  const std::int64_t up = kMillion + timing.max_clock_drift_ppm;
  const std::int64_t down = kMillion - timing.max_clock_drift_ppm;
  // Up to the next millisecond: the remainder corrects a division that was rounded down.
  const lease::Duration exact(scaled((3 * third + timing.margin).count(), up, down));
  timing.ttl = (exact / kMillisecond + 1) * kMillisecond;
  if (timing.usable() < 3 * third) timing.ttl += kMillisecond;
  if (auto valid = timing.validate(); !valid) return valid.error();
  return timing;
}

}  // namespace leasehold::grant
