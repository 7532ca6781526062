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

/// The runs of a segment, ascending by index and by offset, without gaps. One run per batch, or one
/// per kRunBytes of a large batch: small enough to be read for one entry.
class Positions {
 public:
  static constexpr std::uint64_t kRunBytes = std::uint64_t{64} << 10U;

  const std::vector<Run>& runs() const { return runs_; }
  bool empty() const { return runs_.empty(); }

  /// Appends one entry.
  void add(raft::Index index, std::uint64_t offset, std::uint64_t bytes);
  /// Forgets `from` and everything above it.
  void cut(raft::Index from);
  /// The number of the run that holds `index`, or of the first one above it.
  std::size_t find(raft::Index index) const;

 private:
  std::vector<Run> runs_;
};

}  // namespace leasehold::storage
