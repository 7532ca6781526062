#include <leasehold/base/assert.h>
#include <leasehold/base/scaled.h>
#include <leasehold/sim/sim_clock.h>

namespace leasehold::sim {

constexpr std::int64_t kMillion = 1'000'000;

SimClock::SimClock(const EventQueue& queue, Duration holder_origin, Duration promise_origin)
    : queue_(queue), changed_(queue.now()) {
  holder_.local = holder_origin;
  promise_.local = promise_origin;
}

lease::Now SimClock::now() const {
  const Duration promise = suspended_ ? promise_.local : read(promise_);
  return {holder_now(), lease::PromiseInstant(promise)};
}

lease::HolderInstant SimClock::holder_now() const {
  return lease::HolderInstant(read(holder_));
}

Duration SimClock::read(const Line& line) const {
  const std::int64_t elapsed = (queue_.now() - changed_).count();
  return line.local + Duration(scaled(elapsed, line.rate_ppm, kMillion));
}

void SimClock::rebase() {
  const lease::Now reading = now();
  holder_.local = reading.holder.since_origin();
  promise_.local = reading.promise.since_origin();
  changed_ = queue_.now();
}

void SimClock::set_rates(std::int64_t holder_ppm, std::int64_t promise_ppm) {
  LEASEHOLD_ASSERT(holder_ppm > -kMillion);
  LEASEHOLD_ASSERT(promise_ppm > -kMillion);
  rebase();
  holder_.rate_ppm = kMillion + holder_ppm;
  promise_.rate_ppm = kMillion + promise_ppm;
}

void SimClock::suspend() {
  rebase();
  suspended_ = true;
}

void SimClock::resume() {
  rebase();
  suspended_ = false;
}

void SimClock::reboot(Duration origin) {
  rebase();
  holder_.local = origin;
  promise_.local = origin;
}

TrueInstant SimClock::when(lease::PromiseInstant local) const {
  if (suspended_ || local == lease::PromiseInstant::never()) return TrueInstant::never();
  const Duration ahead = local.since_origin() - promise_.local;
  if (local == lease::PromiseInstant::earliest() || ahead.count() <= 0) return changed_;
  return changed_ + Duration(scaled_up(ahead.count(), kMillion, promise_.rate_ppm));
}

TrueInstant SimClock::estimate(const Line& line, Duration local) const {
  return changed_ + Duration(scaled((local - line.local).count(), kMillion, line.rate_ppm));
}

TrueInstant SimClock::estimate(lease::HolderInstant local) const {
  return estimate(holder_, local.since_origin());
}

TrueInstant SimClock::estimate(lease::PromiseInstant local) const {
  return estimate(promise_, local.since_origin());
}

}  // namespace leasehold::sim
