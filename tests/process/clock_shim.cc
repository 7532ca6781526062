// A library to preload before the real program: clocks that drift, jump and stand still on command.
//
//   LD_PRELOAD=clock_shim.so  CLOCK_SHIM_CONTROL=/a/file
//
// The control file is mapped; the test writes to it while the program runs (machine_clock.py knows
// the layout). CLOCK_MONOTONIC and CLOCK_BOOTTIME run at rates of their own and CLOCK_REALTIME
// jumps. Waits use the changed clock: timerfd and the condition variables' steady waits.
// (epoll_wait is left alone: asio waits by a timerfd.)
//
// A process's clocks start at the true time, so a start of the process is a start of the machine's
// clocks too; nothing that is stored has an absolute instant in it.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>

namespace {

/// What the test and this library share, in this order, as native 64-bit numbers.
struct Control {
  // Written by the test; `change` last.
  std::atomic<std::int64_t> monotonic_ppm;  ///< microseconds that CLOCK_MONOTONIC gains each second
  std::atomic<std::int64_t> boottime_ppm;   ///< the same of CLOCK_BOOTTIME
  std::atomic<std::int64_t> slept_ns;       ///< total time that CLOCK_MONOTONIC has stood still
  std::atomic<std::int64_t> lost_ns;        ///< both have, as when the host stops a machine
  std::atomic<std::int64_t> jumped_ns;      ///< how far CLOCK_BOOTTIME is ahead
  std::atomic<std::int64_t> wall_ns;        ///< how far CLOCK_REALTIME is ahead; may be negative
  std::atomic<std::uint64_t> change;        ///< grows with every change of the above
  // Written by the library.
  std::atomic<std::uint64_t> seen;  ///< the newest change that a process goes by
};

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMillion = 1'000'000;

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int real_clock_gettime(clockid_t id, timespec* time) {
  static const auto call = real<decltype(&::clock_gettime)>("clock_gettime");
  return call(id, time);
}

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * kSecond + time.tv_nsec;
}

timespec to_timespec(std::int64_t ns) {
  return {ns / kSecond, ns % kSecond};
}

std::int64_t real_now(clockid_t id) {
  timespec time{};
  if (real_clock_gettime(id, &time) != 0) std::abort();
  return nanoseconds(time);
}

/// One clock as a line through a point: at the true instant `from` it showed `base`.
struct Line {
  std::atomic<std::int64_t> from{0};
  std::atomic<std::int64_t> base{0};
  std::atomic<std::int64_t> ppm{0};

  std::int64_t at(std::int64_t now) const { return base + shows(now - from); }
  /// How far the clock gets in the true time `span`.
  std::int64_t shows(std::int64_t span) const {
    // In two steps: a day times the rate alone would not fit.
    return span + span / kMillion * ppm + span % kMillion * ppm / kMillion;
  }
  /// Continues from the time that it shows now plus `ahead`.
  void bend(std::int64_t now, std::int64_t ahead, std::int64_t new_ppm) {
    const std::int64_t shown = at(now);
    base = shown + ahead;
    from = now;
    ppm = new_ppm;
  }
};

class Clocks {
 public:
  static Clocks& get() {
    // Never destroyed: other threads look at the clock until the very end.
    static Clocks* const clocks = new Clocks;
    return *clocks;
  }

  bool on() const { return control_ != nullptr; }

  /// What the clock shows. The clocks that are not changed here pass through.
  std::int64_t now(clockid_t id) {
    switch (id) {
      case CLOCK_MONOTONIC:
      case CLOCK_MONOTONIC_COARSE: return read(monotonic_);
      case CLOCK_BOOTTIME: return read(boottime_);
      case CLOCK_REALTIME: return real_now(id) + control_->wall_ns;
      default: return real_now(id);
    }
  }

  /// The true time in which `span` passes on CLOCK_MONOTONIC.
  std::int64_t truly(std::int64_t span) const {
    return static_cast<std::int64_t>(static_cast<double>(span) /
                                     (1 + static_cast<double>(monotonic_.ppm) / kMillion));
  }

 private:
  Clocks() {
    const char* path = std::getenv("CLOCK_SHIM_CONTROL");
    if (path == nullptr) return;
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    void* mapped =
        fd < 0 ? MAP_FAILED
               : ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
      std::fprintf(stderr, "clock_shim: cannot map %s\n", path);
      std::abort();
    }
    const std::int64_t now = real_now(CLOCK_MONOTONIC);
    monotonic_.bend(now, now, 0);
    boottime_.bend(now, real_now(CLOCK_BOOTTIME), 0);
    control_ = static_cast<Control*>(mapped);
    slept_ = control_->slept_ns;
    lost_ = control_->lost_ns;
    jumped_ = control_->jumped_ns;
  }

  std::int64_t read(const Line& line) {
    if (control_->change != adopted_) adopt();
    // A reader that took its time by the old line could be ahead of the new one. So it reads again
    // when the line has changed: no two reads, of whatever threads, go back in time.
    for (;;) {
      const std::uint64_t before = version_;
      const std::int64_t shown = line.at(real_now(CLOCK_MONOTONIC));
      if (before % 2 == 0 && version_ == before) return shown;
    }
  }

  void adopt() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t change = control_->change;
    if (change == adopted_) return;
    const std::int64_t slept = control_->slept_ns;
    const std::int64_t lost = control_->lost_ns;
    const std::int64_t jumped = control_->jumped_ns;
    ++version_;
    const std::int64_t now = real_now(CLOCK_MONOTONIC);
    // By the old rate: the clock was not read since the process was stopped.
    monotonic_.bend(now, -monotonic_.shows(slept - slept_ + lost - lost_), control_->monotonic_ppm);
    boottime_.bend(now, jumped - jumped_ - boottime_.shows(lost - lost_), control_->boottime_ppm);
    ++version_;
    slept_ = slept;
    lost_ = lost;
    jumped_ = jumped;
    adopted_ = change;
    control_->seen = change;
  }

  Control* control_ = nullptr;
  std::mutex mutex_;
  std::atomic<std::uint64_t> version_{0};  ///< odd while the lines change
  std::atomic<std::uint64_t> adopted_{0};
  Line monotonic_;
  Line boottime_;
  std::int64_t slept_ = 0;
  std::int64_t lost_ = 0;
  std::int64_t jumped_ = 0;
};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, timespec* time) noexcept {
  Clocks& clocks = Clocks::get();
  if (!clocks.on() || (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_COARSE &&
                       id != CLOCK_BOOTTIME && id != CLOCK_REALTIME)) {
    return real_clock_gettime(id, time);
  }
  *time = to_timespec(clocks.now(id));
  return 0;
}

// asio arms its timer with a span, not with an instant.
__attribute__((visibility("default"))) int timerfd_settime(int fd, int flags,
                                                           const itimerspec* wanted,
                                                           itimerspec* old) noexcept {
  static const auto call = real<decltype(&::timerfd_settime)>("timerfd_settime");
  const std::int64_t span = nanoseconds(wanted->it_value);
  if (!Clocks::get().on() || (flags & TFD_TIMER_ABSTIME) != 0 || span == 0) {
    return call(fd, flags, wanted, old);
  }
  itimerspec changed = *wanted;
  const std::int64_t truly = Clocks::get().truly(span);
  changed.it_value = to_timespec(truly > 0 ? truly : 1);
  return call(fd, flags, &changed, old);
}

__attribute__((visibility("default"))) int pthread_cond_clockwait(pthread_cond_t* condition,
                                                                  pthread_mutex_t* mutex,
                                                                  clockid_t id,
                                                                  const timespec* until) {
  static const auto call = real<decltype(&::pthread_cond_clockwait)>("pthread_cond_clockwait");
  Clocks& clocks = Clocks::get();
  if (!clocks.on() || id != CLOCK_MONOTONIC) return call(condition, mutex, id, until);
  const std::int64_t left = nanoseconds(*until) - clocks.now(id);
  const timespec truly =
      to_timespec(real_now(CLOCK_MONOTONIC) + (left > 0 ? clocks.truly(left) : 0));
  return call(condition, mutex, id, &truly);
}

}  // extern "C"
