// The beginning of a backup file. Format: docs/formats/backup.md.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::server {

/// A manifest fills this many bytes; the archive (docs/formats/snapshot.md) follows.
inline constexpr std::size_t kManifestBytes = 4096;
/// Longest name of a cluster, as `--cluster` limits it.
inline constexpr std::size_t kClusterNameBytesMax = 256;

struct BackupManifest {
  std::string cluster;           ///< name of the group that was backed up; 1 to 256 bytes
  std::uint64_t cluster_id = 0;  ///< and its id
  /// Random, above 0: names this backup, and becomes part of the cluster id of a group that is
  /// restored from it.
  std::uint64_t generation = 0;
  raft::NodeId node;           ///< where it was taken
  raft::Term term;             ///< the term of that node then
  raft::Index index;           ///< the last entry whose effect it contains
  std::uint64_t revision = 0;  ///< of the store
  std::uint64_t keys = 0;
  std::uint64_t taken_s = 0;        ///< seconds since 1970, for people
  std::uint64_t archive_bytes = 0;  ///< of what follows the manifest
  /// Of what `leasehold recover` made: where the log ended that the group of cluster_id had left.
  /// None: a backup.
  std::optional<raft::LogId> recovered_end{};
  friend bool operator==(const BackupManifest&, const BackupManifest&) = default;
};

/// kManifestBytes bytes. Asserts that decode_manifest() accepts it.
std::string encode_manifest(const BackupManifest& manifest);
/// Accepts exactly what encode_manifest() makes. Errors, each a sentence that says what to do:
/// corrupted (no backup, or a damaged one), unsupported_format (with both numbers).
Result<BackupManifest> decode_manifest(std::string_view bytes);

/// 16 hex digits, as generations are shown.
std::string generation_text(std::uint64_t generation);

}  // namespace leasehold::server
