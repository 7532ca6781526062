// How old a node's state is: what a read that need not be linearizable asks.
#pragma once

#include <leasehold/lease/instant.h>

#include <atomic>
#include <cstdint>

namespace leasehold::replica {

/// The instant since which this node's state is known to be whole: everything that was acknowledged
/// before it, at any node, is applied here. It is the beginning of the newest linearizable read
/// that this node has completed, on its own holder clock, which counts suspend. Any thread.
class FreshSince {
 public:
  /// A read that began at `instant` was justified, and its index is applied. `instant` was sampled
  /// before the index was: what was committed between the two is within the index.
  void raise(lease::HolderInstant instant) {
    const std::int64_t wanted = instant.since_origin().count();
    std::int64_t seen = since_.load(std::memory_order_relaxed);
    while (seen < wanted && !since_.compare_exchange_weak(seen, wanted, std::memory_order_release,
                                                          std::memory_order_relaxed)) {
    }
  }
  /// By how much this machine's clock may be wrong: the larger of what the node was started with
  /// and the group's bound. Until it is known nothing is fresh.
  void set_drift_ppm(std::int64_t drift_ppm) {
    drift_ppm_.store(drift_ppm, std::memory_order_relaxed);
  }
  /// Whether the state at `now`, which the caller has sampled and not kept, is at most `bound` old.
  /// The clock may run slow, so the bound is shortened by its drift: it holds in true time.
  bool covers(lease::HolderInstant now, lease::Duration bound) const {
    const std::int64_t since = since_.load(std::memory_order_acquire);
    if (since == kNever || bound <= lease::Duration(0)) return false;
    const std::int64_t drift = drift_ppm_.load(std::memory_order_relaxed);
    const std::int64_t usable = bound.count() - bound.count() / kMillion * drift - drift;
    return now.since_origin().count() - since <= usable;
  }

 private:
  static constexpr std::int64_t kMillion = 1'000'000;
  static constexpr std::int64_t kNever = INT64_MIN;
  std::atomic<std::int64_t> since_{kNever};
  std::atomic<std::int64_t> drift_ppm_{kMillion};
};

}  // namespace leasehold::replica
