// The reads that a follower asks its leader about. A part of Core: see core_read.cc.
#pragma once

#include <leasehold/raft/types.h>

#include <cstdint>
#include <vector>

namespace leasehold::raft {

/// The reads of a follower that are justified in the same way: one request is out at a time,
/// later reads wait for the next one.
struct FollowerReads {
  std::vector<std::uint64_t> asked;
  std::vector<std::uint64_t> waiting;
  std::uint64_t request = 0;
  PromiseInstant sent;
};

}  // namespace leasehold::raft
