// The calls of a replica, and their results.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/base/strong.h>
#include <leasehold/raft/membership_change.h>
#include <leasehold/raft/ready.h>
#include <leasehold/raft/transfer.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace leasehold::replica {

/// Calls that are cancelled together: the caller's own number for a client, a session or a single
/// call. 0: in no group.
using CallGroup = StrongInt<struct CallGroupTag>;

/// How a proposal ended.
enum class ProposeStatus : std::uint8_t {
  committed,  ///< applied on this node; `result` is the state machine's
  dropped,    ///< it was not and will not be executed: safe to try again
  unknown,    ///< may still be executed
};
struct ProposeResult {
  ProposeStatus status = ProposeStatus::unknown;
  raft::LogId id;           ///< committed: where
  Bytes result;             ///< committed: what apply() returned
  bool overloaded = false;  ///< dropped: because a bounded queue is full
  /// dropped: the node whose disk has no space left for its log; kNobody: another reason.
  raft::NodeId disk_full_at;
  /// dropped: the leadership is not the expected one. This is the node's term, and `leader` the
  /// leader that it knows.
  std::optional<raft::Term> other_leadership{};
  /// Not committed: the leader as far as this node knows, a hint; kNobody if unknown.
  raft::NodeId leader;
};
using ProposeCompletion = std::function<void(ProposeResult)>;

struct ReadResult {
  /// The state machine has applied this index and may be read now. None: refused or timed out, safe
  /// to try again.
  std::optional<raft::Index> index;
  raft::ReadBasis basis = raft::ReadBasis::quorum;  ///< meaningless for mode `log`
  /// By the age of the state (Read::max_age): not linearizable, and `basis` is meaningless.
  bool stale = false;
  bool overloaded = false;
  raft::NodeId leader;  ///< a hint; kNobody if unknown, and for a read that the log answered
};
using ReadCompletion = std::function<void(ReadResult)>;

/// How a call about the group itself ended.
enum class GroupCallStatus : std::uint8_t {
  done,     ///< a change is committed and complete; a transfer: another node leads
  refused,  ///< nothing was begun; `refused` says why and what to do
  failed,   ///< a transfer: the target did not become leader, and this node still leads, or again
  unknown,  ///< begun, and not seen to end: the deadline passed, or leadership was lost
};
struct ChangeResult {
  GroupCallStatus status = GroupCallStatus::unknown;
  std::optional<raft::ChangeRefused> refused{};
  raft::NodeId leader;  ///< a hint; kNobody if unknown
};
using ChangeCompletion = std::function<void(ChangeResult)>;
struct SettingsResult {
  GroupCallStatus status = GroupCallStatus::unknown;
  std::optional<raft::SettingsRefused> refused{};
  raft::NodeId leader;  ///< a hint; kNobody if unknown
};
using SettingsCompletion = std::function<void(SettingsResult)>;
struct TransferResult {
  GroupCallStatus status = GroupCallStatus::unknown;
  std::optional<raft::TransferRefused> refused{};
  raft::NodeId leader;  ///< done: the leader now, which may differ from the target
};
using TransferCompletion = std::function<void(TransferResult)>;

/// The result of a CutLog.
struct LogCut {
  raft::Index durable;       ///< up to which the state machine is durable now
  raft::Index first_before;  ///< the first entry of the log; earlier ones were cut off
  raft::Index first;
  std::uint64_t bytes_before = 0;  ///< payload bytes of the entries in the log, about
  std::uint64_t bytes = 0;
};
/// Errors: unsupported (the state machine never makes itself durable), overloaded, stopped.
using LogCutCompletion = std::function<void(Result<LogCut>)>;

/// What a reader of the committed log asks for.
struct LogReadFrom {
  raft::Index index{1};  ///< the first entry that it wants
  /// Of the commands in one part, about, and no more than Limits::append_bytes_max; at least one
  /// entry comes.
  std::size_t bytes_max = 1U << 20U;
  /// The reader's own number on this replica. Its place is remembered: the log keeps what stands
  /// from `index` on until its next call, for Limits::log_reader_patience at most behind each call,
  /// and within Limits::log_held_bytes_max. 0: it has none, and the log is cut as ever.
  std::uint64_t reader = 0;
  bool leaves = false;  ///< its place ends with this call
};
struct CommittedCommand {
  raft::LogId id;
  Bytes command;  ///< as it was proposed
};
/// A part of the committed log.
struct LogPart {
  /// The entry that was asked for has been cut off the log, and nothing was read: its effect is in
  /// the state machine alone. Begin with a copy of that state, and go on behind what it contains.
  bool cut = false;
  /// Ascending: all commands of the entries up to `next`. Entries of the engine itself have none,
  /// so there may be none.
  std::vector<CommittedCommand> commands{};
  raft::Index next;    ///< where to go on; if it was cut: the first entry that the log has
  raft::Index commit;  ///< how far this node knows the log to be committed
};
/// Errors: timed_out (nothing new came in time, or the call was cancelled), overloaded
/// (Limits::log_reads_max), unavailable (this node is a witness), stopped, corrupted.
using LogReadCompletion = std::function<void(Result<LogPart>)>;

}  // namespace leasehold::replica
