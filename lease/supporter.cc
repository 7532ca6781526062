#include <leasehold/base/assert.h>
#include <leasehold/lease/supporter.h>

namespace leasehold::lease {

bool Supporter::acknowledge(const Beats& beats, Beat beat, const Epoch& epoch) {
  if (epoch_ && epoch < *epoch_) return false;
  const bool higher = !epoch_ || epoch > *epoch_;
  if (higher) {
    epoch_ = epoch;
    newest_.reset();
  }
  const RoundStart* const start = beats.find(beat);
  if (start == nullptr || (newest_ && start->round <= newest_->round)) return higher;
  newest_ = *start;
  LEASEHOLD_ASSERT(newest_->round.value() <= beats.newest().value());
  return true;
}

std::optional<RoundStart> Supporter::acknowledged(const Epoch& bound) const {
  if (!epoch_ || bound != *epoch_) return std::nullopt;
  return newest_;
}

}  // namespace leasehold::lease
