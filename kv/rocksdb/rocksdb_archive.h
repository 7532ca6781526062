// The archive: a store's state as one sequence of bytes, which a snapshot sends and a backup keeps.
// Format: docs/formats/snapshot.md. Not for other rooms.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::kv {

/// A file of the database, as the archive carries it.
struct ArchiveFile {
  std::string name;
  std::uint64_t size = 0;
  friend bool operator==(const ArchiveFile&, const ArchiveFile&) = default;
};

/// The beginning of an archive.
struct ArchiveHead {
  std::uint64_t cluster_id = 0;
  std::uint64_t applied = 0;
  std::uint64_t revision = 0;
  std::uint64_t keys = 0;
  /// Ascending by name, no name twice; exactly one CURRENT and one MANIFEST.
  std::vector<ArchiveFile> files;
  friend bool operator==(const ArchiveHead&, const ArchiveHead&) = default;
};

/// The bytes that show the length of a head.
inline constexpr std::size_t kArchiveStartBytes = 13;
inline constexpr std::size_t kArchiveHeadBytesMax = std::size_t{16} << 20U;
/// Bytes of a file under one checksum; the last block of a file may be shorter.
inline constexpr std::size_t kArchiveBlockBytes = std::size_t{64} << 10U;
inline constexpr std::size_t kArchiveCheckBytes = 4;

/// Whether a database may have a file of this name. Nothing else is ever unpacked, so no name can
/// lead out of its folder.
bool archive_carries(std::string_view name);

/// Asserts that decode_head() accepts it.
std::string encode_head(const ArchiveHead& head);
/// How long the head is that begins with `start` (kArchiveStartBytes bytes): at most
/// kArchiveHeadBytesMax. Errors: corrupted, unsupported_format (with both numbers).
Result<std::size_t> head_bytes(std::string_view start);
/// Accepts exactly what encode_head() makes. Errors as head_bytes().
Result<ArchiveHead> decode_head(std::string_view bytes);

/// The length of a file's blocks with their checksums.
std::uint64_t framed_bytes(std::uint64_t file_bytes);
/// The length of the whole archive.
std::uint64_t archive_bytes(const ArchiveHead& head);
/// The checksum of the block at `offset` of file number `file`: a block in another's place has a
/// wrong one.
std::uint32_t block_check(std::size_t file, std::uint64_t offset, std::string_view block);

}  // namespace leasehold::kv
