// For long loops on threads whose work is not urgent.
#pragma once

#include <thread>

namespace leasehold::kv {

/// Yields the processor to other threads now and then. The time slice of the operating system (a
/// millisecond or more) is longer than a thread that answers a client may wait.
class GiveWay {
 public:
  /// After each step of the loop, which takes about a microsecond.
  void step() {
    if (++steps_ % kSteps == 0) std::this_thread::yield();
  }

 private:
  static constexpr unsigned kSteps = 32;
  unsigned steps_ = 0;
};

}  // namespace leasehold::kv
