// The calls of a node in addition to those of replica/calls.h, and their results.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/lease/instant.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/calls.h>

#include <chrono>
#include <cstddef>
#include <functional>

namespace leasehold::node {

/// How long a call may take, and with which others it can be cancelled. A plain duration is enough:
/// `node.propose(command, 2s, done)`.
struct CallOptions {
  // Implicit by intent.
  template <class Rep, class Period>
  // NOLINTNEXTLINE(google-explicit-constructor)
  CallOptions(std::chrono::duration<Rep, Period> t, replica::CallGroup g = replica::CallGroup(0))
      : timeout(std::chrono::duration_cast<lease::Duration>(t)), group(g) {}

  /// From the call on, on the node's clock. Zero or less: the call is refused.
  lease::Duration timeout;
  replica::CallGroup group;
  /// Of a proposal: the state machine executes the command once, however often it is in the log
  /// (session_table.h). Then the node sends it again even when it cannot know whether it was
  /// appended before, and fewer calls end as unknown.
  bool repeatable = false;
};

/// One command of a batch.
struct Proposal {
  Bytes command;
  replica::ProposeCompletion done;
  bool repeatable = false;  ///< as CallOptions::repeatable, which is for the whole batch
};

/// How a drain ended.
struct DrainResult {
  /// No call waits here any more, and this node does not lead, or no other voter is connected that
  /// could lead. False: the time was over first.
  bool complete = false;
  bool transferred = false;  ///< it led, and another node follows
  raft::NodeId leader;       ///< the leader as far as this node knows; kNobody if unknown
  std::size_t waiting = 0;   ///< calls that still wait; stop() ends them
};
using DrainCompletion = std::function<void(DrainResult)>;

}  // namespace leasehold::node
