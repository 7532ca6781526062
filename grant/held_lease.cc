#include <leasehold/grant/held_lease.h>

#include <algorithm>

namespace leasehold::grant {

HeldLease::HeldLease(const HolderTiming& timing, lease::Duration ttl, lease::HolderInstant sent,
                     std::uint64_t seed, lease::Duration grace)
    : timing_(timing),
      random_(seed),
      deadline_(sent + timing.usable(ttl)),
      grace_(grace),
      hope_(hope(sent, ttl)) {
  plan(sent, timing_.renewal);
}

void HeldLease::renewed(lease::HolderInstant sent, lease::Duration ttl, lease::HolderInstant now) {
  if (is_over(look(now))) return;
  in_doubt_ = false;
  deadline_ = std::max(deadline_, sent + timing_.usable(ttl));
  hope_ = std::max(hope_, hope(sent, ttl));
  // Otherwise the answer took so long that none of its time is left: send another request.
  if (now < deadline_) state_ = State::held;
  plan(sent, timing_.renewal);
}

void HeldLease::failed(lease::HolderInstant now) {
  in_doubt_ = true;
  // Holders must not all retry at once when the store has failed.
  plan(now, std::min(timing_.renewal, timing_.max_round_trip));
}

void HeldLease::lost() {
  if (!is_over(state_)) state_ = State::lost;
}

void HeldLease::released() {
  if (!is_over(state_)) state_ = State::released;
}

void HeldLease::forgo_grace() {
  grace_ = lease::Duration(0);
  if (state_ == State::in_grace) state_ = State::expired;
}

HeldLease::State HeldLease::look(lease::HolderInstant now) {
  if (!is_over(state_) && now >= deadline_) {
    const bool hope = grace_ > lease::Duration(0) && now < hope_;
    state_ = hope ? State::in_grace : State::expired;
  }
  return state_;
}

lease::HolderInstant HeldLease::hope(lease::HolderInstant sent, lease::Duration ttl) const {
  return sent + timing_.longest(ttl + grace_);
}

void HeldLease::plan(lease::HolderInstant from, lease::Duration longest) {
  const std::int64_t quarter = longest.count() / 4;
  const std::int64_t earlier = random_.between(0, quarter + 1);
  next_renewal_ = from + (longest - lease::Duration(earlier));
}

}  // namespace leasehold::grant
