#include <leasehold/base/coding.h>
#include <leasehold/node/file_snapshot.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/private_folder.h>
#include <leasehold/wire/crc32c.h>

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

// In front of the files, one behind the other (integers little-endian):
//
//   offset  size  field
//        0     4  magic "LHFS"
//        4     4  format, 1
//        8     4  bytes of the table of the files
//       12     n  the table: for each its name (length in 4 bytes, bytes) and its size in 8
//     12+n     4  CRC32C of all before
constexpr std::string_view kFilesMagic = "LHFS";
constexpr std::uint32_t kFilesFormat = 1;
constexpr std::size_t kFilesFixedBytes = 12;
constexpr std::size_t kFilesChecksumBytes = 4;
constexpr std::size_t kPartNameBytesMax = 255;
constexpr std::size_t kTableBytesMax = kSnapshotPartsMax * (4 + kPartNameBytesMax + 8);
constexpr std::size_t kPartCopyBytes = std::size_t{1} << 20U;

struct Sized {
  std::string name;
  std::uint64_t size = 0;
};

Error io_error(const std::string& what, const std::string& path, int code) {
  return {ErrorCode::io,
          fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(code))};
}

Error not_of_files(const std::string& why) {
  return {ErrorCode::corrupted, "this is no snapshot of files: " + why};
}

bool valid_name(const std::string& name) {
  return !name.empty() && name.size() <= kPartNameBytesMax && name != "." && name != ".." &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

std::string encode_head(const std::vector<Sized>& files) {
  std::string table;
  LittleWriter entries(table);
  for (const Sized& file : files) {
    entries.sized(file.name);
    entries.u64(file.size);
  }
  std::string head;
  LittleWriter out(head);
  out.bytes(kFilesMagic);
  out.u32(kFilesFormat);
  out.sized(table);
  out.u32(wire::crc32c(head));
  return head;
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

/// What the head of `snapshot` says, and the offset of the first file. Nothing of it is believed.
Result<std::vector<Sized>> read_head(const replica::Snapshot& snapshot, std::uint64_t& files_at) {
  std::string head(kFilesFixedBytes, '\0');
  if (snapshot.size() < kFilesFixedBytes + kFilesChecksumBytes)
    return not_of_files("it is too short");
  if (auto got = snapshot.read(0, head.data(), head.size()); !got.ok()) return got.error();
  LittleReader fixed(head);
  if (fixed.take(kFilesMagic.size()) != kFilesMagic) return not_of_files("it begins otherwise");
  if (const std::uint32_t format = fixed.u32(); format != kFilesFormat) {
    return not_of_files(
        fmt::format("its format is {}, and this build knows {}", format, kFilesFormat));
  }
  const std::uint32_t table_bytes = fixed.u32();
  files_at = std::uint64_t{kFilesFixedBytes} + table_bytes + kFilesChecksumBytes;
  if (table_bytes > kTableBytesMax || files_at > snapshot.size()) {
    return not_of_files("its table of files is too long");
  }
  head.resize(static_cast<std::size_t>(files_at));
  if (auto got = snapshot.read(0, head.data(), head.size()); !got.ok()) return got.error();
  const std::string_view covered(head.data(), head.size() - kFilesChecksumBytes);
  LittleReader checksum(std::string_view(head).substr(covered.size()));
  if (checksum.u32() != wire::crc32c(covered)) return not_of_files("its checksum differs");

  std::vector<Sized> files;
  std::set<std::string> names;
  std::uint64_t left = snapshot.size() - files_at;
  LittleReader table(covered.substr(kFilesFixedBytes));
  while (!table.at_end()) {
    Sized file{std::string(table.sized()), table.u64()};
    if (!table.ok() || files.size() == kSnapshotPartsMax || file.size > left ||
        !valid_name(file.name) || !names.insert(file.name).second) {
      return not_of_files("its table of files is not valid");
    }
    left -= file.size;
    files.push_back(std::move(file));
  }
  if (left != 0) return not_of_files("it is longer than its files");
  return files;
}

Result<void> write_file(const replica::Snapshot& snapshot, std::uint64_t offset,
                        const Sized& source, const std::string& path) {
  const storage::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, storage::kPrivateFileMode));
  if (file.get() < 0) return io_error("make", path, errno);
  std::string part;
  for (std::uint64_t at = 0; at < source.size; at += part.size()) {
    part.resize(
        static_cast<std::size_t>(std::min<std::uint64_t>(source.size - at, kPartCopyBytes)));
    if (auto got = snapshot.read(offset + at, part.data(), part.size()); !got.ok()) return got;
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
  std::vector<Sized> sizes;
  std::vector<FileSnapshot::File> files;
  for (const SnapshotPart& part : parts) {
    if (!valid_name(part.name) || !names.insert(part.name).second) {
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
    sizes.push_back({part.name, size});
    files.push_back({std::move(file), part.path, 0, size});
  }
  return std::shared_ptr<const replica::Snapshot>(
      std::make_shared<FileSnapshot>(last, encode_head(sizes), std::move(files)));
}

Result<std::vector<std::string>> unpack_files(const replica::Snapshot& snapshot,
                                              const std::string& folder) {
  std::uint64_t offset = 0;
  const auto files = read_head(snapshot, offset);
  if (!files.ok()) return files.error();
  if (const auto made = storage::make_private_folder(folder); !made.ok()) return made.error();
  std::error_code error;
  if (!std::filesystem::is_empty(folder, error) || error) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{} is not empty: unpack a snapshot into a folder of its own", folder)};
  }
  std::vector<std::string> names;
  for (const Sized& file : files.value()) {
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
