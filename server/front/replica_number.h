// The numbers of replicas, where a node has many groups.
#pragma once

#include <leasehold/raft/types.h>

#include <cstdint>

namespace leasehold::server {

/// Nodes with many groups have numbers below this.
inline constexpr std::uint64_t kNodeNumbersEnd = 10'000;

/// A node's first replica of a group has the node's number, and each later one a number that is
/// higher by kNodeNumbersEnd: no number is used twice, and each says at which node it is.
constexpr raft::NodeId node_of(raft::NodeId replica) {
  return raft::NodeId(replica.value() % kNodeNumbersEnd);
}

/// Of the node's next replica of the same group.
constexpr raft::NodeId replica_after(raft::NodeId replica) {
  return raft::NodeId(replica.value() + kNodeNumbersEnd);
}

}  // namespace leasehold::server
