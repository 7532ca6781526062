#include <leasehold/base/assert.h>
#include <leasehold/node/node_snapshot_file.h>
#include <leasehold/wire/crc32c.h>

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

constexpr std::string_view kMagic = "LHSN";
constexpr std::uint8_t kFormat = 1;
constexpr std::size_t kFixedBytes = 52;
constexpr std::uint64_t kDataAt = 65536;
constexpr std::uint64_t kBlockBytes = 256U << 10U;

/// The disk is told to begin to write this often, and waited for when it is so far behind: then a
/// sync never finds a gigabyte to write, behind which the syncs of the log would stand.
constexpr std::uint64_t kWritebackBytes = 1U << 20U;
constexpr std::uint64_t kWritebackBehind = 8U << 20U;

/// Left free for everything else on the disk.
constexpr std::uint64_t kSpareBytes = 16U << 20U;

Error system_error(const std::string& what, int number) {
  const bool space = number == ENOSPC || number == EDQUOT;
  return {space ? ErrorCode::overloaded : ErrorCode::io,
          what + ": " + std::generic_category().message(number) +
              (space ? ": free some space on its disk" : "")};
}

void put(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>((value >> (8 * i)) & 0xffU));
}

std::uint64_t get(std::string_view from, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) {
    value = value << 8U | static_cast<unsigned char>(from[at + static_cast<std::size_t>(i)]);
  }
  return value;
}

Error damaged(const char* what) {
  return {ErrorCode::corrupted, std::string("the head of the snapshot is damaged: ") + what};
}

std::uint64_t check_at(const SnapshotHead& head, std::uint64_t block) {
  return kDataAt + head.size + 4 * block;
}

}  // namespace

std::string encode_snapshot_head(const SnapshotHead& head) {
  const Bytes membership = raft::encode_membership(head.membership);
  std::string bytes(kMagic);
  put(bytes, kFormat, 1);
  put(bytes, 0, 3);
  put(bytes, head.cluster_id, 8);
  put(bytes, head.id.last.term.value(), 8);
  put(bytes, head.id.last.index.value(), 8);
  put(bytes, head.id.tag, 8);
  put(bytes, head.size, 8);
  put(bytes, membership.size(), 4);
  bytes += membership.view();
  put(bytes, wire::crc32c(bytes), 4);
  LEASEHOLD_ASSERT(bytes.size() <= kDataAt);
  return bytes;
}

Result<SnapshotHead> decode_snapshot_head(std::string_view bytes) {
  if (bytes.size() < kFixedBytes + 4 || bytes.substr(0, kMagic.size()) != kMagic) {
    return damaged("it is too short, or no snapshot at all");
  }
  if (get(bytes, 4, 1) != kFormat) {
    return Error{ErrorCode::unsupported_format,
                 "the snapshot has format " + std::to_string(get(bytes, 4, 1)) +
                     ", this build knows format " + std::to_string(kFormat)};
  }
  const std::uint64_t membership_bytes = get(bytes, 48, 4);
  if (membership_bytes > kDataAt - kFixedBytes - 4 ||
      bytes.size() < kFixedBytes + membership_bytes + 4) {
    return damaged("the membership does not fit");
  }
  const std::size_t end = kFixedBytes + static_cast<std::size_t>(membership_bytes);
  if (get(bytes, end, 4) != wire::crc32c(bytes.substr(0, end))) return damaged("checksum");
  Result<raft::Membership> membership =
      raft::decode_membership(bytes.substr(kFixedBytes, end - kFixedBytes));
  if (!membership.ok()) return damaged("the membership does not decode");
  SnapshotHead head;
  head.cluster_id = get(bytes, 8, 8);
  head.id.last = {raft::Term(get(bytes, 16, 8)), raft::Index(get(bytes, 24, 8))};
  head.id.tag = get(bytes, 32, 8);
  head.size = get(bytes, 40, 8);
  head.membership = std::move(membership).value();
  if (head.size == 0 || get(bytes, 5, 3) != 0) return damaged("a field is out of its range");
  return head;
}

Result<std::unique_ptr<SnapshotFile>> SnapshotFile::create(const std::string& path,
                                                           const SnapshotHead& head) {
  struct statvfs space {};
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (::statvfs(folder.c_str(), &space) == 0) {
    const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
    if (free < kSpareBytes || free - kSpareBytes < head.size) {
      return system_error(
          "no room in " + folder + " for a snapshot of " + std::to_string(head.size) + " bytes",
          ENOSPC);
    }
  }
  const int opened = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (opened < 0) return system_error("cannot make " + path, errno);
  std::unique_ptr<SnapshotFile> file(new SnapshotFile(path, opened, head));
  const Result<void> written = file->write(0, encode_snapshot_head(head));
  if (!written.ok()) return written.error();
  return file;
}

Result<std::unique_ptr<SnapshotFile>> SnapshotFile::open(const std::string& path) {
  const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) {
    if (errno == ENOENT) return Error{ErrorCode::not_found, "there is no " + path};
    return system_error("cannot open " + path, errno);
  }
  std::unique_ptr<SnapshotFile> file(new SnapshotFile(path, opened, {}));
  struct stat status {};
  if (::fstat(opened, &status) != 0) return system_error("cannot read " + path, errno);
  std::string bytes(std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), kDataAt),
                    '\0');
  if (const auto read = file->read_at(0, bytes.data(), bytes.size()); !read.ok()) {
    return read.error();
  }
  Result<SnapshotHead> head = decode_snapshot_head(bytes);
  if (!head.ok()) return Error{head.error().code, path + ": " + head.error().message};
  file->head_ = std::move(head).value();
  if (const auto verified = file->verify(); !verified.ok()) return verified.error();
  return file;
}

SnapshotFile::~SnapshotFile() {
  ::close(file_);
}

Result<void> SnapshotFile::verify() {
  struct stat status {};
  if (::fstat(file_, &status) != 0) return system_error("cannot read " + path_, errno);
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
    if (get(stored, 0, 4) != wire::crc32c(block)) break;
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
  put(check, block_crc_, 4);
  block_crc_ = 0;
  return write(check_at(head_, (received_ - 1) / kBlockBytes), check);
}

/// Hints: a system without them still works.
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
  return system_error("cannot sync " + path_, errno);
}

Result<void> SnapshotFile::write(std::uint64_t at, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("cannot write " + path_, errno);
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
    if (count < 0) return system_error("cannot read " + path_, errno);
    if (count == 0) return Error{ErrorCode::io, path_ + " is shorter than it has to be"};
    to += count;
    at += static_cast<std::uint64_t>(count);
    bytes -= static_cast<std::size_t>(count);
  }
  return {};
}

}  // namespace leasehold::node
