// A library to preload before the real program: a disk that fails on command.
//
//   LD_PRELOAD=disk_shim.so  DISK_SHIM_FOLDER=/data/of/one/node  DISK_SHIM_CONTROL=/a/file
//
// It concerns files below the folder alone. The control file is mapped; the test writes to it while
// the program runs (disk.py knows the layout).
//
// Held writes: what is written to the log stays in this process's memory, where its own reads find
// it, until it is synced; kill -9 forgets it, as a power cut does. Of each write that is held, each
// sector of 512 bytes may go to the file at once (by the seed), as a kernel may write any page at
// any time: so a cut leaves torn writes. Names, sizes and zeroes of a file that grows are not held.
// Only the folder `log` is: RocksDB reads with calls that cannot be seen here.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace {

/// What the test and this library share, in this order, as native 64-bit numbers.
struct Control {
  // Written by the test.
  std::atomic<std::uint64_t> skip_syncs;       ///< not 0: a sync does nothing and says yes
  std::atomic<std::uint64_t> hold_writes;      ///< not 0: held writes, as above
  std::atomic<std::uint64_t> leak_per_mille;   ///< how likely a held sector is written at once
  std::atomic<std::uint64_t> seed;             ///< of that chance
  std::atomic<std::int64_t> syncs_until_fail;  ///< the sync that counts it down to 0 fails; 0: none
  std::atomic<std::uint64_t> fail_errno;
  std::atomic<std::int64_t> stalls;     ///< number of the next syncs that are slow
  std::atomic<std::uint64_t> stall_ms;  ///< how slow
  std::atomic<std::uint64_t> full;      ///< not 0: a write that makes a file grow gets ENOSPC
  // Written by the library.
  std::atomic<std::uint64_t> syncs;    ///< calls that were seen
  std::atomic<std::uint64_t> failed;   ///< syncs that were made to fail
  std::atomic<std::uint64_t> stalled;  ///< syncs that were made slow
  std::atomic<std::uint64_t> held;     ///< writes that were held
  std::atomic<std::uint64_t> refused;  ///< writes that found no space
};

constexpr std::uint64_t kSector = 512;

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#define REAL(name) static const auto real_##name = real<decltype(&::name)>(#name)

struct Sector {
  char bytes[kSector];
  bool present[kSector];
};
using FileId = std::pair<dev_t, ino_t>;
using Held = std::map<std::uint64_t, Sector>;

class Shim {
 public:
  static Shim& get() {
    // Never destroyed: other threads sync until the very end.
    static Shim* const shim = new Shim;
    return *shim;
  }

  Control* control() { return control_; }

  /// The file's path, if it is below the folder.
  bool concerns(int fd, bool log_only) const {
    if (control_ == nullptr) return false;
    char link[64];
    char path[4096];
    std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t size = ::readlink(link, path, sizeof(path));
    if (size <= 0) return false;
    const std::string& prefix = log_only ? log_ : folder_;
    return static_cast<std::size_t>(size) > prefix.size() &&
           std::memcmp(path, prefix.data(), prefix.size()) == 0;
  }

  void hold(int fd, const char* from, std::size_t bytes, std::uint64_t offset) {
    REAL(pwrite);
    const std::lock_guard lock(mutex_);
    ++control_->held;
    struct stat status {};
    ::fstat(fd, &status);
    if (offset + bytes > static_cast<std::uint64_t>(status.st_size)) {
      if (::ftruncate(fd, static_cast<off_t>(offset + bytes)) != 0) std::abort();
    }
    Held& held = files_[{status.st_dev, status.st_ino}];
    while (bytes > 0) {
      const std::uint64_t number = offset / kSector;
      const std::size_t begin = offset % kSector;
      const std::size_t part = std::min<std::size_t>(bytes, kSector - begin);
      const auto found = held.find(number);
      if (found == held.end() && next_random() % 1000 < control_->leak_per_mille) {
        if (real_pwrite(fd, from, part, static_cast<off_t>(offset)) != static_cast<ssize_t>(part)) {
          std::abort();
        }
      } else {
        Sector& sector = held[number];
        std::memcpy(sector.bytes + begin, from, part);
        std::fill_n(sector.present + begin, part, true);
      }
      from += part;
      offset += part;
      bytes -= part;
    }
  }

  /// The file is empty. The bytes held under its number are of a file that was removed, and never
  /// synced.
  void forget(int fd) {
    struct stat status {};
    ::fstat(fd, &status);
    const std::lock_guard lock(mutex_);
    files_.erase({status.st_dev, status.st_ino});
  }

  /// Makes what was held durable.
  void flush(int fd) {
    struct stat status {};
    ::fstat(fd, &status);
    const std::lock_guard lock(mutex_);
    const auto found = files_.find({status.st_dev, status.st_ino});
    if (found == files_.end()) return;
    for (const auto& [number, sector] : found->second) write_sector(fd, number, sector);
    files_.erase(found);
  }

  /// What was read, as the program has written it.
  void overlay(int fd, char* to, std::size_t bytes, std::uint64_t offset) {
    struct stat status {};
    ::fstat(fd, &status);
    const std::lock_guard lock(mutex_);
    const auto found = files_.find({status.st_dev, status.st_ino});
    if (found == files_.end()) return;
    const Held& held = found->second;
    for (auto at = held.lower_bound(offset / kSector);
         at != held.end() && at->first * kSector < offset + bytes; ++at) {
      for (std::uint64_t i = 0; i < kSector; ++i) {
        const std::uint64_t where = at->first * kSector + i;
        if (at->second.present[i] && where >= offset && where < offset + bytes) {
          to[where - offset] = at->second.bytes[i];
        }
      }
    }
  }

 private:
  Shim() {
    const char* folder = std::getenv("DISK_SHIM_FOLDER");
    const char* path = std::getenv("DISK_SHIM_CONTROL");
    if (folder == nullptr || path == nullptr) return;
    folder_ = std::string(folder) + "/";
    log_ = folder_ + "log/";
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    void* mapped =
        fd < 0 ? MAP_FAILED
               : ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
      std::fprintf(stderr, "disk_shim: cannot map %s\n", path);
      std::abort();
    }
    control_ = static_cast<Control*>(mapped);
    random_ = control_->seed;
  }

  /// splitmix64.
  std::uint64_t next_random() {
    std::uint64_t z = (random_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  static void write_sector(int fd, std::uint64_t number, const Sector& sector) {
    REAL(pwrite);
    for (std::size_t begin = 0; begin < kSector;) {
      std::size_t end = begin;
      while (end < kSector && sector.present[end] == sector.present[begin]) ++end;
      if (sector.present[begin] && real_pwrite(fd, sector.bytes + begin, end - begin,
                                               static_cast<off_t>(number * kSector + begin)) !=
                                       static_cast<ssize_t>(end - begin)) {
        std::abort();
      }
      begin = end;
    }
  }

  Control* control_ = nullptr;
  std::string folder_;
  std::string log_;
  std::mutex mutex_;
  std::map<FileId, Held> files_;
  std::uint64_t random_ = 0;
};

/// True if the write has to fail because there is no space.
bool no_space(int fd, std::size_t bytes, std::uint64_t offset) {
  Shim& shim = Shim::get();
  struct stat status {};
  if (shim.control() == nullptr || shim.control()->full == 0 || !shim.concerns(fd, false) ||
      ::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      offset + bytes <= static_cast<std::uint64_t>(status.st_size)) {
    return false;
  }
  ++shim.control()->refused;
  return true;
}

/// Answers in place of the disk; 1: the real sync has to be made.
int judge_sync(int fd) {
  Shim& shim = Shim::get();
  if (shim.control() == nullptr) return 1;
  Control& control = *shim.control();
  // Of any file of the process: to ask for its place takes as long as a fast device's answer.
  if (control.skip_syncs != 0 && control.stalls <= 0 && control.syncs_until_fail <= 0) {
    ++control.syncs;
    return 0;
  }
  if (!shim.concerns(fd, false)) return 1;
  ++control.syncs;
  const bool log = shim.concerns(fd, true);
  // The faults are the log's: what the key-value store loses it finds there again.
  if (log && control.stalls > 0 && control.stalls.fetch_sub(1) > 0) {
    ++control.stalled;
    ::usleep(static_cast<useconds_t>(control.stall_ms * 1000));
  }
  if (log && control.syncs_until_fail > 0 && control.syncs_until_fail.fetch_sub(1) == 1) {
    ++control.failed;
    errno = static_cast<int>(control.fail_errno);
    return -1;
  }
  if (control.skip_syncs != 0) return 0;
  if (log && control.hold_writes != 0) {
    shim.flush(fd);
    return 0;
  }
  return 1;
}

ssize_t shim_pwrite(int fd, const void* from, size_t bytes, off_t offset) {
  REAL(pwrite);
  if (no_space(fd, bytes, static_cast<std::uint64_t>(offset))) {
    errno = ENOSPC;
    return -1;
  }
  Shim& shim = Shim::get();
  if (shim.control() == nullptr || shim.control()->hold_writes == 0 || !shim.concerns(fd, true)) {
    return real_pwrite(fd, from, bytes, offset);
  }
  shim.hold(fd, static_cast<const char*>(from), bytes, static_cast<std::uint64_t>(offset));
  return static_cast<ssize_t>(bytes);
}

ssize_t shim_pread(int fd, void* to, size_t bytes, off_t offset) {
  REAL(pread);
  const ssize_t count = real_pread(fd, to, bytes, offset);
  Shim& shim = Shim::get();
  if (count > 0 && shim.control() != nullptr && shim.control()->hold_writes != 0 &&
      shim.concerns(fd, true)) {
    shim.overlay(fd, static_cast<char*>(to), static_cast<std::size_t>(count),
                 static_cast<std::uint64_t>(offset));
  }
  return count;
}

int opened(int fd, int flags) {
  Shim& shim = Shim::get();
  if (fd >= 0 && (flags & O_TRUNC) != 0 && shim.concerns(fd, true)) shim.forget(fd);
  return fd;
}

/// The last argument of an open that may make a file.
#define MODE_BEHIND(flags)                      \
  mode_t mode = 0;                              \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) { \
    va_list rest;                               \
    va_start(rest, flags);                      \
    mode = va_arg(rest, mode_t);                \
    va_end(rest);                               \
  }

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int openat(int folder, const char* name, int flags, ...) {
  REAL(openat);
  MODE_BEHIND(flags)
  return opened(real_openat(folder, name, flags, mode), flags);
}

__attribute__((visibility("default"))) int openat64(int folder, const char* name, int flags, ...) {
  REAL(openat64);
  MODE_BEHIND(flags)
  return opened(real_openat64(folder, name, flags, mode), flags);
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* from, size_t bytes,
                                                      off_t offset) {
  return shim_pwrite(fd, from, bytes, offset);
}

__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void* from, size_t bytes,
                                                        off64_t offset) {
  return shim_pwrite(fd, from, bytes, offset);
}

__attribute__((visibility("default"))) ssize_t pread(int fd, void* to, size_t bytes, off_t offset) {
  return shim_pread(fd, to, bytes, offset);
}

__attribute__((visibility("default"))) ssize_t pread64(int fd, void* to, size_t bytes,
                                                       off64_t offset) {
  return shim_pread(fd, to, bytes, offset);
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void* from, size_t bytes) {
  REAL(write);
  Shim& shim = Shim::get();
  if (shim.control() == nullptr ||
      (shim.control()->full == 0 && shim.control()->hold_writes == 0) ||
      !shim.concerns(fd, false)) {
    return real_write(fd, from, bytes);
  }
  const off_t at = ::lseek(fd, 0, SEEK_CUR);
  if (at < 0) return real_write(fd, from, bytes);
  if (no_space(fd, bytes, static_cast<std::uint64_t>(at))) {
    errno = ENOSPC;
    return -1;
  }
  if (shim.control()->hold_writes == 0 || !shim.concerns(fd, true)) {
    return real_write(fd, from, bytes);
  }
  shim.hold(fd, static_cast<const char*>(from), bytes, static_cast<std::uint64_t>(at));
  ::lseek(fd, at + static_cast<off_t>(bytes), SEEK_SET);
  return static_cast<ssize_t>(bytes);
}

__attribute__((visibility("default"))) ssize_t read(int fd, void* to, size_t bytes) {
  REAL(read);
  const ssize_t count = real_read(fd, to, bytes);
  Shim& shim = Shim::get();
  if (count > 0 && shim.control() != nullptr && shim.control()->hold_writes != 0 &&
      shim.concerns(fd, true)) {
    const off_t at = ::lseek(fd, 0, SEEK_CUR);
    shim.overlay(fd, static_cast<char*>(to), static_cast<std::size_t>(count),
                 static_cast<std::uint64_t>(at - count));
  }
  return count;
}

__attribute__((visibility("default"))) int fsync(int fd) {
  REAL(fsync);
  const int answer = judge_sync(fd);
  return answer == 1 ? real_fsync(fd) : answer;
}

__attribute__((visibility("default"))) int fdatasync(int fd) {
  REAL(fdatasync);
  const int answer = judge_sync(fd);
  return answer == 1 ? real_fdatasync(fd) : answer;
}

__attribute__((visibility("default"))) int sync_file_range(int fd, off64_t offset, off64_t bytes,
                                                           unsigned int flags) {
  REAL(sync_file_range);
  const int answer = judge_sync(fd);
  return answer == 1 ? real_sync_file_range(fd, offset, bytes, flags) : answer;
}

__attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  REAL(fallocate);
  if (no_space(fd, static_cast<std::size_t>(bytes), static_cast<std::uint64_t>(offset))) {
    errno = ENOSPC;
    return -1;
  }
  return real_fallocate(fd, mode, offset, bytes);
}

}  // extern "C"
