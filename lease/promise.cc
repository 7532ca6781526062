#include <leasehold/lease/promise.h>

namespace leasehold::lease {

VoterPromise VoterPromise::restarted(Duration remembered, PromiseInstant now) {
  VoterPromise promise;
  promise.remembered_ = remembered;
  if (remembered.count() > 0) promise.until_ = now + remembered;
  return promise;
}

void VoterPromise::renew(Duration duration, PromiseInstant now) {
  const PromiseInstant until = now + duration;
  // A smaller duration must reach what is already promised before it may be the one that a restart
  // remembers.
  if (duration > remembered_ || until >= until_) remembered_ = duration;
  if (until > until_) until_ = until;
}

void VoterPromise::replace(Duration duration, PromiseInstant now) {
  until_ = now + duration;
  remembered_ = duration;
}

void VoterPromise::drop() {
  *this = VoterPromise();
}

}  // namespace leasehold::lease
