#include <leasehold/base/assert.h>
#include <leasehold/lease/rounds.h>

namespace leasehold::lease {

Round RoundRing::begin(HolderInstant now, Duration duration) {
  LEASEHOLD_ASSERT(duration.count() > 0);
  newest_ = newest_.next();
  starts_[newest_.value() % kCapacity] = {newest_, now, duration};
  LEASEHOLD_ASSERT(newest_ > Round(0));
  LEASEHOLD_ASSERT(starts_[newest_.value() % kCapacity].round == newest_);
  return newest_;
}

std::optional<RoundStart> RoundRing::find(Round round) const {
  if (round.value() == 0 || round > newest_) return std::nullopt;
  const RoundStart& start = starts_[round.value() % kCapacity];
  if (start.round != round) return std::nullopt;
  LEASEHOLD_ASSERT(start.duration.count() > 0);
  return start;
}

}  // namespace leasehold::lease
