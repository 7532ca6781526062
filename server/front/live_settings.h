// Settings that CONFIG SET changes while the node runs.
#pragma once

#include <leasehold/lease/instant.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace leasehold::server {

/// Those of the start, and then what CONFIG SET says, until the node stops. Any thread.
class LiveSettings {
 public:
  LiveSettings(std::size_t clients_max, lease::Duration idle_timeout,
               lease::Duration slowlog_threshold)
      : clients_max_(clients_max),
        idle_timeout_(idle_timeout.count()),
        slowlog_threshold_(slowlog_threshold.count()) {}

  std::size_t clients_max() const { return clients_max_.load(std::memory_order_relaxed); }
  /// Zero: never.
  lease::Duration idle_timeout() const { return get(idle_timeout_); }
  /// Zero: none is kept.
  lease::Duration slowlog_threshold() const { return get(slowlog_threshold_); }

  void set_clients_max(std::size_t most) { clients_max_.store(most, std::memory_order_relaxed); }
  void set_idle_timeout(lease::Duration time) { set(idle_timeout_, time); }
  void set_slowlog_threshold(lease::Duration time) { set(slowlog_threshold_, time); }

 private:
  using Nanoseconds = std::atomic<std::int64_t>;
  static lease::Duration get(const Nanoseconds& of) {
    return lease::Duration(of.load(std::memory_order_relaxed));
  }
  static void set(Nanoseconds& of, lease::Duration time) {
    of.store(time.count(), std::memory_order_relaxed);
  }

  std::atomic<std::size_t> clients_max_;
  Nanoseconds idle_timeout_;
  Nanoseconds slowlog_threshold_;
};

}  // namespace leasehold::server
