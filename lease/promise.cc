#include <leasehold/base/assert.h>
#include <leasehold/lease/promise.h>

namespace leasehold::lease {

VoterPromise VoterPromise::restarted(Duration remembered, Duration binding, PromiseInstant now) {
  LEASEHOLD_ASSERT(remembered.count() >= 0 && binding >= remembered);
  VoterPromise promise;
  promise.remembered_ = remembered;
  if (remembered.count() > 0) promise.until_ = now + binding;
  LEASEHOLD_ASSERT(promise.remembered() == remembered);
  return promise;
}

void VoterPromise::renew(Duration duration, PromiseInstant now) {
  LEASEHOLD_ASSERT(duration.count() > 0);
  const PromiseInstant until = now + duration;
  // A smaller duration must reach what is already promised before it may be the one that a restart
  // remembers.
  if (duration > remembered_ || until >= until_) remembered_ = duration;
  if (until > until_) until_ = until;
  LEASEHOLD_ASSERT(until_ >= until);
  LEASEHOLD_ASSERT(remembered_.count() > 0);
}

void VoterPromise::replace(Duration duration, PromiseInstant now) {
  LEASEHOLD_ASSERT(duration.count() > 0);
  until_ = now + duration;
  remembered_ = duration;
  LEASEHOLD_ASSERT(live(now));
}

void VoterPromise::drop() {
  *this = VoterPromise();
  LEASEHOLD_ASSERT(until_ == PromiseInstant::earliest());
  LEASEHOLD_ASSERT(remembered_.count() == 0);
}

}  // namespace leasehold::lease
