// What a search may have, and where it begins.
#pragma once

#include <leasehold/raft/message.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace leasehold::explore {

/// Passes a message through the codec.
using Carrier = std::function<raft::Message(const raft::Message&)>;

inline constexpr std::size_t kNodesMax = 5;
inline constexpr std::size_t kGroupsMax = 2;
inline constexpr std::uint8_t kNothingAgreed = 255;

/// What a run may have at most. Each adds states to the search.
struct Bounds {
  std::uint8_t time = 4;  ///< units of true time, see World::kUnit
  std::uint8_t restarts = 0;
  std::uint8_t duplicates = 0;  ///< messages that arrive a second time
  std::uint8_t proposals = 0;
  std::uint8_t reads = 0;  ///< confirmed by a quorum
  std::uint8_t transfers = 0;
  std::uint8_t changes = 0;   ///< of the members
  std::uint8_t settings = 0;  ///< changes of D, or of the bound on the drift
  std::uint8_t suspends = 0;  ///< machines that sleep, and may wake again
  std::uint8_t notices = 0;   ///< that an earlier process of another node has ended
  std::uint8_t wipes = 0;     ///< nodes that lose their directory and begin with an empty one
  std::uint8_t cuts =
      0;  ///< of a log, behind what is committed: a node that lacks it gets a snapshot
  std::uint8_t beats = 0;    ///< of processes; with `shared` alone
  std::uint8_t flights = 8;  ///< messages on their way at one instant; states with more are skipped
  std::uint8_t terms = 3;    ///< states with a later term are skipped
  std::uint8_t nodes = 3;    ///< at most kNodesMax
  std::uint8_t members = 0;  ///< nodes 1 to `members` form the group; 0: all
  /// Of which each node has a replica, all with the same members. More than one: with `shared`
  /// alone.
  std::uint8_t groups = 1;
  std::uint8_t voters = 0;  ///< nodes 1 to `voters` vote at first, other members learn; 0: all
  /// Each clock runs true, or this many percent too fast or too slow; the nodes tolerate 25.
  std::uint8_t drift_percent = 25;
  /// The group has agreed on settings, with a bound of this many percent on the drift; its nodes
  /// were started with a bound of 0. kNothingAgreed: each follows what it was started with.
  std::uint8_t agreed_percent = kNothingAgreed;
  bool shared = false;     ///< the promises of groups rest on those between processes
  bool slow_disk = false;  ///< a write is durable when a step of its own says so
  /// A state machine shows what it was given when a step of its own says so, and the leader keeps
  /// the news of what it does not show for a while.
  bool slow_apply = false;
  bool drift = true;          ///< the clocks may run at different rates
  bool uneven = false;        ///< all nodes but the first are set to a shorter D
  bool unbound = false;       ///< the last node answers like any other, and promises nothing
  bool witness = false;       ///< the last node keeps the log and no state machine
  bool sole = false;          ///< a change may also leave the leader alone
  bool meetings = false;      ///< a group may exchange all its messages on their way, as one step
  bool readers_only = false;  ///< only what a reader could notice is a violation
  bool rules = false;         ///< and each broken rule, harmless or not: World::check_rules()
  Carrier codec;              ///< what every message passes through; empty: none
  /// Steps to take before the search begins, as World::text() writes them, with commas between
  /// them. The bounds do not count them.
  std::string beginning;
};

/// Beginnings that have a name. For three nodes or more; the last node is the one away or late.
namespace beginning {

/// Node 1 leads term 1, and all have acknowledged its newest round.
std::string led(std::size_t nodes);
/// As led(), but the last node has heard nothing.
std::string one_away(std::size_t nodes);
/// As led(), and a copy of the last node's newest answer is on its way.
std::string late_answer(std::size_t nodes);
/// As led(), but in term 3; node 2 led term 2. The last node's answer to a round of term 1 is still
/// on its way, and the next round will have the same number.
std::string led_before(std::size_t nodes);
/// As led(), and node 2 leads the second of `groups`. Each process has acknowledged a beat of each
/// other one, and all promises are bound.
std::string bound(std::size_t nodes, std::size_t groups);

}  // namespace beginning

}  // namespace leasehold::explore
