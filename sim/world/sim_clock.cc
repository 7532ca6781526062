#include <leasehold/sim/world/sim_clock.h>

#include <algorithm>

namespace leasehold::sim {

SimClock::SimClock(const EventQueue& queue, Duration holder_origin, Duration promise_origin)
    : queue_(queue), clocks_(holder_origin, promise_origin, queue.now().since_origin()) {}

lease::Now SimClock::now() const {
  return clocks_.at(true_now());
}

lease::HolderInstant SimClock::holder_now() const {
  return clocks_.holder_at(true_now());
}

void SimClock::set_rates(std::int64_t holder_ppm, std::int64_t promise_ppm) {
  clocks_.set_rates(true_now(), holder_ppm, promise_ppm);
}

void SimClock::suspend() {
  clocks_.suspend(true_now());
}

void SimClock::resume() {
  clocks_.resume(true_now());
}

void SimClock::reboot(Duration origin) {
  clocks_.reboot(true_now(), origin);
}

TrueInstant SimClock::when(lease::PromiseInstant local) const {
  if (clocks_.suspended() || local == lease::PromiseInstant::never()) return TrueInstant::never();
  if (local <= clocks_.promise_at(true_now())) return queue_.now();
  return TrueInstant(clocks_.of(local));
}

}  // namespace leasehold::sim
