// The two clocks of one machine as functions of true time.
#pragma once

#include <leasehold/raft/types.h>
#include <leasehold/story/core_watch.h>

#include <chrono>
#include <cstdint>
#include <utility>

namespace leasehold::story {

/// Piecewise linear: each clock runs at its own rate, which may change. While the machine is
/// suspended the promise clock stands still and the holder's runs on (lease/README.md, "What is
/// assumed"). Integers only; a reading is rounded down to the nanosecond. True time never goes
/// back.
class TwoClocks : public TrueTime {
 public:
  explicit TwoClocks(Duration holder_origin = std::chrono::hours(1),
                     Duration promise_origin = std::chrono::hours(1), Duration now = Duration(0));

  raft::Now at(Duration now) const { return {holder_at(now), promise_at(now)}; }
  raft::HolderInstant holder_at(Duration now) const;
  raft::PromiseInstant promise_at(Duration now) const;
  /// The first true nanosecond at which a clock shows the instant or showed it, at its present rate
  /// and as if nothing slept.
  Duration of(raft::HolderInstant local) const override;
  Duration of(raft::PromiseInstant local) const override;

  /// Deviations in parts per million, each above -1 000 000.
  void set_rates(Duration now, std::int64_t holder_ppm, std::int64_t promise_ppm);
  /// Of the holder's clock and of the promise clock, as set_rates() takes them.
  std::pair<std::int64_t, std::int64_t> rates() const;
  void suspend(Duration now);
  void resume(Duration now);
  bool suspended() const { return suspended_; }
  /// A reboot: both clocks start again, at `origin`.
  void reboot(Duration now, Duration origin);

 private:
  struct Line {
    Duration local;  ///< at the last change of any rate
    std::int64_t rate_ppm = 1'000'000;
  };
  Duration read(const Line& line, Duration now) const;
  Duration when(const Line& line, Duration instant) const;
  /// Starts new lines at the present readings.
  void rebase(Duration now);

  Duration changed_;
  Line holder_;
  Line promise_;
  bool suspended_ = false;
};

}  // namespace leasehold::story
