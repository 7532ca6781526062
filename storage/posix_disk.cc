#include <leasehold/base/assert.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/lock_place.h>
#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace leasehold::storage {
namespace {

/// How much is zeroed between two syncs: a large file must not fill the disk's queue and delay the
/// writes of a running log.
constexpr std::size_t kZeroBytes = std::size_t{1} << 20U;

Error system_error(const std::string& what, int number) {
  const char* hint = "";
  if (number == EACCES || number == EPERM || number == EROFS) hint = ": make it writable";
  const bool full = number == ENOSPC || number == EDQUOT;
  if (full) hint = ": free some space on its disk";
  return {full ? kNoSpace : ErrorCode::io,
          fmt::format("{}: {}{}", what, std::generic_category().message(number), hint)};
}

class PosixFile final : public DiskFile {
 public:
  PosixFile(std::string path, Descriptor file, std::uint64_t size)
      : path_(std::move(path)), file_(std::move(file)), size_(size) {}

  std::uint64_t size() const override { return size_; }

  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    while (bytes > 0) {
      const ssize_t count = ::pread(file_.get(), to, bytes, static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return system_error("cannot read " + path_, errno);
      if (count == 0) {
        return Error{ErrorCode::io, fmt::format("{} became shorter while it was open", path_)};
      }
      to += count;
      offset += static_cast<std::uint64_t>(count);
      bytes -= static_cast<std::size_t>(count);
    }
    return {};
  }

  Result<void> write(std::uint64_t offset, std::string_view bytes) override {
    LEASEHOLD_ASSERT(offset + bytes.size() <= size_);
    while (!bytes.empty()) {
      const ssize_t count =
          ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return system_error("cannot write " + path_, errno);
      bytes.remove_prefix(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
    return {};
  }

  /// Asks for the space of all of it before any of it is written: a full disk reports it at once.
  /// Not every file system can.
  Result<void> reserve() {
    if (::fallocate(file_.get(), 0, 0, static_cast<off_t>(size_)) == 0) return {};
    if (errno != ENOSPC && errno != EDQUOT) return {};
    return system_error("cannot make " + path_, errno);
  }

  Result<void> sync() override {
    if (::fdatasync(file_.get()) == 0) return {};
    return system_error("cannot sync " + path_, errno);
  }

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t size_;
};

class PosixDisk final : public Disk {
 public:
  PosixDisk(std::string path, Descriptor folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  const std::string& path() const override { return path_; }

  Result<std::vector<std::string>> list() const override {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator at(path_, error);
    for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
      names.push_back(at->path().filename().string());
    }
    if (error) return system_error("cannot list the folder " + path_, error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<std::optional<std::string>> load(const std::string& name,
                                          std::size_t bytes_max) const override {
    const Descriptor file(::openat(folder_.get(), name.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) {
      if (errno == ENOENT) return std::optional<std::string>();
      return failed("read", name);
    }
    std::string bytes(bytes_max, '\0');
    std::size_t size = 0;
    while (size < bytes.size()) {
      const ssize_t count = ::read(file.get(), bytes.data() + size, bytes.size() - size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failed("read", name);
      if (count == 0) break;
      size += static_cast<std::size_t>(count);
    }
    bytes.resize(size);
    return std::optional<std::string>(std::move(bytes));
  }

  Result<std::shared_ptr<DiskFile>> open(const std::string& name) const override {
    Descriptor file(::openat(folder_.get(), name.c_str(), O_RDWR | O_CLOEXEC));
    struct stat status {};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return failed("open", name);
    return std::shared_ptr<DiskFile>(std::make_shared<PosixFile>(
        full(name), std::move(file), static_cast<std::uint64_t>(status.st_size)));
  }

  Result<std::shared_ptr<DiskFile>> create(const std::string& name, std::string_view head,
                                           std::uint64_t size) override {
    LEASEHOLD_ASSERT(head.size() <= size);
    const std::string fresh = name + std::string(kNewSuffix);
    Descriptor opened(::openat(folder_.get(), fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
                               kPrivateFileMode));
    if (opened.get() < 0) return failed("make", fresh);
    auto file = std::make_shared<PosixFile>(full(name), std::move(opened), size);
    auto made = fill(*file, head);
    if (made && ::renameat(folder_.get(), fresh.c_str(), folder_.get(), name.c_str()) != 0) {
      made = failed("make", name);
    }
    if (!made) {
      // It may have failed because there is no space.
      ::unlinkat(folder_.get(), fresh.c_str(), 0);
      return made.error();
    }
    // Whether the file has its name is not known after a failure, whatever its reason.
    if (::fsync(folder_.get()) != 0) {
      return Error{ErrorCode::io, system_error("cannot sync the folder " + path_, errno).message};
    }
    return std::shared_ptr<DiskFile>(std::move(file));
  }

  Result<void> remove(const std::string& name) override {
    if (::unlinkat(folder_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
    return failed("remove", name);
  }

  Result<std::uint64_t> free_bytes() const override {
    struct statvfs status {};
    if (::fstatvfs(folder_.get(), &status) == 0) {
      return std::uint64_t{status.f_bavail} * status.f_frsize;
    }
    return system_error("cannot ask how much space is left for the folder " + path_, errno);
  }

  std::uint64_t place() const override { return lock_place(folder_.get()); }

 private:
  std::string full(const std::string& name) const { return fmt::format("{}/{}", path_, name); }
  Error failed(const char* verb, const std::string& name) const {
    return system_error(fmt::format("cannot {} {}", verb, full(name)), errno);
  }

  static Result<void> fill(PosixFile& file, std::string_view head) {
    if (auto reserved = file.reserve(); !reserved) return reserved;
    if (auto written = file.write(0, head); !written) return written;
    const std::string zeroes(
        static_cast<std::size_t>(std::min<std::uint64_t>(kZeroBytes, file.size() - head.size())),
        '\0');
    std::uint64_t at = head.size();
    do {
      const auto part =
          static_cast<std::size_t>(std::min<std::uint64_t>(zeroes.size(), file.size() - at));
      auto written = file.write(at, std::string_view(zeroes).substr(0, part));
      if (written) written = file.sync();
      if (!written) return written;
      at += part;
    } while (at < file.size());
    return {};
  }

  std::string path_;
  Descriptor folder_;  ///< holds the lock
};

}  // namespace

Result<std::unique_ptr<Disk>> open_posix_disk(const std::string& path) {
  if (auto made = make_private_folder(path); !made) return made.error();
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return system_error("cannot open the folder " + path, errno);
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_error("cannot lock the folder " + path, errno);
    return Error{ErrorCode::in_use,
                 fmt::format("another process uses the folder {}: stop it, or give this node a "
                             "folder of its own",
                             path)};
  }
  return std::unique_ptr<Disk>(std::make_unique<PosixDisk>(path, std::move(folder)));
}

Result<std::unique_ptr<const Disk>> view_posix_disk(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return system_error("cannot open the folder " + path, errno);
  return std::unique_ptr<const Disk>(std::make_unique<PosixDisk>(path, std::move(folder)));
}

Result<void> fill_random(void* to, std::size_t bytes) {
  for (;;) {
    const ssize_t count = ::getrandom(to, bytes, 0);
    if (count == static_cast<ssize_t>(bytes)) return {};
    if (count < 0 && errno != EINTR) return system_error("cannot get random bytes", errno);
  }
}

}  // namespace leasehold::storage
