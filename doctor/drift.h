// How fast another machine's clock runs, judged from outside by questions and answers.
#pragma once

#include <leasehold/lease/clock.h>
#include <leasehold/lease/instant.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace leasehold::doctor {

/// One question to a node: it read its clocks between our two readings.
struct ClockSample {
  lease::Now asked;
  lease::Now answered;
  lease::Duration holder{0};   ///< what the clock of its leases showed
  lease::Duration promise{0};  ///< what the clock of its promises showed

  lease::Duration round_trip() const { return answered.promise - asked.promise; }
};

/// The rate of the other clock against ours, in parts per million: it lies within `error_ppm` of
/// `ppm`. Above 0: it is faster.
struct Drift {
  double ppm = 0;
  double error_ppm = 0;
  /// The least that it surely is, without its sign; 0: it may be none.
  double surely_ppm() const;
};

/// Compares a sample of the first third with one of the last: of each the one with the shortest
/// round trip, since the other clock was read at some instant of that. None: fewer than two
/// samples, or no time between them.
std::optional<Drift> promise_drift(const std::vector<ClockSample>& samples);
/// The same of the clocks that count time in suspend.
std::optional<Drift> holder_drift(const std::vector<ClockSample>& samples);
/// How long the other machine was suspended between the first sample and the last: by so much its
/// two clocks moved apart.
lease::Duration suspended(const std::vector<ClockSample>& samples);

/// The round trip that a `percent` of the samples did not exceed; zero without samples.
lease::Duration round_trip(const std::vector<ClockSample>& samples, int percent);

}  // namespace leasehold::doctor
