#include <leasehold/doctor/drift.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace leasehold::doctor {
namespace {

constexpr double kPpm = 1e6;

/// One clock of each side, and how far apart the readings of ours were.
struct Point {
  double ours_ns = 0;  ///< halfway between the two readings
  double theirs_ns = 0;
  double round_trip_ns = 0;
};

Point point_of(const ClockSample& sample, bool holder) {
  const auto asked =
      holder ? sample.asked.holder.since_origin() : sample.asked.promise.since_origin();
  const auto answered =
      holder ? sample.answered.holder.since_origin() : sample.answered.promise.since_origin();
  const auto theirs = holder ? sample.holder : sample.promise;
  const auto trip = static_cast<double>((answered - asked).count());
  return {static_cast<double>(asked.count()) + trip / 2, static_cast<double>(theirs.count()), trip};
}

/// Of those with the shortest round trip the first from `from` on.
template <class Iterator>
const ClockSample& shortest(Iterator from, std::size_t count) {
  return *std::min_element(
      from, from + static_cast<std::ptrdiff_t>(count),
      [](const ClockSample& a, const ClockSample& b) { return a.round_trip() < b.round_trip(); });
}

std::optional<Drift> drift_of(const std::vector<ClockSample>& samples, bool holder) {
  if (samples.size() < 2) return std::nullopt;
  const std::size_t part = std::max<std::size_t>(1, samples.size() / 3);
  const Point first = point_of(shortest(samples.begin(), part), holder);
  const Point last = point_of(shortest(samples.rbegin(), part), holder);
  const double ours = last.ours_ns - first.ours_ns;
  if (ours <= 0) return std::nullopt;
  Drift drift;
  drift.ppm = (last.theirs_ns - first.theirs_ns - ours) / ours * kPpm;
  drift.error_ppm = (first.round_trip_ns + last.round_trip_ns) / 2 / ours * kPpm;
  return drift;
}

}  // namespace

double Drift::surely_ppm() const {
  return std::max(0.0, std::abs(ppm) - error_ppm);
}

std::optional<Drift> promise_drift(const std::vector<ClockSample>& samples) {
  return drift_of(samples, false);
}

std::optional<Drift> holder_drift(const std::vector<ClockSample>& samples) {
  return drift_of(samples, true);
}

lease::Duration suspended(const std::vector<ClockSample>& samples) {
  if (samples.empty()) return lease::Duration(0);
  const ClockSample& first = samples.front();
  const ClockSample& last = samples.back();
  return std::max(lease::Duration(0),
                  (last.holder - first.holder) - (last.promise - first.promise));
}

lease::Duration round_trip(const std::vector<ClockSample>& samples, int percent) {
  if (samples.empty()) return lease::Duration(0);
  std::vector<lease::Duration> trips;
  trips.reserve(samples.size());
  for (const ClockSample& sample : samples) trips.push_back(sample.round_trip());
  std::sort(trips.begin(), trips.end());
  return trips[(trips.size() - 1) * static_cast<std::size_t>(percent) / 100];
}

}  // namespace leasehold::doctor
