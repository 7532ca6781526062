// The messages between two processes, of no group. Each may be lost, delayed, duplicated, reordered
// or replayed.
#pragma once

#include <leasehold/lease/beat.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::raft {

/// The sender leads the group no more, in this term and before. The receiver's promise of the group
/// ends, and an append that names an earlier beat than `since` binds no more.
struct ReleasedGroup {
  GroupId group;
  Term term;
  lease::Beat since;  ///< the first beat that has said it to the receiver
  friend bool operator==(const ReleasedGroup&, const ReleasedGroup&) = default;
};

/// Of one beat. What is more follows once the receiver has acknowledged these.
inline constexpr std::size_t kReleasedGroupsMax = 1024;

/// What a process sends to every other node that it shares a group with, once in each heartbeat and
/// whatever groups those are: "promise that you grant no vote against me for `lease`".
struct ProcessBeat {
  lease::Beat beat;
  Duration lease{0};           ///< the D that the beat stands for
  std::int64_t drift_ppm = 0;  ///< that the sender allows the receiver's clock
  /// Ascending by group. Each until the receiver acknowledges a beat that had it.
  std::vector<ReleasedGroup> released;
  friend bool operator==(const ProcessBeat&, const ProcessBeat&) = default;
};

/// The receiver has promised what the beat asks for, durably as far as it has to.
struct ProcessBeatReply {
  Incarnation incarnation;  ///< of the process whose beat it was
  lease::Beat beat;         ///< echo
  lease::Epoch epoch;       ///< at which the receiver's support stood when the beat arrived
  friend bool operator==(const ProcessBeatReply&, const ProcessBeatReply&) = default;
};

}  // namespace leasehold::raft
