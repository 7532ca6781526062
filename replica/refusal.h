// What nobody will act on is answered all the same.
#pragma once

#include <leasehold/replica/driver.h>

#include <vector>

namespace leasehold::replica {

/// Answers whoever waits for `event`, here and now: not executed, or no index. `overloaded`:
/// because a queue is full. `leader`: the hint for a command or a read.
void refuse(Event& event, bool overloaded, raft::NodeId leader = raft::kNobody);

/// Takes the callers' new proposals and reads out of `events` and refuses them, with `leader` as
/// the hint: for a node that is about to end, or has no seat in the group. What peers send stays.
void refuse_calls(std::vector<Event>& events, raft::NodeId leader);

}  // namespace leasehold::replica
