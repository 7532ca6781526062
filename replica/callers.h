// Those who wait for a command that is on its way.
#pragma once

#include <leasehold/replica/driver.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace leasehold::replica {

/// By the sequence under which the command was sent. The driver adds a caller before its command
/// leaves. Then two threads may end the wait: the applier, on its own thread and without the
/// driver's, when the command is applied; and the driver when it gives the command up. The thread
/// that takes the caller out has to call it, so each is called once. Every method may be called
/// from any thread.
///
/// Bounded by Limits::proposals_max.
class Callers {
 public:
  void add(std::uint64_t sequence, ProposeCompletion done) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.emplace(sequence, std::move(done));
  }
  /// Empty: no caller waits under `sequence`, or the other thread has taken it.
  ProposeCompletion take(std::uint64_t sequence) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = waiting_.find(sequence);
    if (found == waiting_.end()) return {};
    ProposeCompletion done = std::move(found->second);
    waiting_.erase(found);
    return done;
  }
  std::size_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waiting_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, ProposeCompletion> waiting_;
};

}  // namespace leasehold::replica
