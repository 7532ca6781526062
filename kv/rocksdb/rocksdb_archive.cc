// head:  {magic 8}{format u8}{length of the head u32}{cluster u64}{applied u64}{revision u64}
//        {keys u64}{files u32} then for each {name: length u32, bytes}{size u64}, then
//        {CRC32C of all that u32}
// then the files, each in blocks: {up to 64 KiB}{CRC32C of file number u32, offset u64, block}
#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/kv/format_errors.h>
#include <leasehold/kv/rocksdb/rocksdb_archive.h>
#include <leasehold/wire/crc32c.h>

#include <algorithm>

namespace leasehold::kv {
namespace {

constexpr std::string_view kArchiveMagic("LHSNAP\r\n", 8);
constexpr std::uint8_t kArchiveFormat = 1;
constexpr std::string_view kManifest = "MANIFEST-";
constexpr std::string_view kTable = ".sst";
constexpr std::size_t kNumberDigitsMax = 20;
/// A larger size is not that of a file; sums of smaller ones cannot overflow.
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 48U;
constexpr std::size_t kFilesMax = std::size_t{1} << 15U;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kNumberDigitsMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_manifest(std::string_view name) {
  return name.substr(0, kManifest.size()) == kManifest && is_number(name.substr(kManifest.size()));
}

Error corrupted(const std::string& what) {
  return {ErrorCode::corrupted, "the snapshot " + what};
}

/// What a head says, against the rules of ArchiveHead.
Result<void> validate(const ArchiveHead& head) {
  std::size_t currents = 0;
  std::size_t manifests = 0;
  const ArchiveFile* previous = nullptr;
  for (const ArchiveFile& file : head.files) {
    if (!archive_carries(file.name)) {
      return corrupted("carries a file that no database has");
    }
    if (previous != nullptr && previous->name >= file.name) {
      return corrupted("lists its files out of order");
    }
    if (file.size > kFileBytesMax) return corrupted("lists a file of an impossible size");
    currents += file.name == "CURRENT" ? 1 : 0;
    manifests += is_manifest(file.name) ? 1 : 0;
    previous = &file;
  }
  if (currents != 1 || manifests != 1 || head.files.size() > kFilesMax) {
    return corrupted("does not list the files of a database");
  }
  return {};
}

}  // namespace

bool archive_carries(std::string_view name) {
  if (name == "CURRENT" || is_manifest(name)) return true;
  return name.size() > kTable.size() && name.substr(name.size() - kTable.size()) == kTable &&
         is_number(name.substr(0, name.size() - kTable.size()));
}

std::string encode_head(const ArchiveHead& head) {
  LEASEHOLD_ASSERT(validate(head).ok());
  std::string rest;
  BigWriter fields(rest);
  fields.u64(head.cluster_id);
  fields.u64(head.applied);
  fields.u64(head.revision);
  fields.u64(head.keys);
  fields.u32(static_cast<std::uint32_t>(head.files.size()));
  for (const ArchiveFile& file : head.files) {
    fields.sized(file.name);
    fields.u64(file.size);
  }
  std::string out(kArchiveMagic);
  BigWriter to(out);
  to.u8(kArchiveFormat);
  to.u32(static_cast<std::uint32_t>(kArchiveStartBytes + rest.size() + kArchiveCheckBytes));
  to.bytes(rest);
  to.u32(wire::crc32c(out));
  return out;
}

Result<std::size_t> head_bytes(std::string_view start) {
  BigReader in(start);
  if (in.take(kArchiveMagic.size()) != kArchiveMagic) return corrupted("does not begin like one");
  const unsigned format = in.u8();
  if (in.ok() && format != kArchiveFormat)
    return unsupported("the snapshot has", format, kArchiveFormat);
  const std::size_t length = in.u32();
  if (!in.ok()) return corrupted("ends in its head");
  if (length < kArchiveStartBytes + kArchiveCheckBytes || length > kArchiveHeadBytesMax) {
    return corrupted("has a head of an impossible length");
  }
  return length;
}

Result<ArchiveHead> decode_head(std::string_view bytes) {
  const auto length = head_bytes(bytes);
  if (!length) return length.error();
  if (bytes.size() != length.value()) return corrupted("ends in its head");
  const std::string_view checked = bytes.substr(0, bytes.size() - kArchiveCheckBytes);
  BigReader check(bytes.substr(checked.size()));
  if (check.u32() != wire::crc32c(checked)) return corrupted("has a damaged head");
  BigReader in(checked.substr(kArchiveStartBytes));
  ArchiveHead head;
  head.cluster_id = in.u64();
  head.applied = in.u64();
  head.revision = in.u64();
  head.keys = in.u64();
  const std::size_t files = in.u32();
  for (std::size_t i = 0; i < files && in.ok(); ++i) {
    ArchiveFile file;
    file.name = std::string(in.sized());
    file.size = in.u64();
    head.files.push_back(std::move(file));
  }
  if (!in.at_end()) return corrupted("has a malformed head");
  if (auto valid = validate(head); !valid) return valid.error();
  return head;
}

std::uint64_t framed_bytes(std::uint64_t file_bytes) {
  const std::uint64_t blocks = (file_bytes + kArchiveBlockBytes - 1) / kArchiveBlockBytes;
  return file_bytes + blocks * kArchiveCheckBytes;
}

std::uint64_t archive_bytes(const ArchiveHead& head) {
  std::uint64_t total = encode_head(head).size();
  for (const ArchiveFile& file : head.files) total += framed_bytes(file.size);
  return total;
}

std::uint32_t block_check(std::size_t file, std::uint64_t offset, std::string_view block) {
  std::string place;
  BigWriter to(place);
  to.u32(static_cast<std::uint32_t>(file));
  to.u64(offset);
  return wire::crc32c(block, wire::crc32c(place));
}

}  // namespace leasehold::kv
