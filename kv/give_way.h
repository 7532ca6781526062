// For loops that may be long, on threads that nobody waits for in particular.
#pragma once

#include <thread>

namespace leasehold::kv {

/// Lets other threads have the processor now and then. What the operating system grants a thread
/// at a time (a millisecond or more) is longer than whoever answers one client may wait.
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
