// What a search may have, and where it begins.
#pragma once

#include <leasehold/raft/message.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace leasehold::explore {

/// A message as it comes out of the codec that it went into.
using Carrier = std::function<raft::Message(const raft::Message&)>;

inline constexpr std::size_t kNodesMax = 5;

/// What a run may have, at most. Each costs states.
struct Bounds {
  std::uint8_t time = 4;  ///< units of true time, see World::kUnit
  std::uint8_t restarts = 0;
  std::uint8_t duplicates = 0;  ///< messages that arrive a second time
  std::uint8_t proposals = 0;
  std::uint8_t reads = 0;  ///< confirmed by a quorum
  std::uint8_t transfers = 0;
  std::uint8_t changes = 0;   ///< of the members
  std::uint8_t suspends = 0;  ///< machines that sleep, and may wake again
  std::uint8_t wipes = 0;     ///< nodes that lose their directory and begin with an empty one
  std::uint8_t cuts = 0;      ///< of a log, behind what is committed: who lacks it gets a snapshot
  std::uint8_t flights = 8;   ///< messages on their way at one instant; states with more are left
  std::uint8_t terms = 3;     ///< states with a later term are left
  std::uint8_t nodes = 3;     ///< at most kNodesMax
  std::uint8_t members = 0;   ///< nodes 1 to `members` form the group; 0: all
  std::uint8_t voters = 0;    ///< nodes 1 to `voters` vote at first, other members learn; 0: all
  /// The clocks run at this many percent less or more than true time, or at its rate; the nodes
  /// trust in 25.
  std::uint8_t drift_percent = 25;
  bool slow_disk = false;     ///< a write is durable when a step of its own says so
  bool drift = true;          ///< the clocks may run at different rates
  bool uneven = false;        ///< all nodes but the first are set to a shorter D
  bool unbound = false;       ///< the last node answers like any, and promises nothing
  bool witness = false;       ///< the last node keeps the log and no state machine
  bool sole = false;          ///< a change may also leave nobody but the leader
  bool meetings = false;      ///< a group may exchange all that is on its way in it, as one step
  bool readers_only = false;  ///< only what a reader could notice is a violation
  bool rules = false;         ///< and each breach of a rule, harmless or not: World::check_rules()
  Carrier codec;              ///< what every message passes through; empty: none
  /// Steps that were taken before the search begins, as World::text() writes them, with commas
  /// between them. They cost nothing of the bounds.
  std::string beginning;
};

/// Beginnings that have a name. For three nodes or more; the last of them is who is away or late.
namespace beginning {

/// Node 1 leads term 1, and all have acknowledged its newest round.
std::string led(std::size_t nodes);
/// As led(), but the last node has heard nothing.
std::string one_away(std::size_t nodes);
/// As led(), and a copy of the last node's newest answer is on its way.
std::string late_answer(std::size_t nodes);
/// As led(), but in term 3. Node 2 led term 2, and the last node's answer to a round of term 1, of
/// which the next round has the number, is on its way.
std::string led_before(std::size_t nodes);

}  // namespace beginning

}  // namespace leasehold::explore
