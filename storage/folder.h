// The mark of a log's folder: whose it is, and which segments have to be there.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::storage {

/// Where a log ended when it was closed.
struct ClosedAt {
  std::uint64_t segment = 0;   ///< the segment that holds the last frame
  std::uint64_t end = 0;       ///< the offset behind that frame
  std::uint64_t sequence = 0;  ///< of that frame
  friend bool operator==(const ClosedAt&, const ClosedAt&) = default;
};

/// The content of the file `LEASEHOLD` in the folder. It is what makes a folder a log, and it knows
/// what the segments alone cannot: how many there are. A missing newest one would look like a log
/// that ends earlier.
struct FolderMark {
  std::uint64_t cluster_id = 0;
  raft::NodeId id;
  raft::Uuid uuid;
  raft::Incarnation incarnation;  ///< of the newest open
  /// The segments first..last have to exist; last is 0 before the first one was made.
  std::uint64_t first_segment = 1;
  std::uint64_t last_segment = 0;
  /// Set by a clean close.
  std::optional<ClosedAt> closed;
  friend bool operator==(const FolderMark&, const FolderMark&) = default;
};

inline constexpr std::string_view kMarkName = "LEASEHOLD";
/// No mark is near this long.
inline constexpr std::size_t kMarkBytesMax = 1024;

std::string encode_mark(const FolderMark& mark);
/// Accepts exactly what encode_mark makes. Errors: unsupported_format (with both numbers),
/// corrupted.
Result<FolderMark> decode_mark(std::string_view bytes);

}  // namespace leasehold::storage
