// The clocks of the simulator.
#pragma once

#include <leasehold/lease/clock.h>
#include <leasehold/sim/world/event_queue.h>
#include <leasehold/story/two_clocks.h>

#include <cstdint>
#include <utility>

namespace leasehold::sim {

/// The two clocks of one simulated machine, read at the queue's true time.
class SimClock : public lease::Clock {
 public:
  SimClock(const EventQueue& queue, Duration holder_origin, Duration promise_origin);

  lease::Now now() const override;
  lease::HolderInstant holder_now() const override;

  /// Deviations from true time in parts per million, each above -1 000 000.
  void set_rates(std::int64_t holder_ppm, std::int64_t promise_ppm);
  std::pair<std::int64_t, std::int64_t> rates() const { return clocks_.rates(); }
  void suspend();
  void resume();
  /// A reboot: both clocks start again, at `origin`.
  void reboot(Duration origin);
  /// The first true instant at which the promise clock shows `local` or more, at the present rate;
  /// now, if it does. Never, while suspended.
  TrueInstant when(lease::PromiseInstant local) const;
  const story::TrueTime& true_time() const { return clocks_; }

 private:
  Duration true_now() const { return queue_.now().since_origin(); }

  const EventQueue& queue_;
  story::TwoClocks clocks_;
};

}  // namespace leasehold::sim
