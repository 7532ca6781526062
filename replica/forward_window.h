// At most once: which commands of the other nodes this leader has seen in its term.
#pragma once

#include <leasehold/raft/types.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace leasehold::replica {

/// Remembers the newest kWindow sequences of each origin. A sequence that was seen, accepted or
/// refused, is never accepted again in the term, so neither a duplicate nor a replay can execute
/// twice. A sequence older than the window may have been seen, so it is not accepted either, and
/// not answered: a refusal would tell the origin that the command was never appended.
class ForwardWindow {
 public:
  static constexpr std::uint64_t kWindow = 65536;

  /// A new term begins.
  void clear() { origins_.clear(); }
  /// Whether the command may be accepted; it counts as seen from now on.
  bool take(const raft::Peer& origin, raft::Incarnation incarnation, std::uint64_t sequence);

 private:
  struct Origin {
    raft::Incarnation incarnation;
    std::uint64_t newest = 0;
    /// One bit per sequence, at sequence % kWindow; only those above newest - kWindow count.
    std::vector<std::uint64_t> seen;
  };
  /// By node id and directory: another directory under the same id begins with incarnation 1 again.
  std::map<std::pair<raft::NodeId, raft::Uuid>, Origin> origins_;
};

}  // namespace leasehold::replica
