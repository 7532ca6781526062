#include <leasehold/lease/rounds.h>

namespace leasehold::lease {

Round RoundRing::begin(HolderInstant now, Duration duration) {
  newest_ = newest_.next();
  starts_[newest_.value() % kCapacity] = {newest_, now, duration};
  return newest_;
}

std::optional<RoundStart> RoundRing::find(Round round) const {
  if (round.value() == 0 || round > newest_) return std::nullopt;
  const RoundStart& start = starts_[round.value() % kCapacity];
  if (start.round != round) return std::nullopt;
  return start;
}

}  // namespace leasehold::lease
