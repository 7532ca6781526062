// The memory that all client connections share: unfinished requests, commands under way, and
// replies that are not sent yet.
#pragma once

#include <atomic>
#include <cstddef>

namespace leasehold::server {

/// A budget. What a connection holds up to kFreeBytes is not counted: so clients with small
/// requests are served even while others have used up all of it. A connection that holds more than
/// kLargeBytes gets nothing from the last quarter, which is left to requests of a middle size. The
/// connection that asks for more than there is gets the refusal: only its own thread can close it,
/// and all that is counted is of bounded size per connection. Any thread.
class ClientMemory {
 public:
  static constexpr std::size_t kFreeBytes = std::size_t{32} << 10U;
  static constexpr std::size_t kLargeBytes = std::size_t{1} << 20U;

  /// What one connection has of the budget. Its owner's thread only.
  class Share {
    friend class ClientMemory;
    std::size_t bytes_ = 0;
  };

  explicit ClientMemory(std::size_t max) : max_(max) {}

  /// The connection holds, or is about to hold, `held` bytes. False: the budget has no room for
  /// that; nothing has changed. A share can always become smaller.
  bool set(Share& share, std::size_t held) {
    const std::size_t wanted = held > kFreeBytes ? held - kFreeBytes : 0;
    if (wanted <= share.bytes_) {
      used_.fetch_sub(share.bytes_ - wanted, std::memory_order_relaxed);
      share.bytes_ = wanted;
      return true;
    }
    const std::size_t more = wanted - share.bytes_;
    const std::size_t limit = held > kLargeBytes ? max_ - max_ / 4 : max_;
    if (used_.fetch_add(more, std::memory_order_relaxed) + more > limit) {
      used_.fetch_sub(more, std::memory_order_relaxed);
      return false;
    }
    share.bytes_ = wanted;
    return true;
  }
  void give_back(Share& share) { static_cast<void>(set(share, 0)); }

  std::size_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  std::size_t max_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace leasehold::server
