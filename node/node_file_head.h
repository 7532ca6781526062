// What stands in front of a snapshot of files, which follow one behind the other (integers
// little-endian):
//
//   offset  size  field
//        0     4  magic "LHFS"
//        4     4  format: 1, or 2 if a file has digests
//        8     4  bytes of the table of the files
//       12     n  the table: for each its name (length in 4 bytes, bytes) and its size in 8; in
//                 format 2 also its digests (length in 4 bytes, bytes)
//     12+n     4  CRC32C of all before
//
// The digests of a file are the SHA-256 of each MiB of it, the last one may be shorter; or none.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/file_snapshot.h>
#include <leasehold/replica/state_machine.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::node {

inline constexpr std::size_t kDigestBytes = 32;
inline constexpr std::size_t kPartNameBytesMax = 255;

struct FileInHead {
  std::string name;
  std::uint64_t size = 0;
  std::string digests{};  ///< empty, or digest_bytes(size) bytes
};

struct FileHead {
  std::vector<FileInHead> files;
  std::uint64_t files_at = 0;  ///< where the first one begins in the snapshot
};

/// Of the digests of a file.
std::uint64_t digest_bytes(std::uint64_t file_size);
/// Of the block of `file`, which has digests, that begins at `offset`.
std::string_view digest_at(const FileInHead& file, std::uint64_t offset);
bool valid_part_name(const std::string& name);

std::string encode_file_head(const std::vector<FileInHead>& files);
/// The bytes of the whole head, or the bytes that are needed to know it. `front` is what there is
/// of the snapshot. Errors: corrupted.
Result<std::uint64_t> file_head_bytes(std::string_view front, std::uint64_t snapshot_size);
/// Nothing of it is believed. Errors: corrupted, and those of the snapshot.
Result<FileHead> read_file_head(const replica::Snapshot& snapshot);

}  // namespace leasehold::node
