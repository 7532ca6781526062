#include <leasehold/base/assert.h>
#include <leasehold/base/scaled.h>
#include <leasehold/story/two_clocks.h>

namespace leasehold::story {

TwoClocks::TwoClocks(Duration holder_origin, Duration promise_origin, Duration now)
    : changed_(now) {
  holder_.local = holder_origin;
  promise_.local = promise_origin;
}

raft::HolderInstant TwoClocks::holder_at(Duration now) const {
  return raft::HolderInstant(read(holder_, now));
}

raft::PromiseInstant TwoClocks::promise_at(Duration now) const {
  return raft::PromiseInstant(suspended_ ? promise_.local : read(promise_, now));
}

Duration TwoClocks::read(const Line& line, Duration now) const {
  return line.local + Duration(scaled((now - changed_).count(), line.rate_ppm, kMillion));
}

Duration TwoClocks::when(const Line& line, Duration instant) const {
  return changed_ + Duration(scaled_up((instant - line.local).count(), kMillion, line.rate_ppm));
}

Duration TwoClocks::of(raft::HolderInstant local) const {
  return when(holder_, local.since_origin());
}

Duration TwoClocks::of(raft::PromiseInstant local) const {
  return when(promise_, local.since_origin());
}

void TwoClocks::rebase(Duration now) {
  const raft::Now reading = at(now);
  holder_.local = reading.holder.since_origin();
  promise_.local = reading.promise.since_origin();
  changed_ = now;
}

void TwoClocks::set_rates(Duration now, std::int64_t holder_ppm, std::int64_t promise_ppm) {
  LEASEHOLD_ASSERT(holder_ppm > -kMillion);
  LEASEHOLD_ASSERT(promise_ppm > -kMillion);
  rebase(now);
  holder_.rate_ppm = kMillion + holder_ppm;
  promise_.rate_ppm = kMillion + promise_ppm;
}

std::pair<std::int64_t, std::int64_t> TwoClocks::rates() const {
  return {holder_.rate_ppm - kMillion, promise_.rate_ppm - kMillion};
}

void TwoClocks::suspend(Duration now) {
  rebase(now);
  suspended_ = true;
}

void TwoClocks::resume(Duration now) {
  rebase(now);
  suspended_ = false;
}

void TwoClocks::reboot(Duration now, Duration origin) {
  rebase(now);
  holder_.local = origin;
  promise_.local = origin;
}

}  // namespace leasehold::story
