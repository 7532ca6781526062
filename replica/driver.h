// The ordering loop of one replica: it feeds the core, carries out its effects in their order, and
// completes the callers.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/base/strong.h>
#include <leasehold/net/transport.h>
#include <leasehold/raft/core.h>
#include <leasehold/replica/lease_view.h>
#include <leasehold/replica/observer.h>
#include <leasehold/storage/storage.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
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
  /// Not committed: the leader as far as this node knows, a hint; kNobody if unknown.
  raft::NodeId leader;
};
using ProposeCompletion = std::function<void(ProposeResult)>;

/// How a linearizable read is justified. `log` costs a log entry and is for comparison.
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
  done,     ///< a member change is committed and complete; a transfer: another node leads
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
struct HandOverResult {
  GroupCallStatus status = GroupCallStatus::unknown;
  std::optional<raft::TransferRefused> refused{};
  raft::NodeId leader;  ///< done: the leader now, which may differ from the target
};
using HandOverCompletion = std::function<void(HandOverResult)>;

// The inputs of a Driver.

/// Nothing but the passing of time.
struct Tick {};
struct PeerMessageReceived {
  raft::Peer from;
  wire::PeerMessage message;
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
};
struct Read {
  ReadMode mode = ReadMode::lease;
  raft::PromiseInstant deadline;
  ReadCompletion done;
  CallGroup group{};
};
/// Complete once this node has applied `index`: for a lease read that found `applied` lagging.
struct WaitApplied {
  raft::Index index;
  raft::PromiseInstant deadline;
  ReadCompletion done;
  CallGroup group{};
};
/// Change the members of the group to exactly `wanted`. Only at the leader; done at once if the
/// group is already so. New voters have to be members that have caught up: add them as learners
/// first.
struct ChangeMembers {
  raft::WantedMembers wanted;
  raft::PromiseInstant deadline;
  ChangeCompletion done;
  CallGroup group{};
};
/// Transfer the leadership to `to`; kNobody: to the most advanced voter. Only at the leader, and
/// only before the deadline. Until it ends, proposals wait.
struct HandOver {
  raft::NodeId to;
  raft::PromiseInstant deadline;
  HandOverCompletion done;
  CallGroup group{};
};
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
/// Make the applied state durable, then cut the log to the tail that slow followers may need
/// (DriverOptions::log_tail_bytes), even if little can be cut. On a full disk only entries whose
/// effect is already durable can go. Has no deadline.
struct CutLog {
  LogCutCompletion done;
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
    std::variant<Tick, PeerMessageReceived, Propose, Read, WaitApplied, ChangeMembers, HandOver,
                 CutLog, Cancel, Persisted, EntriesRead, Applied, MachineDurable, SnapshotTaken,
                 SnapshotRead, ChunkStored, StorageSpace, MachineSpace, StorageFailed, Stop>;

class Callers;

/// Applies committed entries on another thread (or at another simulated instant). Answers each
/// call, in order: it publishes the index in the LeaseView, then completes the calls of
/// Ports::callers for these commands, and finally sends one Applied event. The functions of apply.h
/// do the parts.
class Applier {
 public:
  virtual ~Applier() = default;
  virtual void apply(std::vector<raft::Entry> entries) = 0;
  /// Installs the snapshot that Snapshots::store() completed. The answer, in order with the calls
  /// of apply(), is one Applied whose `last` is id.last.index.
  virtual void install(const raft::SnapshotId& id) = 0;
};

/// Snapshots of the state machine: taken, read for a peer, and received from one. The work is done
/// on another thread (or at other simulated instants); each call that has an answer gets one event.
class Snapshots {
 public:
  virtual ~Snapshots() = default;
  /// Makes the applied state durable, so that the log can be cut: MachineDurable.
  virtual void make_durable() = 0;
  /// Takes a snapshot and keeps it until release(): SnapshotTaken.
  virtual void take() = 0;
  /// Reads `bytes` bytes of a taken snapshot: SnapshotRead.
  virtual void read(std::uint64_t token, std::uint64_t tag, std::uint64_t offset,
                    std::size_t bytes) = 0;
  virtual void release(std::uint64_t tag) = 0;
  /// Stores a chunk of an arriving snapshot: ChunkStored, in order. A chunk of a snapshot other
  /// than the arriving one begins a new one, and only at offset 0; a chunk that does not continue
  /// the stored ones is dropped, and the answer names the offset to continue from. Stored chunks
  /// survive a restart. While a complete snapshot waits to be installed, chunks of others are
  /// refused.
  virtual void store(const raft::ReceivedChunk& received) = 0;
  /// A snapshot that store() completed is not needed.
  virtual void discard() = 0;
};

struct DriverOptions {
  raft::CoreOptions core;
  /// Payload bytes of recent entries kept in memory, so that healthy followers and the applier
  /// never wait for the disk. Entries that are not durable or not yet given to the applier are
  /// always kept.
  std::size_t cache_bytes_max = 8U << 20U;
  /// Payload bytes of one append message; one entry may exceed it.
  std::size_t append_bytes_max = 1U << 20U;
  /// Payload bytes of one call of Applier::apply, and calls under way.
  std::size_t apply_bytes_max = 1U << 20U;
  std::size_t applies_max = 4;
  /// Proposals that wait for their result, by number and by bytes. Beyond it a proposal is dropped
  /// as overloaded.
  std::size_t proposals_max = 65536;
  std::size_t proposal_bytes_max = 64U << 20U;
  /// One command. A larger one is dropped, however often it is tried: it would not fit into the
  /// frames between the nodes.
  std::size_t command_bytes_max = 24U << 20U;
  /// Reads that wait. Beyond it a read is refused as overloaded.
  std::size_t reads_max = 262144;
  /// Bytes that a leader has appended but not committed. Beyond it forwarded and own proposals are
  /// dropped as overloaded.
  std::size_t uncommitted_bytes_max = 64U << 20U;

  // The log is cut, once the state machine has made the effect of those entries durable: down to
  // log_tail_bytes when there are log_cut_bytes more than that, and entries older than log_age_max.
  // A follower that needs cut entries gets a snapshot, which costs more than entries: the tail
  // should hold the writes of the time in which a member restarts.

  std::uint64_t log_tail_bytes = 64U << 20U;
  /// A larger one makes cuts rarer, and with them the writes of the state machine.
  std::uint64_t log_cut_bytes = 64U << 20U;
  /// Zero: the age does not matter.
  lease::Duration log_age_max = std::chrono::hours(24);
  /// While a snapshot is sent, the log keeps the entries after it for the time when it has arrived,
  /// up to this many bytes: a peer that is slower than that needs another snapshot.
  std::uint64_t log_held_bytes_max = 1ULL << 30U;

  /// One chunk of a snapshot. It must fit into a frame between the nodes.
  std::size_t snapshot_chunk_bytes = 256U << 10U;
  /// Bytes of a snapshot that may be under way to one peer.
  std::size_t snapshot_window_bytes = 1U << 20U;
  /// The rate of all outgoing snapshots together. 0: no limit.
  std::uint64_t snapshot_bytes_per_second = 0;
  /// A peer that confirms nothing for this time is given up until it is heard from again.
  lease::Duration snapshot_patience = std::chrono::seconds(30);
  /// A snapshot that no peer needs any more is kept for this time, for another peer.
  lease::Duration snapshot_keep = std::chrono::seconds(10);
  /// Arriving chunks that wait to be stored. Beyond it they are dropped, as if lost.
  std::size_t chunks_storing_max = 16;
  /// Callers that wait for a CutLog. Beyond it one is refused as overloaded.
  std::size_t cuts_waiting_max = 64;
};

/// Counters since the start. Read on the node's thread.
struct DriverCounters {
  std::uint64_t proposals = 0;            ///< commands taken from this node's own callers
  std::uint64_t proposals_forwarded = 0;  ///< of these, sent to the leader
  std::uint64_t proposals_resent = 0;     ///< to the same leader again: no answer came
  std::uint64_t forwards_received = 0;    ///< commands that followers sent here
  std::uint64_t forwards_refused = 0;     ///< of these: not leader, duplicate or overloaded
  std::uint64_t reads_lease = 0;          ///< answered on this thread, by basis
  std::uint64_t reads_quorum = 0;
  std::uint64_t reads_leader = 0;
  std::uint64_t reads_log = 0;
  std::uint64_t reads_refused = 0;
  std::uint64_t appends_sent = 0;       ///< append messages with entries
  std::uint64_t heartbeats_sent = 0;    ///< append messages without
  std::uint64_t batches_persisted = 0;  ///< batches given to storage
  std::uint64_t elections_won = 0;
  std::uint64_t log_cuts = 0;
  std::uint64_t snapshots_taken = 0;      ///< by this node's state machine, to be sent
  std::uint64_t snapshots_sent = 0;       ///< whole, to one peer each
  std::uint64_t snapshots_installed = 0;  ///< here
  std::uint64_t chunks_sent = 0;
  std::uint64_t chunk_bytes_sent = 0;
  std::uint64_t chunks_received = 0;
  std::uint64_t chunks_dropped = 0;  ///< received, but there was no room: see chunks_storing_max
};

/// A snapshot on its way, for people.
struct SnapshotTransfer {
  raft::NodeId peer;        ///< the other end
  bool sending = false;     ///< from this node to the peer; else to this node
  raft::Index last;         ///< the last entry that is in it
  std::uint64_t bytes = 0;  ///< that have arrived
  std::uint64_t size = 0;   ///< of the whole, above 0
  friend bool operator==(const SnapshotTransfer&, const SnapshotTransfer&) = default;
};

/// A witness (CoreOptions::witness) refuses Propose, Read and WaitApplied at once, with a member to
/// ask as the leader of the answer. Its Applier gets entries like any other; Applier::install()
/// then names the new beginning of the log, and there is nothing to install.
///
/// Passive: one handle(event) at a time, on one thread; no asio, no mutex, no clock, no thread of
/// its own. The production Node and the simulator both drive this class.
class Driver {
 public:
  /// The parts that the driver uses. All outlive it.
  struct Ports {
    net::Transport& transport;
    storage::Storage& storage;
    Applier& applier;
    Snapshots& snapshots;
    LeaseView& view;
    Callers& callers;
    Observer& observer;
  };

  Driver(const DriverOptions& options, raft::InitialState initial, Ports ports, lease::Now now);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Handles one input and carries out all effects that follow from it. `now` was sampled after the
  /// event was in memory.
  void handle(lease::Now now, Event event);
  /// The same for several inputs at once, in order: one set of effects for all of them, so commands
  /// that wait together share an append and a disk write. Leaves `events` empty.
  void handle_batch(lease::Now now, std::vector<Event>& events);

  /// The completions that became due in handle(), in order: of calls that ended in any other way
  /// than by an applied command (see Applier). The caller runs them after handle() has returned,
  /// never inside it, each exactly once.
  std::vector<std::function<void()>> take_completions();

  /// When the next Tick is due.
  raft::PromiseInstant next_deadline() const;

  const raft::Core& core() const;
  raft::Index applied() const;
  const DriverCounters& counters() const;
  /// The number of waiting callers.
  std::size_t pending() const;
  /// Whether the next Applied lets this driver do something: complete a read, send a command again,
  /// or give the applier more. Otherwise it may be handled together with the next event.
  bool awaits_applied() const;
  /// Snapshots that are on their way to or from this node.
  std::vector<SnapshotTransfer> transfers() const;
  /// Payload bytes of the entries that the log holds, about.
  std::uint64_t log_bytes() const;
  /// The index that the state machine has made durable, as far as this driver knows.
  raft::Index machine_durable() const;
  /// The state machine cannot be made durable: the log is never cut.
  bool log_never_cut() const;
  /// The disk of the log, or of the state machine, is full: the node refuses commands.
  bool disk_full() const;
  /// Why the node has to stop, if it has to.
  const std::optional<Error>& failure() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::replica
