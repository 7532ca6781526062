#include <leasehold/node/file_snapshot.h>
#include <leasehold/node/node_file_head.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/private_folder.h>
#include <leasehold/tls/digest.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace leasehold::node {
namespace {

/// What is copied at a time; a block of digests is checked with it.
constexpr std::size_t kPartCopyBytes = kDigestBlockBytes;

Error io_error(const std::string& what, const std::string& path, int code) {
  return {ErrorCode::io,
          fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(code))};
}

/// All of `bytes`. Errors: io.
Result<void> read_whole(int file, const std::string& path, std::uint64_t offset, char* to,
                        std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::pread(file, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("read", path, errno);
    if (got == 0) {
      return Error{ErrorCode::io,
                   fmt::format("{} became shorter while it was in a snapshot", path)};
    }
    to += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return {};
}

/// Its head, and then the files.
class FileSnapshot final : public replica::Snapshot {
 public:
  struct File {
    storage::Descriptor descriptor;
    std::string path;
    std::uint64_t begin = 0;  ///< in the snapshot
    std::uint64_t size = 0;
  };

  FileSnapshot(raft::Index last, std::string head, std::vector<File> files)
      : last_(last), head_(std::move(head)), files_(std::move(files)) {
    size_ = head_.size();
    for (File& file : files_) {
      file.begin = size_;
      size_ += file.size;
    }
  }
  raft::Index last() const override { return last_; }
  std::uint64_t size() const override { return size_; }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    if (offset < head_.size() && bytes > 0) {
      const std::size_t copied = head_.copy(to, bytes, static_cast<std::size_t>(offset));
      offset += copied;
      to += copied;
      bytes -= copied;
    }
    // The file that holds `offset`, or the one before those that are empty.
    auto file = std::upper_bound(files_.begin(), files_.end(), offset,
                                 [](std::uint64_t at, const File& one) { return at < one.begin; });
    if (file != files_.begin()) --file;
    for (; bytes > 0; ++file) {
      const std::uint64_t within = offset - file->begin;
      const auto part = static_cast<std::size_t>(
          std::min<std::uint64_t>(bytes, file->size - std::min(file->size, within)));
      if (auto got = read_whole(file->descriptor.get(), file->path, within, to, part); !got.ok()) {
        return got;
      }
      offset += part;
      to += part;
      bytes -= part;
    }
    return {};
  }

 private:
  const raft::Index last_;
  const std::string head_;
  std::vector<File> files_;
  std::uint64_t size_ = 0;
};

class SpooledSnapshot final : public replica::Snapshot {
 public:
  SpooledSnapshot(raft::Index last, storage::Descriptor file, std::uint64_t size)
      : last_(last), file_(std::move(file)), size_(size) {}
  raft::Index last() const override { return last_; }
  std::uint64_t size() const override { return size_; }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    return read_whole(file_.get(), "a snapshot's file", offset, to, bytes);
  }

 private:
  const raft::Index last_;
  const storage::Descriptor file_;
  const std::uint64_t size_;
};

Result<void> write_file(const replica::Snapshot& snapshot, std::uint64_t offset,
                        const FileInHead& source, const std::string& path) {
  const storage::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, storage::kPrivateFileMode));
  if (file.get() < 0) return io_error("make", path, errno);
  std::string part;
  for (std::uint64_t at = 0; at < source.size; at += part.size()) {
    part.resize(
        static_cast<std::size_t>(std::min<std::uint64_t>(source.size - at, kPartCopyBytes)));
    if (auto got = snapshot.read(offset + at, part.data(), part.size()); !got.ok()) return got;
    if (!source.digests.empty() && tls::sha256(part) != digest_at(source, at)) {
      return Error{ErrorCode::corrupted,
                   fmt::format("the file {} of the snapshot has not the digests that stand in it: "
                               "it changed behind digests_of_file(), or its disk lost something",
                               source.name)};
    }
    if (!storage::write_all(file.get(), part)) return io_error("write", path, errno);
  }
  if (::fsync(file.get()) != 0) return io_error("sync", path, errno);
  return {};
}

}  // namespace

Result<std::shared_ptr<const replica::Snapshot>> snapshot_of_files(
    raft::Index last, const std::vector<SnapshotPart>& parts) {
  if (parts.size() > kSnapshotPartsMax) {
    return Error{ErrorCode::invalid_argument, fmt::format("{} files: a snapshot has {} at most",
                                                          parts.size(), kSnapshotPartsMax)};
  }
  std::set<std::string> names;
  std::vector<FileInHead> sizes;
  std::uint64_t blocks = 0;
  std::vector<FileSnapshot::File> files;
  for (const SnapshotPart& part : parts) {
    if (!valid_part_name(part.name) || !names.insert(part.name).second) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("'{}' cannot be the name of a file in a snapshot: 1 to {} bytes "
                               "without '/', each name once",
                               part.name, kPartNameBytesMax)};
    }
    storage::Descriptor file(::open(part.path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat state {};
    if (file.get() < 0 || ::fstat(file.get(), &state) != 0) {
      return io_error("open", part.path, errno);
    }
    if (!S_ISREG(state.st_mode)) {
      return Error{ErrorCode::io, part.path + " is no file with bytes of its own"};
    }
    const auto size = static_cast<std::uint64_t>(state.st_size);
    if (!part.digests.empty() && part.digests.size() != digest_bytes(size)) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("the digests of {} are for another size than its {} bytes: make "
                               "them when the file is complete",
                               part.path, size)};
    }
    blocks += part.digests.size() / kDigestBytes;
    sizes.push_back({part.name, size, blocks <= kSnapshotBlocksMax ? part.digests : ""});
    files.push_back({std::move(file), part.path, 0, size});
  }
  return std::shared_ptr<const replica::Snapshot>(
      std::make_shared<FileSnapshot>(last, encode_file_head(sizes), std::move(files)));
}

Result<std::vector<std::string>> unpack_files(const replica::Snapshot& snapshot,
                                              const std::string& folder) {
  const auto read = read_file_head(snapshot);
  if (!read.ok()) return read.error();
  const FileHead& head = read.value();
  if (const auto made = storage::make_private_folder(folder); !made.ok()) return made.error();
  std::error_code error;
  if (!std::filesystem::is_empty(folder, error) || error) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{} is not empty: unpack a snapshot into a folder of its own", folder)};
  }
  std::vector<std::string> names;
  std::uint64_t offset = head.files_at;
  for (const FileInHead& file : head.files) {
    const auto written = write_file(snapshot, offset, file, folder + "/" + file.name);
    if (!written.ok()) return written.error();
    offset += file.size;
    names.push_back(file.name);
  }
  if (const auto synced = storage::sync_folder(folder); !synced.ok()) return synced.error();
  return names;
}

Result<std::shared_ptr<const replica::Snapshot>> snapshot_of_stream(raft::Index last,
                                                                    const SnapshotStream& stream,
                                                                    const std::string& folder) {
  std::string path = folder + "/spoolXXXXXX";
  storage::Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
  if (file.get() < 0) return io_error("make a file in", folder, errno);
  ::unlink(path.c_str());
  std::uint64_t size = 0;
  std::string part(kPartCopyBytes, '\0');
  for (;;) {
    const Result<std::size_t> got = stream(part.data(), part.size());
    if (!got.ok()) return got.error();
    if (got.value() == 0) break;
    if (got.value() > part.size()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("the stream of a snapshot gave {} bytes, and {} were asked for",
                               got.value(), part.size())};
    }
    if (!storage::write_all(file.get(), {part.data(), got.value()})) {
      return io_error("write a snapshot into", folder, errno);
    }
    size += got.value();
  }
  if (size == 0) {
    return Error{ErrorCode::invalid_argument, "the stream of a snapshot is empty: it needs a byte"};
  }
  return std::shared_ptr<const replica::Snapshot>(
      std::make_shared<SpooledSnapshot>(last, std::move(file), size));
}

SnapshotStream stream_of(const replica::Snapshot& snapshot) {
  return [&snapshot, at = std::uint64_t{0}](char* to,
                                            std::size_t bytes) mutable -> Result<std::size_t> {
    const auto part =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes, snapshot.size() - at));
    if (part == 0) return std::size_t{0};
    if (const auto got = snapshot.read(at, to, part); !got.ok()) return got.error();
    at += part;
    return part;
  };
}

}  // namespace leasehold::node
