// Refuses events that no driver will handle, so that their callers still get an answer.
#pragma once

#include <leasehold/replica/driver.h>

#include <vector>

namespace leasehold::replica {

/// Answers the caller that waits for `event`, inside this call: not executed, or no index.
/// `overloaded`: because a queue is full. `leader`: the hint for a command or a read.
void refuse(Event& event, bool overloaded, raft::NodeId leader = raft::kNobody);

/// Takes the callers' new proposals and reads out of `events` and refuses them, with `leader` as
/// the hint: for a node that is about to end, or has no seat in the group. Leaves what peers send.
void refuse_calls(std::vector<Event>& events, raft::NodeId leader);

}  // namespace leasehold::replica
