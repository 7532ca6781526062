// The two clocks of one simulated machine, as functions of true time.
#pragma once

#include <leasehold/lease/clock.h>
#include <leasehold/sim/event_queue.h>

#include <cstdint>

namespace leasehold::sim {

/// Piecewise linear: each clock runs at its own rate, which may change. In suspend the promise
/// clock stands still and the holder's runs on. Integers only; a reading is rounded down to the
/// nanosecond.
class SimClock : public lease::Clock {
 public:
  SimClock(const EventQueue& queue, Duration holder_origin, Duration promise_origin);

  lease::Now now() const override;
  lease::HolderInstant holder_now() const override;

  /// Deviations from true time in parts per million, each above -1 000 000.
  void set_rates(std::int64_t holder_ppm, std::int64_t promise_ppm);
  void suspend();
  void resume();
  /// A reboot: both clocks start again, at `origin`.
  void reboot(Duration origin);
  /// The first true instant at which the promise clock shows `local` or more, at the present rate.
  /// Never, while suspended.
  TrueInstant when(lease::PromiseInstant local) const;
  /// When a clock shows or showed `local`, at its present rate and as if nothing slept: for people.
  TrueInstant estimate(lease::HolderInstant local) const;
  TrueInstant estimate(lease::PromiseInstant local) const;

 private:
  struct Line {
    Duration local{0};  ///< at the last change of the rate
    std::int64_t rate_ppm = 1'000'000;
  };
  Duration read(const Line& line) const;
  TrueInstant estimate(const Line& line, Duration local) const;
  /// Starts new lines at the present readings.
  void rebase();

  const EventQueue& queue_;
  TrueInstant changed_;
  Line holder_;
  Line promise_;
  bool suspended_ = false;
};

}  // namespace leasehold::sim
