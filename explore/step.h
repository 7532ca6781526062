// What may happen next.
#pragma once

#include <cstdint>

namespace leasehold::explore {

enum class StepKind : std::uint8_t {
  rates,      ///< the first step, or what follows the commit of a larger bound on the drift: what =
              ///< the rates of all clocks, a digit 0..2 for each node
  advance,    ///< one unit of true time passes
  tick,       ///< the timer of replica `node` falls, at once or late
  beat,       ///< the process of `node` begins a beat
  look,       ///< it looks which promises between processes have ended
  deliver,    ///< flight `what` arrives
  duplicate,  ///< the same, and it stays on its way
  meet,       ///< all that is on its way between the nodes of the set `what`, and what follows
  sync,       ///< what `node` has written is durable
  apply,      ///< the state machine of replica `node` shows what it was given
  restart,    ///< of `node`; what is not durable is lost
  propose,    ///< at replica `node`
  read,       ///< at replica `node`
  transfer,   ///< from replica `node` to node `what`
  change,     ///< of the members by replica `node`: see World::kAllVote
  settings,   ///< of the group by replica `node`: see World::kShorter
  notice,     ///< to `node`: an earlier process of another has ended; what = World::notice_of()
  suspend,    ///< the machine of `node` sleeps
  wake,       ///< and wakes
  wipe,       ///< `node` starts again, in an empty directory
  cut,        ///< the log of replica `node` is cut behind what is committed
  lose,  ///< flight `what` never arrives. Only in beginnings: in a search it may just stay on its
         ///< way
  lose_all,  ///< all that is on its way. Of beginnings only
  keep,      ///< flight `what` is set aside until the search begins. Of beginnings only
};

/// Nodes count from 0 here, flights by their place. Replicas do as nodes: those of the first group
/// come first. No rate of five clocks is above 242.
struct Step {
  StepKind kind = StepKind::advance;
  std::uint8_t node = 0;
  std::uint8_t what = 0;
  friend bool operator==(const Step&, const Step&) = default;
};

}  // namespace leasehold::explore
