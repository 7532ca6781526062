// Where the entries of one segment stand.
#pragma once

#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::storage {

/// Entries that are stored one behind the other: `count` of them from `first` on, in `bytes` bytes
/// from `offset` on.
struct Run {
  raft::Index first;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  raft::Index last() const { return raft::Index(first.value() + count - 1); }
};

/// The runs of one group in a segment, ascending by index. One run per batch, or one per kRunBytes
/// of a large batch: small enough to be read for one entry.
class Positions {
 public:
  static constexpr std::uint64_t kRunBytes = std::uint64_t{64} << 10U;

  const std::vector<Run>& runs() const { return runs_; }
  bool empty() const { return runs_.empty(); }

  /// An entry was appended to the log.
  void add(raft::Index index, std::uint64_t offset, std::uint64_t bytes);
  /// An entry was copied to this segment. One that stands here already stays where it is.
  void put(raft::Index index, std::uint64_t offset, std::uint64_t bytes);
  /// Forgets `from` and everything above it.
  void cut(raft::Index from);
  /// The number of the run that holds `index`, or of the first one above it.
  std::size_t find(raft::Index index) const;

 private:
  /// Whether the entry follows the run in the file and in the log; then it is of the run.
  static bool extend(Run& run, raft::Index index, std::uint64_t offset, std::uint64_t bytes);

  std::vector<Run> runs_;
};

}  // namespace leasehold::storage
