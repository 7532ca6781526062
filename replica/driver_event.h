// The inputs of a Driver: calls, messages, the passing of time, and the answers of storage, applier
// and snapshots.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/raft/core.h>
#include <leasehold/replica/calls.h>
#include <leasehold/replica/span.h>
#include <leasehold/wire/peer_message.h>

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace leasehold::replica {

/// Nothing but the passing of time.
struct Tick {};
struct PeerMessageReceived {
  raft::Peer from;
  wire::PeerMessage message;
};
/// The process of `peer`, and all before it in its directory, have ended: raft::Core::ended().
struct PeerEnded {
  raft::Peer peer;
};
/// What other groups of this process share with this one has changed (ProcessDriver): the leader of
/// the group has let it go, or promises have been renewed. See Core::released() and
/// Core::promises_moved().
struct GroupReleased {
  raft::Peer holder;
  raft::Term term;
};
struct PromisesMoved {};
/// The group has waited for its turn to ask for votes (raft::Core::awaits_place()).
struct MayCampaign {};
/// The answer to SupportStore::remember(). For the ProcessDriver alone.
struct SupportsRemembered {
  std::uint64_t write = 0;
};
/// Replicate `command`. A follower forwards it to the leader, and answers it when it has applied
/// the command itself.
struct Propose {
  Bytes command;
  raft::PromiseInstant deadline;  ///< past it: unknown if it may have been appended, else dropped
  ProposeCompletion done;
  CallGroup group{};
  /// The state machine executes it once, however often it is in the log (session_table.h). So the
  /// driver sends it again even when it cannot know whether it was appended before.
  bool repeatable{};
  /// The command is appended under this leadership or not at all. Checked each time that the driver
  /// sends or queues it; a follower sends it in the term that it checked, and the leader takes it
  /// in that term only.
  raft::ExpectedLeader expected{};
  SpanPointer span{};  ///< gets the stations; who has begun it ends it, in `done`
};
struct Read {
  raft::ReadMode mode = raft::ReadMode::lease;
  raft::PromiseInstant deadline;
  ReadCompletion done;
  CallGroup group{};
  /// Above 0: the state as it is will do if it is at most this old (FreshSince); else `mode`.
  lease::Duration max_age{0};
  SpanPointer span{};  ///< as Propose::span
};
/// Complete once this node has applied `index`: for a lease read that found `applied` lagging.
struct WaitApplied {
  raft::Index index;
  raft::PromiseInstant deadline;
  ReadCompletion done;
  CallGroup group{};
  SpanPointer span{};  ///< as Propose::span
};
/// Change the members of the group to exactly `wanted`. Only at the leader; done at once if the
/// group is already so. New voters have to be members that have caught up: add them as learners
/// first.
struct ChangeMembers {
  raft::WantedMembers wanted;
  raft::PromiseInstant deadline;
  ChangeCompletion done;
  CallGroup group{};
  std::optional<raft::MembershipId> expected{};  ///< only from this membership
};
/// Change the settings of the group. Only at the leader; done at once if the group is already so.
struct ChangeSettings {
  raft::SettingsEdit edit;
  raft::PromiseInstant deadline;
  SettingsCompletion done;
  CallGroup group{};
};
/// Transfer the leadership to `to`; kNobody: to the most advanced voter. Only at the leader, and
/// only before the deadline. Until it ends, proposals wait.
struct TransferLeadership {
  raft::NodeId to;
  raft::PromiseInstant deadline;
  TransferCompletion done;
  CallGroup group{};
};
/// Make the applied state durable, then cut the log to the tail that slow followers may need
/// (Limits::log_tail_bytes), even if little can be cut. On a full disk only entries whose effect is
/// already durable can go. Has no deadline.
struct CutLog {
  LogCutCompletion done;
};
/// Give the reader what is committed and durable on this node from an index on, as soon as there is
/// something.
struct ReadLog {
  LogReadFrom from;
  raft::PromiseInstant deadline;
  LogReadCompletion done;
  CallGroup group{};
};
/// Complete every waiting call of `group`, as if its deadline had passed. Visits every waiter.
struct Cancel {
  CallGroup group;
};
struct Persisted {
  raft::ReadyId id;
};
struct EntriesRead {
  std::uint64_t token = 0;
  Result<std::vector<raft::Entry>> entries;
};
/// Everything up to `last` is applied and published, and its callers are completed.
struct Applied {
  raft::Index last;
  /// Sequences of the applied commands that this process proposed.
  std::vector<std::uint64_t> own;
};
/// The answer to Snapshots::make_durable().
struct MachineDurable {
  Result<raft::Index> index;
};
/// A snapshot that this node took and can send.
struct TakenSnapshot {
  raft::Index last;
  std::uint64_t tag = 0;  ///< names it; random
  std::uint64_t size = 0;
};
/// The answer to Snapshots::take().
struct SnapshotTaken {
  Result<TakenSnapshot> snapshot;
};
/// The answer to Snapshots::read().
struct SnapshotRead {
  std::uint64_t token = 0;
  Result<Bytes> data;
};
/// The answer to Snapshots::store().
struct ChunkStored {
  raft::Core::StoredChunk stored;
  /// Set: this was the last byte, and the whole snapshot is verified and durable.
  std::optional<raft::Membership> complete;
  /// So many bytes were here already and have been copied since the answer before.
  std::uint64_t copied = 0;
};
/// The disk of the log is full, or has space again.
struct StorageSpace {
  bool full = false;
};
/// The same of the disk of the state machine.
struct MachineSpace {
  bool full = false;
};
/// The storage failed: the node stops (Driver::failure() says why).
struct StorageFailed {
  Error error;
};
/// Complete every waiting call, with `unknown` or a refusal, and accept no more.
struct Stop {};

using Event =
    std::variant<Tick, PeerMessageReceived, PeerEnded, GroupReleased, PromisesMoved, MayCampaign,
                 SupportsRemembered, Propose, Read, WaitApplied, ChangeMembers, ChangeSettings,
                 TransferLeadership, CutLog, ReadLog, Cancel, Persisted, EntriesRead, Applied,
                 MachineDurable, SnapshotTaken, SnapshotRead, ChunkStored, StorageSpace,
                 MachineSpace, StorageFailed, Stop>;

}  // namespace leasehold::replica
