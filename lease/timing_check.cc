// The one check of the numbers, in a file of its own: the lab compiles a core without it.
#include <leasehold/base/assert.h>
#include <leasehold/base/scaled.h>
#include <leasehold/lease/timing.h>

#include <chrono>
#include <limits>
#include <string>

namespace leasehold::lease {
namespace {

constexpr std::int64_t kDriftMaxPpm = 500'000;
constexpr Duration kLongest = std::chrono::hours(1);

// The product in Timing::usable() must fit 64 bits.
static_assert(kLongest.count() <= std::numeric_limits<std::int64_t>::max() / kMillion);

std::string milliseconds(Duration d) {
  const std::int64_t microseconds = d.count() / 1000;
  std::string text = std::to_string(microseconds / 1000);
  if (microseconds % 1000 != 0) {
    std::string fraction = std::to_string(microseconds % 1000 + (microseconds < 0 ? -1000 : 1000));
    text += "." + fraction.substr(fraction.size() - 3);
  }
  return text + " ms";
}

Error invalid(std::string message) {
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

Result<void> check_range(const char* name, Duration value, Duration lowest) {
  if (value < lowest || value > kLongest) {
    return invalid(std::string(name) + " is " + milliseconds(value) + "; it must be " +
                   (lowest.count() > 0 ? "above zero" : "zero or more") + " and at most one hour");
  }
  return {};
}

}  // namespace

Result<void> Timing::validate() const {
  constexpr Duration kPositive{1};
  if (auto r = check_range("lease", lease, kPositive); !r) return r;
  if (auto r = check_range("heartbeat", heartbeat, kPositive); !r) return r;
  if (auto r = check_range("election timeout", election_timeout, kPositive); !r) return r;
  if (auto r = check_range("max round trip", max_round_trip, kPositive); !r) return r;
  if (auto r = check_range("margin", margin, Duration(0)); !r) return r;
  if (max_clock_drift_ppm < 0 || max_clock_drift_ppm > kDriftMaxPpm) {
    return invalid("max clock drift is " + std::to_string(max_clock_drift_ppm) +
                   " ppm; it must be 0 to 500000 (0.5)");
  }
  const Duration u = usable(lease);
  LEASEHOLD_ASSERT(u < lease || margin.count() == 0);
  const std::string drift = std::to_string(max_clock_drift_ppm) + " ppm";
  if (u.count() <= 0) {
    return invalid("unsafe lease: D * (1 - rho) / (1 + rho) - sigma must be above zero, but is " +
                   milliseconds(u) + " with lease D = " + milliseconds(lease) +
                   ", drift rho = " + drift + ", margin sigma = " + milliseconds(margin) +
                   "; raise the lease or lower the margin");
  }
  const Duration needed = heartbeat + max_round_trip + heartbeat;
  if (needed >= u) {
    return invalid(
        "unavailable lease: heartbeat + max round trip + one retry = " + milliseconds(heartbeat) +
        " + " + milliseconds(max_round_trip) + " + " + milliseconds(heartbeat) + " = " +
        milliseconds(needed) + " must be below the usable lease U = " + milliseconds(u) +
        "; raise the lease or lower the heartbeat");
  }
  if (heartbeat * 3 > u) {
    return invalid("unavailable lease: the heartbeat of " + milliseconds(heartbeat) +
                   " must be at most a third of the usable lease U = " + milliseconds(u) +
                   "; raise the lease or lower the heartbeat");
  }
  return {};
}

}  // namespace leasehold::lease
