// How long the syncs of a log take.
#pragma once

#include <leasehold/lease/clock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace leasehold::storage {

/// A histogram of times, which any thread fills and any thread reads.
class TimeCounts {
 public:
  /// Each bucket has the times up to its bound; one more has what is above all of them.
  static constexpr std::array<std::chrono::microseconds, 14> kBounds{
      std::chrono::microseconds(100),     std::chrono::microseconds(250),
      std::chrono::microseconds(500),     std::chrono::microseconds(1000),
      std::chrono::microseconds(2500),    std::chrono::microseconds(5000),
      std::chrono::microseconds(10000),   std::chrono::microseconds(25000),
      std::chrono::microseconds(50000),   std::chrono::microseconds(100000),
      std::chrono::microseconds(250000),  std::chrono::microseconds(500000),
      std::chrono::microseconds(1000000), std::chrono::microseconds(2500000)};
  static constexpr std::size_t kBuckets = kBounds.size() + 1;

  void note(lease::Duration took) {
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), took);
    counts_[static_cast<std::size_t>(bound - kBounds.begin())].fetch_add(1,
                                                                         std::memory_order_relaxed);
    sum_.fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
  }

  std::uint64_t count(std::size_t bucket) const {
    return counts_[bucket].load(std::memory_order_relaxed);
  }
  std::chrono::nanoseconds sum() const {
    return std::chrono::nanoseconds(sum_.load(std::memory_order_relaxed));
  }

 private:
  std::array<std::atomic<std::uint64_t>, kBuckets> counts_{};
  std::atomic<std::uint64_t> sum_{0};  ///< nanoseconds
};

/// Of syncs: the thread that syncs looks twice at the clock for each.
class SyncTimes : public TimeCounts {
 public:
  /// `clock` outlives it.
  explicit SyncTimes(const lease::Clock& clock) : clock_(clock) {}

  /// A sync that begins.
  class Begun {
   public:
    /// `times` may be null: then nobody looks at a clock.
    explicit Begun(SyncTimes* times) : times_(times) {
      if (times_ != nullptr) at_ = times_->clock_.now().promise;
    }
    /// It has ended well.
    void note() const {
      if (times_ != nullptr) times_->note(times_->clock_.now().promise - at_);
    }

   private:
    SyncTimes* times_;
    lease::PromiseInstant at_;
  };

 private:
  const lease::Clock& clock_;
};

}  // namespace leasehold::storage
