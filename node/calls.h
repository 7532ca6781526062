// The calls of a node in addition to those of replica/calls.h, and their results.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/lease/instant.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/calls.h>
#include <leasehold/replica/trace_context.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>

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
  /// Of a proposal: under which leadership it may be appended. Under another one it ends as
  /// dropped, with ProposeResult::other_leadership: it was not and will not be executed. A node
  /// that does not know the leader waits for one, up to the timeout. The term and the leader that
  /// the caller saw are in NodeStatus, and the term of a command in ProposeResult::id.
  raft::ExpectedLeader expected{};
  /// Of a read: how old the state may be. Every write that was acknowledged, anywhere, at least
  /// this long before the call is in what the caller then reads; a later one may be missing. Where
  /// this node's state is older, or nobody knows its age, the read is linearizable in the mode that
  /// the call names. Zero or less: always that.
  lease::Duration max_age{0};
  /// Of a proposal or a read: the span that the call is a part of, which decides whether it has
  /// one, too (NodeOptions::tracer). Only read inside the call. Null: none, and the Tracer decides.
  const replica::TraceContext* trace = nullptr;
  /// Of a change of the members: the membership that the caller saw (NodeStatus::membership_id). If
  /// another one is in effect, nothing is changed: membership_changed.
  std::optional<raft::MembershipId> expected_membership{};
};

/// One command of a batch.
struct Proposal {
  Bytes command;
  replica::ProposeCompletion done;
  bool repeatable = false;  ///< as CallOptions::repeatable, which is for the whole batch
  /// As CallOptions::trace, which is for those that have null here.
  const replica::TraceContext* trace = nullptr;
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
