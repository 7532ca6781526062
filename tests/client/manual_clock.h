// A clock that stands still until the test moves it.
#pragma once

#include <leasehold/lease/clock.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace leasehold::client {

class ManualClock final : public lease::Clock {
 public:
  lease::Now now() const override { return {holder_now(), lease::PromiseInstant(read())}; }
  lease::HolderInstant holder_now() const override { return lease::HolderInstant(read()); }
  void advance(lease::Duration by) { at_ += by.count(); }
  /// Right behind the next look at it.
  void advance_behind_next_read(lease::Duration by) { behind_next_read_ = by.count(); }

 private:
  lease::Duration read() const {
    const std::int64_t at = at_;
    at_ += behind_next_read_.exchange(0);
    return lease::Duration(at);
  }

  mutable std::atomic<std::int64_t> behind_next_read_{0};
  mutable std::atomic<std::int64_t> at_{lease::Duration(std::chrono::seconds(1000)).count()};
};

}  // namespace leasehold::client
