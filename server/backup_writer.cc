#include <leasehold/server/backup_writer.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace leasehold::server {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20U;
/// After this many bytes the disk begins to write them: otherwise the sync at the end would delay
/// all other syncs.
constexpr std::uint64_t kWritebackBytes = std::uint64_t{8} << 20U;

Error write_error(const std::string& what, int code) {
  const std::string advice =
      code == ENOSPC || code == EDQUOT ? ": free some space on its disk" : "";
  return {ErrorCode::io,
          fmt::format("{}: {}{}", what, std::generic_category().message(code), advice)};
}

}  // namespace

Result<std::uint64_t> write_backup_file(const std::string& manifest,
                                        const replica::Snapshot& archive, const std::string& fresh,
                                        const std::string& path,
                                        const std::function<bool(std::uint64_t bytes)>& step) {
  const storage::Descriptor file{
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, storage::kPrivateFileMode)};
  if (file.get() < 0) return write_error("cannot make " + fresh, errno);
  const auto cannot_write = [&] { return write_error("cannot write " + fresh, errno); };
  if (!storage::write_all(file.get(), manifest)) return cannot_write();
  const std::uint64_t size = archive.size();
  std::string chunk;
  std::uint64_t flushed = 0;
  for (std::uint64_t at = 0; at < size; at += chunk.size()) {
    if (!step(at)) return Error{ErrorCode::stopped, "the node is stopping"};
    chunk.resize(std::min<std::uint64_t>(kChunkBytes, size - at));
    if (auto read = archive.read(at, chunk.data(), chunk.size()); !read) return read.error();
    if (!storage::write_all(file.get(), chunk)) return cannot_write();
    if (at - flushed >= kWritebackBytes) {
      // A hint: an error is found by the sync.
      static_cast<void>(::sync_file_range(file.get(), static_cast<off64_t>(flushed),
                                          static_cast<off64_t>(at - flushed),
                                          SYNC_FILE_RANGE_WRITE));
      flushed = at;
    }
  }
  static_cast<void>(step(size));
  if (::fsync(file.get()) != 0) {
    return write_error(fmt::format("cannot make {} durable", fresh), errno);
  }
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return Error{ErrorCode::in_use, path + " exists: choose another name"};
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) {
    return write_error("cannot name " + path, errno);
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (auto synced = storage::sync_folder(folder.empty() ? "." : folder); !synced) {
    return synced.error();
  }
  return manifest.size() + size;
}

}  // namespace leasehold::server
