#include <leasehold/base/assert.h>
#include <leasehold/lease/rounds.h>

#include <algorithm>

namespace leasehold::lease {

void RoundStart::limit(const Timing& timing) {
  // A voter that heard of a larger drift has not promised longer for its own clock.
  // Test: RoundRing.ALargerMarginDoesNotTakeASmallerDriftForGranted.
  drift_ppm = std::max(drift_ppm, timing.max_clock_drift_ppm);
  Timing numbers = timing;
  numbers.max_clock_drift_ppm = drift_ppm;
  usable = std::min(usable, numbers.usable(duration));
  LEASEHOLD_ASSERT(usable <= duration);
}

Round RoundRing::begin(HolderInstant now, const Timing& timing) {
  LEASEHOLD_ASSERT(timing.lease.count() > 0);
  newest_ = newest_.next();
  const RoundStart start{newest_, now, timing.lease, timing.max_clock_drift_ppm,
                         timing.usable(timing.lease)};
  if (starts_.size() < kCapacity) {
    starts_.push_back(start);
  } else {
    starts_[place_of(newest_)] = start;
  }
  LEASEHOLD_ASSERT(newest_ > Round(0));
  LEASEHOLD_ASSERT(starts_[place_of(newest_)].round == newest_);
  return newest_;
}

void RoundRing::limit(const Timing& timing) {
  for (RoundStart& start : starts_) start.limit(timing);
}

void RoundRing::void_all() {
  for (RoundStart& start : starts_) start.usable = Duration(0);
}

const RoundStart* RoundRing::find(Round round) const {
  if (round.value() == 0 || round > newest_) return nullptr;
  const RoundStart& start = starts_[place_of(round)];
  if (start.round != round) return nullptr;
  LEASEHOLD_ASSERT(start.duration.count() > 0);
  return &start;
}

}  // namespace leasehold::lease
