#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/node/node_snapshot_file.h>
#include <leasehold/storage/private_folder.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace leasehold::node {
namespace {

constexpr std::string_view kSnapshotMagic = "LHSN";
constexpr std::uint8_t kSnapshotFormat = 1;
constexpr std::string_view kReserved("\0\0\0", 3);
constexpr std::size_t kFixedBytes = 52;
constexpr std::uint64_t kDataAt = 65536;
constexpr std::uint64_t kBlockBytes = 256U << 10U;

/// The disk is asked to begin writing after this many bytes, and waited for when it is that far
/// behind: so a sync never has a gigabyte to write, which would delay the syncs of the log.
constexpr std::uint64_t kWritebackBytes = 1U << 20U;
constexpr std::uint64_t kWritebackBehind = 8U << 20U;

/// Left free for everything else on the disk.
constexpr std::uint64_t kSpareBytes = 16U << 20U;

Error file_error(const std::string& what, int number) {
  const bool space = number == ENOSPC || number == EDQUOT;
  return {space ? ErrorCode::overloaded : ErrorCode::io,
          fmt::format("{}: {}{}", what, std::generic_category().message(number),
                      space ? ": free some space on its disk" : "")};
}

Error damaged(const char* what) {
  return {ErrorCode::corrupted, fmt::format("the head of the snapshot is damaged: {}", what)};
}

std::uint64_t check_at(const SnapshotHead& head, std::uint64_t block) {
  return kDataAt + head.size + 4 * block;
}

}  // namespace

std::string encode_snapshot_head(const SnapshotHead& head) {
  const Bytes membership = raft::encode_membership(head.membership);
  std::string bytes(kSnapshotMagic);
  LittleWriter to(bytes);
  to.u8(kSnapshotFormat);
  to.bytes(kReserved);
  to.u64(head.cluster_id);
  to.u64(head.id.last.term.value());
  to.u64(head.id.last.index.value());
  to.u64(head.id.tag);
  to.u64(head.size);
  to.sized(membership.view());
  to.u32(wire::crc32c(bytes));
  LEASEHOLD_ASSERT(bytes.size() <= kDataAt);
  return bytes;
}

Result<SnapshotHead> decode_snapshot_head(std::string_view bytes) {
  LittleReader in(bytes);
  if (bytes.size() < kFixedBytes + 4 || in.take(kSnapshotMagic.size()) != kSnapshotMagic) {
    return damaged("it is too short, or not a snapshot");
  }
  const std::uint8_t format = in.u8();
  if (format != kSnapshotFormat) {
    return Error{ErrorCode::unsupported_format,
                 fmt::format("the snapshot has format {}, this build knows format {}", format,
                             kSnapshotFormat)};
  }
  const std::string_view reserved = in.take(kReserved.size());
  SnapshotHead head;
  head.cluster_id = in.u64();
  head.id.last.term = raft::Term(in.u64());
  head.id.last.index = raft::Index(in.u64());
  head.id.tag = in.u64();
  head.size = in.u64();
  const std::string_view encoded = in.sized();
  const std::uint32_t check = in.u32();
  const std::size_t checked = kFixedBytes + encoded.size();
  if (!in.ok() || checked + 4 > kDataAt) return damaged("the membership does not fit");
  if (check != wire::crc32c(bytes.substr(0, checked))) return damaged("checksum");
  Result<raft::Membership> membership = raft::decode_membership(encoded);
  if (!membership.ok()) return damaged("the membership does not decode");
  head.membership = std::move(membership).value();
  if (head.size == 0 || reserved != kReserved) return damaged("a field is out of its range");
  return head;
}

Result<std::unique_ptr<SnapshotFile>> SnapshotFile::create(const std::string& path,
                                                           const SnapshotHead& head) {
  struct statvfs space {};
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (::statvfs(folder.c_str(), &space) == 0) {
    const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
    if (free < kSpareBytes || free - kSpareBytes < head.size) {
      return file_error(fmt::format("no room in {} for a snapshot of {} bytes", folder, head.size),
                        ENOSPC);
    }
  }
  const int opened =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, storage::kPrivateFileMode);
  if (opened < 0) return file_error("cannot make " + path, errno);
  std::unique_ptr<SnapshotFile> file(new SnapshotFile(path, opened, head));
  const Result<void> written = file->write(0, encode_snapshot_head(head));
  if (!written.ok()) return written.error();
  return file;
}

Result<std::unique_ptr<SnapshotFile>> SnapshotFile::open(const std::string& path) {
  const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) {
    if (errno == ENOENT) return Error{ErrorCode::not_found, "there is no " + path};
    return file_error("cannot open " + path, errno);
  }
  std::unique_ptr<SnapshotFile> file(new SnapshotFile(path, opened, {}));
  struct stat status {};
  if (::fstat(opened, &status) != 0) return file_error("cannot read " + path, errno);
  std::string bytes(std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), kDataAt),
                    '\0');
  if (const auto read = file->read_at(0, bytes.data(), bytes.size()); !read.ok()) {
    return read.error();
  }
  Result<SnapshotHead> head = decode_snapshot_head(bytes);
  if (!head.ok()) {
    return Error{head.error().code, fmt::format("{}: {}", path, head.error().message)};
  }
  file->head_ = std::move(head).value();
  if (const auto verified = file->verify(); !verified.ok()) return verified.error();
  return file;
}

SnapshotFile::~SnapshotFile() {
  ::close(file_);
}

Result<void> SnapshotFile::verify() {
  struct stat status {};
  if (::fstat(file_, &status) != 0) return file_error("cannot read " + path_, errno);
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  std::string block;
  for (std::uint64_t at = 0; at < head_.size; at += kBlockBytes) {
    const std::uint64_t bytes = std::min(kBlockBytes, head_.size - at);
    const std::uint64_t check = check_at(head_, at / kBlockBytes);
    if (check + 4 > file_bytes) break;
    block.resize(static_cast<std::size_t>(bytes));
    std::string stored(4, '\0');
    Result<void> read = read_at(kDataAt + at, block.data(), block.size());
    if (read.ok()) read = read_at(check, stored.data(), stored.size());
    if (!read.ok()) return read;
    if (LittleReader(stored).u32() != wire::crc32c(block)) break;
    received_ = at + bytes;
  }
  writeback_ = received_;
  return {};
}

Result<void> SnapshotFile::append(std::string_view data) {
  LEASEHOLD_ASSERT(received_ + data.size() <= head_.size);
  while (!data.empty()) {
    const std::uint64_t room = kBlockBytes - received_ % kBlockBytes;
    const std::string_view part = data.substr(0, static_cast<std::size_t>(room));
    if (const auto written = write(kDataAt + received_, part); !written.ok()) return written;
    block_crc_ = wire::crc32c(part, block_crc_);
    received_ += part.size();
    data.remove_prefix(part.size());
    if (received_ % kBlockBytes == 0 || complete()) {
      if (const auto ended = end_block(); !ended.ok()) return ended;
    }
  }
  start_writeback();
  return {};
}

Result<void> SnapshotFile::end_block() {
  std::string check;
  LittleWriter(check).u32(block_crc_);
  block_crc_ = 0;
  return write(check_at(head_, (received_ - 1) / kBlockBytes), check);
}

/// These calls are hints: a system without them still works.
void SnapshotFile::start_writeback() {
#ifdef SYNC_FILE_RANGE_WRITE
  while (received_ - writeback_ >= kWritebackBytes) {
    const auto at = static_cast<off_t>(kDataAt + writeback_);
    const auto step = static_cast<off_t>(kWritebackBytes);
    const auto behind = static_cast<off_t>(kWritebackBehind);
    static_cast<void>(::sync_file_range(file_, at, step, SYNC_FILE_RANGE_WRITE));
    if (at >= behind) {
      static_cast<void>(::sync_file_range(file_, at - behind, step, SYNC_FILE_RANGE_WAIT_BEFORE));
    }
    writeback_ += kWritebackBytes;
  }
#endif
}

Result<void> SnapshotFile::sync() {
  if (::fdatasync(file_) == 0) return {};
  return file_error("cannot sync " + path_, errno);
}

Result<void> SnapshotFile::write(std::uint64_t at, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("cannot write " + path_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
    at += static_cast<std::uint64_t>(count);
  }
  return {};
}

Result<void> SnapshotFile::read(std::uint64_t offset, char* to, std::size_t bytes) const {
  return read_at(kDataAt + offset, to, bytes);
}

Result<void> SnapshotFile::read_at(std::uint64_t at, char* to, std::size_t bytes) const {
  while (bytes > 0) {
    const ssize_t count = ::pread(file_, to, bytes, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("cannot read " + path_, errno);
    if (count == 0) {
      return Error{ErrorCode::io, fmt::format("{} is shorter than it has to be", path_)};
    }
    to += count;
    at += static_cast<std::uint64_t>(count);
    bytes -= static_cast<std::size_t>(count);
  }
  return {};
}

}  // namespace leasehold::node
