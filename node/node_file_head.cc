#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/node/node_file_head.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace leasehold::node {
namespace {

constexpr std::string_view kFilesMagic = "LHFS";
constexpr std::uint32_t kFilesFormat = 1;
constexpr std::uint32_t kDigestsFormat = 2;
constexpr std::size_t kFilesFixedBytes = 12;
constexpr std::size_t kFilesChecksumBytes = 4;
constexpr std::size_t kTableBytesMax =
    kSnapshotPartsMax * (4 + kPartNameBytesMax + 8 + 4) + kSnapshotBlocksMax * kDigestBytes;

Error not_of_files(const std::string& why) {
  return {ErrorCode::corrupted, "this is no snapshot of files: " + why};
}

/// `left`: the bytes behind the head.
Result<std::vector<FileInHead>> decode_table(std::string_view bytes, bool digests,
                                             std::uint64_t left) {
  std::vector<FileInHead> files;
  std::set<std::string> names;
  LittleReader table(bytes);
  bool any_digests = false;
  while (!table.at_end()) {
    FileInHead file{std::string(table.sized()), table.u64(), {}};
    if (digests) file.digests = std::string(table.sized());
    if (!table.ok() || files.size() == kSnapshotPartsMax || file.size > left ||
        !valid_part_name(file.name) || !names.insert(file.name).second ||
        (!file.digests.empty() && file.digests.size() != digest_bytes(file.size))) {
      return not_of_files("its table of files is not valid");
    }
    any_digests = any_digests || !file.digests.empty();
    left -= file.size;
    files.push_back(std::move(file));
  }
  if (left != 0) return not_of_files("it is longer than its files");
  if (any_digests != digests) return not_of_files("its format is that of other files");
  return files;
}

}  // namespace

std::uint64_t digest_bytes(std::uint64_t file_size) {
  const std::uint64_t blocks =
      file_size / kDigestBlockBytes + (file_size % kDigestBlockBytes == 0 ? 0 : 1);
  return blocks * kDigestBytes;
}

std::string_view digest_at(const FileInHead& file, std::uint64_t offset) {
  LEASEHOLD_ASSERT(offset % kDigestBlockBytes == 0 && offset < file.size);
  const auto block = static_cast<std::size_t>(offset / kDigestBlockBytes);
  return std::string_view(file.digests).substr(block * kDigestBytes, kDigestBytes);
}

bool valid_part_name(const std::string& name) {
  return !name.empty() && name.size() <= kPartNameBytesMax && name != "." && name != ".." &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

std::string encode_file_head(const std::vector<FileInHead>& files) {
  const bool digests = std::any_of(files.begin(), files.end(),
                                   [](const FileInHead& file) { return !file.digests.empty(); });
  std::string table;
  LittleWriter entries(table);
  for (const FileInHead& file : files) {
    entries.sized(file.name);
    entries.u64(file.size);
    if (digests) entries.sized(file.digests);
  }
  std::string head;
  LittleWriter out(head);
  out.bytes(kFilesMagic);
  out.u32(digests ? kDigestsFormat : kFilesFormat);
  out.sized(table);
  out.u32(wire::crc32c(head));
  return head;
}

Result<std::uint64_t> file_head_bytes(std::string_view front, std::uint64_t snapshot_size) {
  if (snapshot_size < kFilesFixedBytes + kFilesChecksumBytes) {
    return not_of_files("it is too short");
  }
  if (front.size() < kFilesFixedBytes) return std::uint64_t{kFilesFixedBytes};
  LittleReader fixed(front);
  if (fixed.take(kFilesMagic.size()) != kFilesMagic) return not_of_files("it begins otherwise");
  const std::uint32_t format = fixed.u32();
  if (format != kFilesFormat && format != kDigestsFormat) {
    return not_of_files(fmt::format("its format is {}, and this build knows {} and {}", format,
                                    kFilesFormat, kDigestsFormat));
  }
  const std::uint32_t table_bytes = fixed.u32();
  const std::uint64_t bytes = std::uint64_t{kFilesFixedBytes} + table_bytes + kFilesChecksumBytes;
  if (table_bytes > kTableBytesMax || bytes > snapshot_size) {
    return not_of_files("its table of files is too long");
  }
  return bytes;
}

Result<FileHead> read_file_head(const replica::Snapshot& snapshot) {
  std::string head;
  for (int step = 0; step < 2; ++step) {
    const Result<std::uint64_t> bytes = file_head_bytes(head, snapshot.size());
    if (!bytes.ok()) return bytes.error();
    head.resize(static_cast<std::size_t>(bytes.value()));
    if (auto got = snapshot.read(0, head.data(), head.size()); !got.ok()) return got.error();
  }
  const std::string_view covered(head.data(), head.size() - kFilesChecksumBytes);
  LittleReader checksum(std::string_view(head).substr(covered.size()));
  if (checksum.u32() != wire::crc32c(covered)) return not_of_files("its checksum differs");
  LittleReader fixed(covered);
  fixed.take(kFilesMagic.size());
  const bool digests = fixed.u32() == kDigestsFormat;
  auto files =
      decode_table(covered.substr(kFilesFixedBytes), digests, snapshot.size() - head.size());
  if (!files.ok()) return files.error();
  return FileHead{std::move(files).value(), head.size()};
}

}  // namespace leasehold::node
