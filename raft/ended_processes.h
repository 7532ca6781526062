// Which processes of the other nodes are known to have ended. A part of Core: see core_death.cc.
#pragma once

#include <leasehold/raft/membership.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <map>

namespace leasehold::raft {

/// Of each number the newest process that has ended, with its directory.
class EndedProcesses {
 public:
  /// Numbers beyond this are forgotten, unless they are members.
  static constexpr std::size_t kMax = 2 * kMembersMax;

  /// Whether `process` is known to have ended.
  bool contains(const Peer& process) const;
  /// It has ended. False: that was known.
  bool add(const Peer& process, const Membership& members);
  /// For comparing states.
  const std::map<NodeId, Peer>& newest() const { return newest_; }

 private:
  /// Invariant: at most kMax.
  std::map<NodeId, Peer> newest_;
};

}  // namespace leasehold::raft
