#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace leasehold::storage {
namespace {

namespace fs = std::filesystem;

/// The rights of the group and of others.
constexpr mode_t kOthers = 0077;
constexpr mode_t kAllBits = 07777;
/// The root of a file system may have it, and it is root's.
constexpr std::string_view kLostAndFound = "lost+found";

Error cannot(const char* do_what, const std::string& path, int number) {
  return {ErrorCode::io,
          fmt::format("cannot {} {}: {}", do_what, path, std::generic_category().message(number))};
}

Error of_another(const std::string& path, uid_t owner) {
  return {ErrorCode::invalid_argument,
          fmt::format("{} belongs to the user with the number {}, and this process runs as {}: run "
                      "it as the owner, or give the whole directory to its user with chown -R",
                      path, owner, ::geteuid())};
}

/// True: the file or folder had rights to take. Its owner is this process's user.
Result<bool> tighten(int file, const struct stat& status, const std::string& path) {
  if ((status.st_mode & kOthers) == 0) return false;
  if (::fchmod(file, status.st_mode & kAllBits & ~kOthers) != 0) {
    return cannot("take the rights of other users from", path, errno);
  }
  return true;
}

/// As tighten(); a file that is gone by now had none.
Result<bool> tighten_entry(const std::string& path) {
  // Not blocking: it may have become a pipe.
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0 && (errno == ENOENT || errno == ELOOP)) return false;
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return cannot("open", path, errno);
  if (status.st_uid != ::geteuid()) return of_another(path, status.st_uid);
  return tighten(file.get(), status, path);
}

/// Makes `path` and what is missing above it, the highest first.
Result<void> make_folders(const std::string& given) {
  std::error_code error;
  fs::path path = fs::absolute(given, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // it ended in a slash
  std::vector<fs::path> missing;
  for (; !error && path.has_relative_path() && !fs::exists(path, error);
       path = path.parent_path()) {
    missing.push_back(path);
  }
  if (error) return cannot("look for the folder", given, error.value());
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    // Another process may have been faster.
    if (::mkdir(at->c_str(), kPrivateFolderMode) != 0 && errno != EEXIST) {
      return cannot("make the folder", at->string(), errno);
    }
    if (auto synced = sync_folder(at->parent_path().string()); !synced) return synced;
  }
  return {};
}

}  // namespace

Result<void> sync_folder(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) {
    return cannot("sync the folder", path, errno);
  }
  return {};
}

Result<bool> make_private_folder(const std::string& path) {
  if (auto made = make_folders(path); !made) return made.error();
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (folder.get() < 0 || ::fstat(folder.get(), &status) != 0) {
    return cannot("open the folder", path, errno);
  }
  if (status.st_uid != ::geteuid()) return of_another(path, status.st_uid);
  return tighten(folder.get(), status, path);
}

Result<std::size_t> tighten_content(const std::string& path) {
  std::size_t tightened = 0;
  std::error_code error;
  fs::recursive_directory_iterator at(path, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at.depth() == 0 && at->path().filename() == kLostAndFound) {
      at.disable_recursion_pending();
      continue;
    }
    std::error_code gone;
    const fs::file_status status = at->symlink_status(gone);
    if (gone || (!fs::is_regular_file(status) && !fs::is_directory(status))) continue;
    const auto changed = tighten_entry(at->path().string());
    if (!changed) return changed.error();
    if (changed.value()) ++tightened;
  }
  // A process that still ends there may have removed a folder.
  if (error && error != std::errc::no_such_file_or_directory) {
    return cannot("list the folder", path, error.value());
  }
  return tightened;
}

}  // namespace leasehold::storage
