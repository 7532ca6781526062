// A histogram of latencies with three significant digits, and its text.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::bench {

/// Counts of non-negative values, usually nanoseconds. A quantile is within 0.1 % of the exact one.
///
/// Values below 2048 have a slot each; above, every doubling is divided into 1024 slots. The memory
/// is fixed (about 270 KiB), record() takes a few nanoseconds and never allocates. Not thread-safe:
/// one histogram a thread, merged afterwards.
class Histogram {
 public:
  /// Larger values are counted as this one, and in clamped(). In nanoseconds: 73 minutes.
  static constexpr std::uint64_t kLargest = (1ULL << 42U) - 1;

  Histogram();

  void record(std::uint64_t value);
  void merge(const Histogram& other);
  void clear();

  std::uint64_t count() const { return count_; }
  std::uint64_t clamped() const { return clamped_; }
  /// Exact. Zero when empty.
  std::uint64_t min() const { return count_ == 0 ? 0 : min_; }
  /// Exact, except that it is at most kLargest. Zero when empty.
  std::uint64_t max() const { return max_; }
  /// Zero when empty.
  double mean() const;
  /// The smallest recorded value that at least `q` of all values do not exceed, up to the width of
  /// its slot. `q` in [0, 1]. Zero when empty.
  std::uint64_t quantile(double q) const;

  /// How often each slot was hit: values below 2048 have a slot each, and the slots of every
  /// doubling above follow, 1024 each. These are the slots of an HdrHistogram with three digits.
  const std::vector<std::uint64_t>& slot_counts() const { return slots_; }

  /// One line of JSON: the summary, and every used slot as [largest value of the slot, count].
  std::string to_json(std::string_view unit = "ns") const;
  /// What to_json() wrote. Errors: malformed, unsupported_format.
  static Result<Histogram> from_json(std::string_view text);

 private:
  std::vector<std::uint64_t> slots_;
  std::uint64_t count_ = 0;
  std::uint64_t clamped_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t min_ = kLargest;
  std::uint64_t max_ = 0;
};

}  // namespace leasehold::bench
