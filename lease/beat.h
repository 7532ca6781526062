// The numbers by which the promises of many groups rest on one promise between two processes.
#pragma once

#include <leasehold/base/strong.h>
#include <leasehold/lease/process.h>

#include <compare>
#include <cstdint>

namespace leasehold::lease {

/// Number of a beat: what a process sends to every other node once in each heartbeat, whatever
/// groups they share. Rises by one within a process; starts at 1. Zero means "no beat".
using Beat = StrongInt<struct BeatTag>;

/// Counts how often a node has let the promises that rest on its support end. The first part is the
/// node's own process, the second starts at zero with it: so a restart is a new epoch, and nothing
/// of it is ever stored.
struct Epoch {
  Incarnation incarnation{};
  std::uint64_t counter = 0;
  friend bool operator==(const Epoch&, const Epoch&) = default;
  friend auto operator<=>(const Epoch&, const Epoch&) = default;
};

/// What a leader's append asks the member's promise to rest on.
struct Bind {
  Process process;  ///< the leader's own
  Beat beat;        ///< the newest that it has begun
  Epoch epoch;      ///< at which its newest acknowledgement by the member's node stands
  friend bool operator==(const Bind&, const Bind&) = default;
};

}  // namespace leasehold::lease
