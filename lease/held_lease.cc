#include <leasehold/lease/held_lease.h>

#include <algorithm>

namespace leasehold::lease {

HeldLease::HeldLease(const HolderTiming& timing, Duration ttl, HolderInstant sent,
                     std::uint64_t seed)
    : timing_(timing), random_(seed), deadline_(sent + timing.usable(ttl)) {
  plan(sent, timing_.renewal);
}

void HeldLease::renewed(HolderInstant sent, Duration ttl, HolderInstant now) {
  if (look(now) != State::held) return;
  in_doubt_ = false;
  deadline_ = std::max(deadline_, sent + timing_.usable(ttl));
  plan(sent, timing_.renewal);
}

void HeldLease::failed(HolderInstant now) {
  in_doubt_ = true;
  // Not all at once, when it was the store that failed.
  plan(now, std::min(timing_.renewal, timing_.max_round_trip));
}

void HeldLease::lost() {
  if (state_ == State::held) state_ = State::lost;
}

void HeldLease::released() {
  if (state_ == State::held) state_ = State::released;
}

HeldLease::State HeldLease::look(HolderInstant now) {
  if (state_ == State::held && now >= deadline_) state_ = State::expired;
  return state_;
}

void HeldLease::plan(HolderInstant from, Duration longest) {
  const std::int64_t quarter = longest.count() / 4;
  const std::int64_t earlier = random_.between(0, quarter + 1);
  next_renewal_ = from + (longest - Duration(earlier));
}

}  // namespace leasehold::lease
