// What callers ask of a replica, and how each call ends.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/base/strong.h>
#include <leasehold/raft/membership_change.h>
#include <leasehold/raft/ready.h>
#include <leasehold/raft/transfer.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace leasehold::replica {

/// Calls that are cancelled together: the caller's own number for a client, a session or a single
/// call. 0: in no group.
using CallGroup = StrongInt<struct CallGroupTag>;

/// How a proposal ended.
enum class ProposeStatus : std::uint8_t {
  committed,  ///< applied on this node; `result` is the state machine's
  dropped,    ///< it was not and will not be executed: safe to try again
  unknown,    ///< may yet be executed
};
struct ProposeResult {
  ProposeStatus status = ProposeStatus::unknown;
  raft::LogId id;           ///< committed: where
  Bytes result;             ///< committed: what apply() returned
  bool overloaded = false;  ///< dropped: because a bounded queue is full
  /// dropped: because the disk of this node has no space left for its log; kNobody: it was not.
  raft::NodeId disk_full_at;
  /// Not committed: whom this node takes for the leader, a hint; kNobody if unknown.
  raft::NodeId leader;
};
using ProposeCompletion = std::function<void(ProposeResult)>;

/// How a linearizable read is justified. `log` costs a log entry and exists to be compared with.
enum class ReadMode : std::uint8_t { lease, quorum, log };
struct ReadResult {
  /// The state machine has applied this index and may be read now. None: refused or timed out, safe
  /// to try again.
  std::optional<raft::Index> index;
  raft::ReadBasis basis = raft::ReadBasis::quorum;  ///< meaningless for mode `log`
  bool overloaded = false;
  raft::NodeId leader;  ///< a hint; kNobody if unknown, and for a read that the log answered
};
using ReadCompletion = std::function<void(ReadResult)>;

/// How a call about the group itself ended.
enum class GroupCallStatus : std::uint8_t {
  done,     ///< a change of the members is committed and complete; a hand-over: another node leads
  refused,  ///< nothing was begun; `refused` says why and what to do
  failed,   ///< a hand-over: the target did not take over, and this node leads on or again
  unknown,  ///< begun, and not seen to end: the deadline passed, or leadership was lost
};
struct ChangeResult {
  GroupCallStatus status = GroupCallStatus::unknown;
  std::optional<raft::ChangeRefused> refused{};
  raft::NodeId leader;  ///< a hint; kNobody if unknown
};
using ChangeCompletion = std::function<void(ChangeResult)>;
struct HandOverResult {
  GroupCallStatus status = GroupCallStatus::unknown;
  std::optional<raft::TransferRefused> refused{};
  raft::NodeId leader;  ///< done: who leads now, which may be another than was named
};
using HandOverCompletion = std::function<void(HandOverResult)>;

/// How a log was cut because somebody asked for it.
struct LogCut {
  raft::Index durable;       ///< what the state machine holds durably now
  raft::Index first_before;  ///< the first entry of the log; what is below it was cut off
  raft::Index first;
  std::uint64_t bytes_before = 0;  ///< payload bytes of the entries in the log, about
  std::uint64_t bytes = 0;
};
/// Errors: unsupported (the state machine never makes itself durable), overloaded, stopped.
using LogCutCompletion = std::function<void(Result<LogCut>)>;

}  // namespace leasehold::replica
