#include <leasehold/base/assert.h>
#include <leasehold/base/scaled.h>
#include <leasehold/lease/timing.h>

namespace leasehold::lease {

Duration Timing::usable(Duration promised) const {
  const std::int64_t scaled =
      promised.count() * (kMillion - max_clock_drift_ppm) / (kMillion + max_clock_drift_ppm);
  const Duration usable = Duration(scaled) - margin;
  LEASEHOLD_ASSERT(usable <= promised);
  return usable;
}

// The true time that a clock which is fast by its bound takes for the result is at least what a
// clock which is fast by `drift_ppm` takes for `promised`:
//   result / (1 + own) >= promised / (1 + drift).
Duration Timing::stretched(Duration promised, std::int64_t drift_ppm) const {
  LEASEHOLD_ASSERT(drift_ppm >= 0);
  if (max_clock_drift_ppm <= drift_ppm) return promised;
  return Duration(
      scaled_up(promised.count(), kMillion + max_clock_drift_ppm, kMillion + drift_ppm));
}

}  // namespace leasehold::lease
