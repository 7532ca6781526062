// Preloaded into a node: its clocks stand still as those of a virtual machine that its host stops.
// LEASEHOLD_CLOCK_LOST names a file of 8 bytes or more: the nanoseconds that CLOCK_BOOTTIME and
// CLOCK_MONOTONIC have lost so far, in the machine's order of bytes. Whoever stops the node with
// SIGSTOP adds the time that it stood still before it lets it go on.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

using ClockGettime = int (*)(clockid_t, timespec*);
constexpr std::int64_t kSecond = 1'000'000'000;

ClockGettime the_real_one() {
  // The way of POSIX to make a function of what dlsym returns.
  return reinterpret_cast<ClockGettime>(::dlsym(RTLD_NEXT, "clock_gettime"));
}

const volatile std::int64_t* map_lost() {
  const char* const path = std::getenv("LEASEHOLD_CLOCK_LOST");
  const int file = path != nullptr ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
  void* const page =
      file < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) {
    std::fputs("clock_shim: LEASEHOLD_CLOCK_LOST names no file that can be mapped\n", stderr);
    std::abort();
  }
  ::close(file);
  return static_cast<const volatile std::int64_t*>(page);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t id,
                                                                    timespec* time) noexcept {
  static const ClockGettime real = the_real_one();
  static const volatile std::int64_t* const lost = map_lost();
  const int done = real(id, time);
  if (done != 0 || (id != CLOCK_BOOTTIME && id != CLOCK_MONOTONIC)) return done;
  const std::int64_t at = time->tv_sec * kSecond + time->tv_nsec - *lost;
  time->tv_sec = at / kSecond;
  time->tv_nsec = at % kSecond;
  return done;
}
