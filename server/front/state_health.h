// What a node knows about its own state, for refusals, status and metrics.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

namespace leasehold::server {

/// Any thread.
struct StateHealth {
  /// Why the state is not served; empty: it is.
  std::string refused() const {
    if (!refuses.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex);
    return why;
  }
  void set_refused(const std::string& reason) {
    const std::lock_guard lock(mutex);
    why = reason;
    refuses.store(!reason.empty(), std::memory_order_release);
  }
  /// What is wrong without being this node's own fault; empty: nothing.
  std::string warning() const {
    const std::lock_guard lock(mutex);
    return warned;
  }
  void set_warning(const std::string& text) {
    const std::lock_guard lock(mutex);
    warned = text;
  }

  std::atomic<bool> refuses{false};
  std::atomic<std::uint64_t> compared_index{0};  ///< the newest one that was judged
  std::atomic<std::uint64_t> compares{0};
  std::atomic<std::uint64_t> scrubs{0};        ///< complete ones
  std::atomic<std::uint64_t> scrub_errors{0};  ///< damages that were found
  std::atomic<std::uint64_t> scrubbed_bytes{0};
  std::atomic<std::int64_t> last_scrub{0};  ///< seconds since 1970; 0: none yet
  mutable std::mutex mutex;
  std::string why;     ///< with mutex
  std::string warned;  ///< with mutex
};

}  // namespace leasehold::server
