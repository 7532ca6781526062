// The cursors of SCAN: each number stands for the place behind the last key that a client got.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace leasehold::server {

/// Most cursors that a node remembers, and bytes of their keys. The oldest are forgotten.
inline constexpr std::size_t kScanCursorsMax = 4096;
inline constexpr std::size_t kScanCursorBytesMax = std::size_t{4} << 20U;

/// Where a SCAN goes on. It goes through the groups in rounds: in the first one it shows all keys,
/// and in each further one those of the slots that have gone elsewhere during the round before,
/// until there are none. Versions: of SlotRoutes.
struct ScanPosition {
  std::size_t group = 0;                ///< in ServedGroups::all()
  std::optional<std::string> after;     ///< the last key; none: at the beginning of the group
  std::uint64_t began = 0;              ///< at which version this round did
  std::optional<std::uint64_t> before;  ///< and the one before it; none: it is the first one
};

/// Any thread. A cursor is valid on every connection of this node, any number of times, until it is
/// forgotten or the process ends; an unknown cursor is recognised as unknown, and never taken for
/// another.
class ScanCursors {
 public:
  /// The first number comes from the wall clock, so that a number of an earlier process is not
  /// given again. All stay below 2^53, which every client can hold.
  ScanCursors();

  /// Never 0.
  std::uint64_t add(ScanPosition position);
  std::optional<ScanPosition> find(std::uint64_t cursor) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, ScanPosition> positions_;
  std::size_t bytes_ = 0;
  std::uint64_t next_;
};

}  // namespace leasehold::server
