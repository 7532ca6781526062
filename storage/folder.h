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

/// What stood in front of the first segment. That is gone, but this shows that nothing is missing
/// behind it.
struct Predecessor {
  std::uint64_t salt = 0;      ///< of the segment before; 0 before the first of all
  std::uint64_t sequence = 0;  ///< of the last frame that is gone
  friend bool operator==(const Predecessor&, const Predecessor&) = default;
};

/// The content of the file `LEASEHOLD` in the folder. It is what makes a folder a log, and it knows
/// what the segments alone cannot: how many there are. A missing newest one would look like a log
/// that ends earlier.
struct FolderMark {
  /// Of the log of one group, or of many (segment_record.h). It only rises: then older frames stay
  /// as they are.
  std::uint8_t format = 3;
  std::uint64_t cluster_id = 0;
  raft::NodeId id;
  raft::Uuid uuid;
  raft::Incarnation incarnation;  ///< of the newest open
  /// The segments first..last have to exist; last is 0 before the first one was made. Those below
  /// the first were cut off: open() removes any that are left.
  std::uint64_t first_segment = 1;
  std::uint64_t last_segment = 0;
  Predecessor predecessor;
  /// Set by a clean close.
  std::optional<ClosedAt> closed;
  friend bool operator==(const FolderMark&, const FolderMark&) = default;
};

inline constexpr std::string_view kMarkName = "LEASEHOLD";
/// The size of every mark: one sector, so that on a full disk, where no second file can be made, a
/// new mark can overwrite the old one.
inline constexpr std::size_t kMarkBytes = 512;

std::string encode_mark(const FolderMark& mark);
/// Accepts exactly what encode_mark makes. Errors: unsupported_format (with both numbers),
/// corrupted.
Result<FolderMark> decode_mark(std::string_view bytes);

}  // namespace leasehold::storage
