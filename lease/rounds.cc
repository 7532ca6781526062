#include <leasehold/base/assert.h>
#include <leasehold/lease/rounds.h>

#include <algorithm>

namespace leasehold::lease {

void RoundStart::limit(const Timing& timing) {
  usable = std::min(usable, timing.usable(duration));
  LEASEHOLD_ASSERT(usable <= duration);
}

Round RoundRing::begin(HolderInstant now, const Timing& timing) {
  LEASEHOLD_ASSERT(timing.lease.count() > 0);
  // A later round began no earlier: quorum values rest on it.
  LEASEHOLD_ASSERT(newest_ == Round(0) || now >= find(newest_)->began);
  newest_ = newest_.next();
  starts_[newest_.value() % kCapacity] = {newest_, now, timing.lease, timing.max_clock_drift_ppm,
                                          timing.usable(timing.lease)};
  LEASEHOLD_ASSERT(newest_ > Round(0));
  LEASEHOLD_ASSERT(starts_[newest_.value() % kCapacity].round == newest_);
  return newest_;
}

void RoundRing::limit(const Timing& timing) {
  for (RoundStart& start : starts_) {
    if (start.round > Round(0)) start.limit(timing);
  }
}

const RoundStart* RoundRing::find(Round round) const {
  if (round.value() == 0 || round > newest_) return nullptr;
  const RoundStart& start = starts_[round.value() % kCapacity];
  if (start.round != round) return nullptr;
  LEASEHOLD_ASSERT(start.duration.count() > 0);
  return &start;
}

}  // namespace leasehold::lease
