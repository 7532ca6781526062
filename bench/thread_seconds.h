// The processor time of a thread: a busy machine does not count.
#pragma once

#include <ctime>

namespace leasehold::bench {

/// What this thread has used of a processor.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace leasehold::bench
