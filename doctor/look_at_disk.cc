#include <leasehold/doctor/gather.h>
#include <leasehold/doctor/system_files.h>
#include <leasehold/net/handshake.h>
#include <leasehold/node/node_identity.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace leasehold::doctor {
namespace {

/// The folder, or the nearest one above it that exists.
std::string existing_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(at, error) && at.has_relative_path()) at = at.parent_path();
  const std::filesystem::path real = std::filesystem::canonical(at, error);
  return error ? at.string() : real.string();
}

/// A part of a disk has the properties of the disk.
bool rotates(const std::string& root, const std::string& folder) {
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return false;
  const std::string device =
      fmt::format("sys/dev/block/{}:{}/", major(about.st_dev), minor(about.st_dev));
  const auto own = read_number(root, device + "queue/rotational");
  return own.value_or(read_number(root, device + "../queue/rotational").value_or(0)) == 1;
}

std::string reason() {
  return std::generic_category().message(errno);
}

/// The mark of the log, and who has locked the log's folder.
void look_at_log(const std::string& root, const std::string& log, FolderFacts& facts) {
  const storage::Descriptor folder(::open(log.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) {
    if (errno != ENOENT) facts.problem = fmt::format("cannot open {}: {}", log, reason());
    return;
  }
  struct stat about {};
  if (::fstat(folder.get(), &about) == 0) {
    facts.locked_by = lock_holder(read_text(root, "proc/locks"), major(about.st_dev),
                                  minor(about.st_dev), about.st_ino);
  }
  const std::string path = fmt::format("{}/{}", log, storage::kMarkName);
  const storage::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno != ENOENT) facts.problem = fmt::format("cannot open {}: {}", path, reason());
    return;
  }
  std::string bytes(storage::kMarkBytes + 1, '\0');
  const ssize_t length = ::read(file.get(), bytes.data(), bytes.size());
  if (length < 0) {
    facts.problem = fmt::format("cannot read {}: {}", path, reason());
    return;
  }
  bytes.resize(static_cast<std::size_t>(length));
  const auto mark = storage::decode_mark(bytes);
  if (!mark) {
    facts.mark_error = Error{mark.error().code, fmt::format("{}: {}", path, mark.error().message)};
    return;
  }
  facts.node = mark.value().id;
  facts.cluster_id = mark.value().cluster_id;
  facts.uuid = mark.value().uuid;
}

}  // namespace

DiskFacts look_at_disk(const std::string& root, const std::string& data_dir) {
  DiskFacts facts;
  facts.folder = existing_folder(data_dir);
  std::error_code error;
  facts.made = std::filesystem::is_directory(data_dir, error);
  if (const auto mount = mount_of(read_text(root, "proc/self/mountinfo"), facts.folder)) {
    facts.kind = mount->kind;
    facts.options = mount->options;
  }
  facts.rotating = rotates(root, facts.folder);
  struct statvfs space {};
  if (::statvfs(facts.folder.c_str(), &space) == 0) {
    facts.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  }
  return facts;
}

FolderFacts look_at_folder(const std::string& root, const server::ServeSettings& settings) {
  FolderFacts facts;
  struct stat about {};
  if (::stat(settings.data_dir.c_str(), &about) != 0) {
    if (errno != ENOENT) {
      facts.problem = fmt::format("cannot look at {}: {}", settings.data_dir, reason());
    }
    return facts;
  }
  facts.exists = true;
  if (!S_ISDIR(about.st_mode)) {
    facts.problem = fmt::format("{} is no folder", settings.data_dir);
    return facts;
  }
  if (::access(settings.data_dir.c_str(), R_OK | W_OK | X_OK) != 0) {
    facts.problem = fmt::format("cannot use {}: {}", settings.data_dir, reason());
  }
  facts.of_another_user = about.st_uid != ::geteuid();
  facts.open_to_others = (about.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  look_at_log(root, settings.data_dir + "/log", facts);
  // With many groups each has an id of its own.
  if (settings.groups > 1 || settings.node.peers.empty()) return facts;
  const auto expected = node::known_cluster_id(settings.node);
  if (expected) facts.cluster_expected = expected.value();
  if (!expected && facts.problem.empty()) facts.problem = expected.error().message;
  return facts;
}

}  // namespace leasehold::doctor
