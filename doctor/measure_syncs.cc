#include <leasehold/doctor/gather.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace leasehold::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kScratchName = ".leasehold-doctor";
/// As large as a small batch of the log, and as the blocks of most file systems.
constexpr std::size_t kBlockBytes = 4096;
/// The file's space is there before the first sync, as it is in the log.
constexpr std::size_t kScratchBytes = std::size_t{4} << 20U;
/// So many come soon after each other, for a short look; then rare slow ones are waited for.
constexpr std::size_t kQuickSyncs = 1000;
constexpr std::chrono::milliseconds kLongestRest{50};
/// Syncs do not fill the disk's queue for a node that runs beside.
constexpr int kRestPerSync = 3;

Error failure(const std::string& path, const char* verb) {
  const int number = errno;
  const bool full = number == ENOSPC || number == EDQUOT;
  return {full ? ErrorCode::overloaded : ErrorCode::io,
          fmt::format("cannot {} {}: {}", verb, path, std::generic_category().message(number))};
}

/// A file that nobody else has, and that is gone at the end.
class Scratch {
 public:
  explicit Scratch(const std::string& folder)
      : path_(fmt::format("{}/{}", folder, kScratchName)), file_(make(path_)) {}
  ~Scratch() {
    if (file_.get() >= 0) ::unlink(path_.c_str());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }
  int get() const { return file_.get(); }

 private:
  /// Replaces what an earlier run left that was killed.
  static storage::Descriptor make(const std::string& path) {
    ::unlink(path.c_str());
    return storage::Descriptor(::open(path.c_str(),
                                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                                      storage::kPrivateFileMode));
  }

  std::string path_;
  storage::Descriptor file_;
};

lease::Duration at_percent(const std::vector<lease::Duration>& sorted, std::size_t percent) {
  return sorted[(sorted.size() - 1) * percent / 100];
}

}  // namespace

SyncFacts measure_syncs(const std::string& folder, const std::function<bool()>& stop) {
  SyncFacts facts;
  const Scratch file(folder);
  if (file.get() < 0) {
    facts.error = failure(file.path(), "make");
    return facts;
  }
  const std::string zeroes(kScratchBytes, '\0');
  if (!storage::write_all(file.get(), zeroes)) {
    facts.error = failure(file.path(), "write");
    return facts;
  }
  if (::fdatasync(file.get()) != 0) {
    facts.error = failure(file.path(), "sync");
    return facts;
  }
  std::vector<lease::Duration> times;
  const std::string block(kBlockBytes, 'x');
  while (!stop()) {
    const auto offset = static_cast<off_t>(times.size() * kBlockBytes % kScratchBytes);
    const bool written = ::pwrite(file.get(), block.data(), block.size(), offset) ==
                         static_cast<ssize_t>(block.size());
    const auto begun = Clock::now();
    if (!written || ::fdatasync(file.get()) != 0) {
      facts.error = failure(file.path(), "write or sync");
      break;
    }
    times.emplace_back(Clock::now() - begun);
    lease::Duration rest = std::min<lease::Duration>(times.back() * kRestPerSync, kLongestRest);
    if (times.size() > kQuickSyncs) rest = kLongestRest;
    std::this_thread::sleep_for(rest);
  }
  if (times.empty()) return facts;
  std::sort(times.begin(), times.end());
  facts.syncs = times.size();
  facts.p50 = at_percent(times, 50);
  facts.p99 = at_percent(times, 99);
  facts.longest = times.back();
  return facts;
}

}  // namespace leasehold::doctor
