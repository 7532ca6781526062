// The memory that all client connections share: unfinished requests, commands under way, and
// replies that are not sent yet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace leasehold::server {

/// A budget. What a connection holds up to kFreeBytes is not counted: so clients with small
/// requests are served even while others have used up all of it. A connection that holds more than
/// kLargeBytes gets nothing from the last quarter, which is left to requests of a middle size. The
/// connection that asks for more than there is gets the refusal: only its own thread can close it,
/// and all that is counted is of bounded size per connection. All strangers together, who have not
/// proven a user, get an eighth, and nothing from the last quarter either. Any thread.
class ClientMemory {
 public:
  static constexpr std::size_t kFreeBytes = std::size_t{32} << 10U;
  static constexpr std::size_t kLargeBytes = std::size_t{1} << 20U;

  enum class Holder : std::uint8_t { user, stranger };

  /// What one connection has of the budget. Its owner's thread only.
  class Share {
    friend class ClientMemory;
    std::size_t bytes_ = 0;
    Holder holder_ = Holder::user;
  };

  explicit ClientMemory(std::size_t max) : max_(max) {}

  /// The connection holds, or is about to hold, `held` bytes. False: the budget has no room for
  /// that; nothing has changed. The share of a holder that stays what it is can always become
  /// smaller.
  bool set(Share& share, std::size_t held, Holder holder) {
    const std::size_t wanted = held > kFreeBytes ? held - kFreeBytes : 0;
    if (holder != share.holder_ && !move(share, holder)) return false;
    if (wanted <= share.bytes_) {
      give(share, share.bytes_ - wanted);
      return true;
    }
    const std::size_t more = wanted - share.bytes_;
    const bool last_quarter = holder == Holder::user && held <= kLargeBytes;
    if (!take(used_, more, last_quarter ? max_ : max_ - max_ / 4)) return false;
    if (holder == Holder::stranger && !take(strangers_, more, max_ / 8)) {
      used_.fetch_sub(more, std::memory_order_relaxed);
      return false;
    }
    share.bytes_ = wanted;
    return true;
  }
  void give_back(Share& share) { give(share, share.bytes_); }

  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  std::size_t used_by_strangers() const { return strangers_.load(std::memory_order_relaxed); }

 private:
  static bool take(std::atomic<std::size_t>& used, std::size_t more, std::size_t limit) {
    if (used.fetch_add(more, std::memory_order_relaxed) + more <= limit) return true;
    used.fetch_sub(more, std::memory_order_relaxed);
    return false;
  }
  void give(Share& share, std::size_t bytes) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    if (share.holder_ == Holder::stranger) strangers_.fetch_sub(bytes, std::memory_order_relaxed);
    share.bytes_ -= bytes;
  }
  /// It has logged in, or is a stranger again.
  bool move(Share& share, Holder holder) {
    if (holder == Holder::user) {
      strangers_.fetch_sub(share.bytes_, std::memory_order_relaxed);
    } else if (!take(strangers_, share.bytes_, max_ / 8)) {
      return false;
    }
    share.holder_ = holder;
    return true;
  }

  std::size_t max_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> strangers_{0};  ///< of used_
};

}  // namespace leasehold::server
