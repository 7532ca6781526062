// The effects of one turn of the core, in the order in which the driver has to carry them out.
#pragma once

#include <leasehold/base/boxed.h>
#include <leasehold/raft/entry.h>
#include <leasehold/raft/event.h>
#include <leasehold/raft/lease_classes.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/message.h>
#include <leasehold/raft/types.h>

#include <optional>
#include <vector>

namespace leasehold::raft {

/// The part of a promise that has to survive a restart. Its end is not stored: after a restart the
/// promise runs in full again.
struct StoredPromise {
  NodeId holder;  ///< kNobody: no promise was ever given, or this node dropped it when it became
                  ///< leader
  Term term;      ///< the holder's term
  Duration duration{0};  ///< the remembered D
  friend bool operator==(const StoredPromise&, const StoredPromise&) = default;
};

/// The state that a node must not forget (Raft paper, figure 2), and what the lease adds to it.
struct HardState {
  Term term;
  NodeId voted_for;  ///< in `term`; kNobody if it voted for none
  bool vote_committed =
      false;  ///< this node heard from the leader of `term`, or is or was that leader
  StoredPromise promise;
  friend bool operator==(const HardState&, const HardState&) = default;
};

/// The lease as readers off the node's thread see it. See replica/lease_view.h.
struct LeaseState {
  Term term;
  HolderInstant end = HolderInstant::earliest();  ///< earliest(): no lease
  Index commit;
  /// The newest commit index that another node may have heard of, and have shown. A snapshot shows
  /// no more than what is applied here. Invariant: at most `commit`; never moves back.
  Index sent_commit;
  /// Where groups share promises: the lease also lasts as long as this class. kNoClass: it does
  /// not.
  LeaseClassId lease_class{};
  friend bool operator==(const LeaseState&, const LeaseState&) = default;
};

/// The beginning of a log: entries up to `id` are gone from it, because a state machine or a
/// complete snapshot holds their effect durably.
struct LogBase {
  LogId id;
  Membership membership;  ///< the one at `id`
  friend bool operator==(const LogBase&, const LogBase&) = default;
};

/// One atomic, durable write. Batches become durable in the order in which the core issued them.
struct PersistBatch {
  ReadyId id;
  std::optional<HardState> hard_state;
  /// A snapshot replaces the whole log, which then begins (and ends) at this base. Done before
  /// everything below. Never together with `cut`.
  Boxed<LogBase> reset;
  /// Removes this index and all above it, before `entries` are appended.
  std::optional<Index> truncate_from;
  std::vector<Entry> entries;
  /// Removes everything up to this base from the front, after `entries` were appended. The disk
  /// space may become free later than the batch is durable, but the entries are gone with it.
  Boxed<LogBase> cut;

  bool empty() const { return !hard_state && !reset && !truncate_from && entries.empty() && !cut; }
};

struct OutgoingMessage {
  NodeId to;
  Message message;
};

/// This node leads the group in `term` and before no more, and has published that. Its process
/// tells the members that it has asked to bind their promises, by its next beat.
struct Release {
  Term term;
  std::vector<NodeId> members;  ///< ascending
  friend bool operator==(const Release&, const Release&) = default;
};

/// A message that must not leave before batch `after`, and all before it, are durable. Zero: it may
/// leave at once.
struct HeldMessage {
  ReadyId after;
  NodeId to;
  Message message;
};

/// "Send `to` the entries after `prev`, up to `last` at most." The core knows the shape of its log,
/// not the payloads: the driver fills in a prefix from its cache or from storage, sends it, and
/// reports filled(). At most one intent per peer is open; a newer one to the same peer replaces it.
struct AppendIntent {
  std::uint64_t id = 0;  ///< unique within the core's life
  NodeId to;
  Term term;
  LogId prev;
  Index last;  ///< above prev.index
  Index commit;
  Round round;
  Duration lease{0};
  std::int64_t drift_ppm = 0;
  std::optional<BindRequest> bind{};
};

/// "Bring `to` up to date by a snapshot": it needs entries that the log no longer holds. At most
/// one is open per peer. The driver takes a snapshot (or uses a recent one whose last entry is at
/// or above the log's base), sends it in chunks that Core::stamp() has completed, and reports
/// snapshot_ended().
struct SnapshotIntent {
  std::uint64_t id = 0;  ///< unique within the core's life
  NodeId to;
  Term term;
  friend bool operator==(const SnapshotIntent&, const SnapshotIntent&) = default;
};

/// A chunk from the leader of the current term. Store it, and answer with Core::chunk_stored().
struct ReceivedChunk {
  NodeId from;
  SnapshotChunk chunk;
};

/// How a linearizable read was justified.
enum class ReadBasis : std::uint8_t { lease, quorum, leader };

struct ReadAnswer {
  std::uint64_t read = 0;  ///< the number given to read_index()
  std::optional<Index>
      index;  ///< read once this index is applied; none: refused, try again or elsewhere
  ReadBasis basis = ReadBasis::quorum;  ///< `leader`: a follower's read, justified by the leader
  NodeId leader;                        ///< refused: the leader to ask; kNobody if unknown
};

/// The effects of one turn. The driver carries them out from top to bottom; carry_out.h does it for
/// any host. The vectors are reused.
struct Ready {
  ReadyId id;
  /// 1. Publish before any message leaves and before any waiter completes: otherwise a follower
  ///    could answer from a commit that a lease read at the leader does not see yet.
  std::optional<LeaseState> lease;
  /// Only where groups share promises. The loss of the lease is public by now.
  std::optional<Release> release;
  /// 2. May leave at once; a leader's appends overtake its own disk.
  std::vector<OutgoingMessage> messages;
  std::vector<AppendIntent> intents;
  std::vector<SnapshotIntent> snapshots;
  /// 3. One durable write; answered with persisted(persist.id). Not given to storage when empty().
  PersistBatch persist;
  /// 4. Each waits for the durable write that it names, which may be an earlier one.
  std::vector<HeldMessage> held;
  /// Chunks to store, in order; at any time.
  std::vector<ReceivedChunk> chunks;
  /// 5. First replace the state machine's state by that of this snapshot, which has arrived
  /// completely:
  ///    the log begins after it, durably.
  std::optional<SnapshotId> install;
  /// Then apply up to here: committed, and durable on this node. Zero: no news.
  Index apply_to;
  /// Committed up to here, as far as this node knows. Zero: no news.
  Index commit;
  std::vector<ReadAnswer> reads;
  /// 6. The steps of this turn, for people and for tests. Nothing depends on them.
  std::vector<Event> events;

  /// Empties every member and keeps the capacity.
  void clear();
  /// Gives back the capacity of what is empty.
  void give_back();
};

}  // namespace leasehold::raft
