// From a seed that finds something to a short run that finds the same.
#pragma once

#include <leasehold/sim/world/options.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace leasehold::sim {

/// The result of one run.
struct Finding {
  std::string oracle;
  TrueInstant at;
  /// Faults that were triggered until then.
  std::uint64_t triggered = 0;
};

/// Runs the seed with something left out. None: it found nothing.
using Attempt = std::function<std::optional<Finding>(const Reduction&)>;

/// Of a run that died. It counts as one with fewer faults.
inline constexpr std::uint64_t kFaultsUnknown = 500;

struct Shrunk {
  Reduction reduction;
  /// Of the run that is left: by the same oracle.
  Finding finding;
  std::uint64_t attempts = 0;
};

/// Triggered faults that are left.
std::uint64_t faults_left(const Shrunk& shrunk);

/// Leaves out what the finding does not need: fault classes, kinds of clients, clients, and of
/// the faults that are left every single one. What is left out changes the rest of a run, so a
/// finding may need a few variants to show again, and the result is small, not smallest.
/// `on_progress` is called after each attempt with the best so far. At most `attempts_max`.
Shrunk shrink(const Reduction& from, const Finding& found, std::uint64_t attempts_max,
              const Attempt& attempt, const std::function<void(const Shrunk&)>& on_progress);

}  // namespace leasehold::sim
