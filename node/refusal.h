// What nobody will act on is answered all the same.
#pragma once

#include <leasehold/node/driver.h>

namespace leasehold::node {

/// Answers whoever waits for `event`, here and now: not executed, or no index. `overloaded`:
/// because a queue is full. `leader`: the hint for a command or a read.
void refuse(Event& event, bool overloaded, raft::NodeId leader = raft::kNobody);

}  // namespace leasehold::node
