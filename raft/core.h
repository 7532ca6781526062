// raft::Core: one replica of one group, as a pure function of (state, now, input).
#pragma once

#include <leasehold/lease/promise.h>
#include <leasehold/lease/timing.h>
#include <leasehold/raft/log.h>
#include <leasehold/raft/membership_change.h>
#include <leasehold/raft/message.h>
#include <leasehold/raft/progress.h>
#include <leasehold/raft/ready.h>
#include <leasehold/raft/shared_promises.h>
#include <leasehold/raft/transfer.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace leasehold::raft {

/// A node whose term or last index is at its limit campaigns no more and takes no proposals. A
/// start with more than that is refused (node/): no group can have reached it.
inline constexpr Term kTermMax{std::uint64_t{1} << 61U};
inline constexpr Index kIndexMax{std::uint64_t{1} << 60U};

struct CoreOptions {
  GroupId group;
  NodeId id;
  Uuid uuid;  ///< of this node's directory; a voter under another uuid neither votes nor counts
  Incarnation incarnation;  ///< of this process; sent with read-index requests
  /// Has passed validate(). What the node follows until its log has the group's settings. Its clock
  /// drift says from then on what this machine's clocks are worth: where that is more than the
  /// group's bound, the node promises longer, and uses less of its leases.
  lease::Timing timing;
  std::uint64_t seed = 0;  ///< of the election timeouts
  bool witness = false;    ///< keeps the log and no state machine: see core_witness.cc
  /// Append intents and unacknowledged entry messages per peer; beyond it the peer gets heartbeats
  /// only.
  std::size_t inflight_messages_max = 64;
  /// Unacknowledged payload bytes per peer.
  std::size_t inflight_bytes_max = 8U << 20U;
  /// How long a leader may delay the news of a commit to a peer, so that the next append carries
  /// it: that saves a message and its answer for each write. The news is then of what this node has
  /// applied() itself, or had committed two rounds ago, so that a reader under the lease seldom has
  /// to wait for the state machine (LeaseState::sent_commit). No delay for peers that listens()
  /// named, nor for the first commit of a term. Zero: everything is sent at once.
  Duration commit_news_delay{0};
  /// The promises between the processes, which the groups of this one share; it outlives the core.
  /// Null: this group has none but its own.
  SharedPromises* shared = nullptr;
  /// A learner may become a voter when it lacks at most this many entries, and has acknowledged a
  /// round that began within the last D: the group must not have to wait for it.
  std::uint64_t promotion_lag_max = 1000;
};

/// The consensus protocol of one replica.
///
/// Contract: deterministic; never blocks, throws, logs, or reads a clock; cheap to copy. Every
/// input takes the time first, read after the input had arrived. One thread at a time.
///
/// A turn: any number of inputs, then take_ready() until it returns false. The core does nothing
/// itself: a Ready lists what its host must do next, and the host does it from top to bottom
/// (ready.h has the members, carry_out.h the order as code):
///
///   1. publish `lease`, then      Readers on other threads serve by it: the lease's end and the
///      let go by `release`        indexes. They learn of its loss before a message lets
///                                 another node lead, and of a commit before a peer can answer
///                                 from it.
///   2. send `messages`, and the   They claim nothing that is not durable, so they do not wait for
///      entries of `intents`       the disk: the peers write while this node does.
///   3. write `persist`            One durable write, reported by persisted(). It may end in a
///                                 later turn; writes end in order. A host whose write fails stops.
///   4. keep `held` back until     A crash could forget a vote or a promise, and then give it to
///      the write they name is     another node; or an entry that this node has acknowledged.
///      durable, then send them
///   5. `install`, `apply_to`,     Committed, and reported durable here. It comes after 1, so that
///      `commit`, `reads`          no caller sees a write that a reader under the lease misses.
///   6. `events`                   For people and for tests; nothing depends on them.
///
/// `chunks` are stored at any time.
///
/// Where it departs from the Raft paper: pre-vote (dissertation 9.6) always; a voter's promise
/// binds its votes and is stored apart from them (lease/README.md); a leader without a quorum for a
/// whole lease steps down; a leader that learns of a higher term campaigns at once; a witness is a
/// voter without a state machine, and leads only until it has transferred (core_witness.cc).
class Core {
 public:
  Core(const CoreOptions& options, InitialState initial, Now now);
  Core(const Core& other);
  Core(Core&& other) noexcept;  ///< `other` may only be assigned to or destroyed
  Core& operator=(const Core& other);
  Core& operator=(Core&& other) noexcept;
  ~Core();

  // ---- Inputs ----

  /// Lets time pass. Call it no later than next_deadline(); calling it earlier is harmless.
  void tick(Now now);
  /// A message from `from`, whose identity the transport has checked. It also shows that all
  /// earlier processes of that directory have ended, as by ended().
  void step(Now now, const Peer& from, Message message);
  /// The process of `peer`, and all earlier ones of its directory, have ended, and that is certain:
  /// the kernel gave the lock of the directory to another process. A promise to it ends, and its
  /// messages that are still under way are ignored. Nothing else ends by a belief: a process that
  /// is slow, stopped or cut off keeps its lease.
  void ended(Now now, const Peer& peer);
  /// Where groups share promises: the process of `peer`, as the leader of this group in `term` or
  /// before, has left that role and published it. The promise to it ends.
  void released(Now now, const Peer& peer, Term term);
  /// The host has published that this node has no lease, and gives this core no further input:
  /// Ready::release, if it leads.
  std::optional<Release> release_at_stop();
  /// Where groups share promises: other nodes have acknowledged beats of this process, or what the
  /// lease or the promise of this group rests on has ended (ProcessReady says which groups have to
  /// look).
  void promises_moved(Now now);
  /// The state machine ends no call, or does so again. Meanwhile this node does not lead, so that
  /// another one, which may be able to apply, does.
  void machine_stalled(Now now, bool stalled);
  /// Appends entries of `kind` command, one per payload, in order. Returns the id of the first, or
  /// none unless takes_proposals() and meets(expected), both as of `now`: then nothing is appended,
  /// and leader() hints where to go. The id has the expected term.
  std::optional<LogId> propose(Now now, std::vector<Bytes> payloads,
                               const ExpectedLeader& expected = {});
  /// Whether propose() appends: this node leads, and is not about to stop leading.
  bool takes_proposals() const;
  /// Whether this node is in the term, and follows or is the leader, that `expected` names.
  bool meets(const ExpectedLeader& expected) const;
  /// Begins a change to exactly the members of `wanted`; returns the id of the first entry. When
  /// that is joint, the one that completes the change follows by itself; the change is done when
  /// the newest membership is not joint and known to be committed. If this node loses the
  /// leadership, the change may be lost; if it is not, the next leader completes it. With
  /// `expected` only if that is the newest membership: else membership_changed, with the newest.
  std::variant<LogId, ChangeRefused> change_membership(Now now, const WantedMembers& wanted,
                                                       std::optional<MembershipId> expected = {});
  /// Changes the group's settings; returns the id of the entry that holds them. They are in effect
  /// at each node when it appends that entry, and for good when it is committed. If this node loses
  /// the leadership before that, the change may be lost.
  std::variant<LogId, SettingsRefused> change_settings(Now now, const GroupSettings& wanted);
  /// Transfers the leadership to `to`, a voter; kNobody: to the most advanced one. None: the
  /// transfer is under way. It ends when this node no longer leads, or an election timeout after
  /// the token was sent; until then the node takes no proposals. The event TransferEnded has the
  /// outcome.
  std::optional<TransferRefused> transfer(Now now, NodeId to);
  /// Asks for the index to apply before serving a read, so that it is linearizable. Exactly one
  /// ReadAnswer names `read`, at once or later; the numbers are the caller's and unique while
  /// pending. Works on any node: a follower asks its leader.
  void read_index(Now now, std::uint64_t read, ReadMode mode);
  /// For a while, send commit news to `peer` at once: callers there wait for it. No effect at a
  /// node that does not lead.
  void listens(Now now, NodeId peer);
  /// The state machine shows everything up to `index`. See CoreOptions::commit_news_delay.
  void applied(Now now, Index index);
  void persisted(Now now, ReadyId id);  ///< batch `id` and all before it are durable
  /// The entries after `intent.prev` up to `last` were sent to the peer, `bytes` of payload in all.
  /// Nothing was sent: last == prev. Ignored when the intent is no longer the open one.
  void filled(Now now, const AppendIntent& intent, Index last, std::size_t bytes);
  /// Whether an intent is still the open one of its peer: entries for it may leave only while this
  /// holds.
  bool current(const AppendIntent& intent) const;

  // ---- Inputs: the front of the log, and snapshots ----

  /// The front of the log, up to and including `to`, is no longer needed: the state machine has
  /// made its effect durable. Does nothing when `to` is at or below the base; asserts that it is
  /// committed and durable here.
  void cut_log(Now now, Index to);
  /// Completes a chunk that is about to leave for the intent's peer with the term, the newest round
  /// and its D. False: the intent is no longer open, and nothing may be sent for it.
  bool stamp(const SnapshotIntent& intent, SnapshotChunk& chunk) const;
  bool current(const SnapshotIntent& intent) const;
  /// The sending for `intent` has ended: the peer took all of it, refused it, or it failed. If the
  /// peer still needs one, another intent follows with the next round.
  void snapshot_ended(Now now, const SnapshotIntent& intent);
  /// A chunk of Ready::chunks was stored (or was not). The answer carries `stored`; the core adds
  /// term, promise and round.
  struct StoredChunk {
    NodeId from;
    Term request_term;
    Round round;
    SnapshotId id;
    bool refused = false;
    std::uint64_t offset = 0;
  };
  void chunk_stored(Now now, const StoredChunk& stored);
  /// All of snapshot `id` has arrived, was verified, and is durable. True: it replaces the log;
  /// Ready::install follows when the new log is durable, and the file has to stay until it is
  /// installed. False: it is not needed (any more).
  bool snapshot_received(Now now, const SnapshotId& id, const Membership& membership);

  // ---- Output ----

  /// Moves the effects since the last call into `ready`, whose old content is dropped. False: there
  /// are none.
  bool take_ready(Ready& ready);
  /// Gives back the memory that earlier turns took and that nothing uses now.
  void give_back();
  /// A copy rests on a copy of the promises between the processes from now on: an equal one of
  /// CoreOptions::shared, which is set.
  void rest_on(SharedPromises& shared);
  /// When tick() is due. On the clock that every timer runs on.
  PromiseInstant next_deadline() const;

  // ---- Its visible state ----

  NodeId id() const;
  const CoreOptions& options() const;
  Role role() const;
  Term term() const;
  /// The leader of the current term, as far as this node knows; kNobody otherwise.
  NodeId leader() const;
  Index commit_index() const;
  /// The log may be cut up to here: the committed entries; at a witness, those that every full
  /// member holds.
  Index cut_limit() const;
  /// The prefix of the log that is durable on this node.
  Index durable_index() const;
  const Log& log() const;
  const Membership& membership() const;
  /// What this node follows: the group's settings, or its own while the log has none.
  const lease::Timing& timing() const;
  const HardState& hard_state() const;
  const lease::VoterPromise& promise() const;
  /// When the promise ends: that one, or the support that it is bound to.
  PromiseInstant promise_until() const;
  /// The lease as published: none until an entry of the own term is committed. earliest() for any
  /// other role.
  HolderInstant lease_end() const;
  /// When the newest round, or beat, that a quorum has acknowledged to this leader began; none for
  /// any other role.
  std::optional<HolderInstant> quorum_round() const;
  /// A leader's view of its peers; empty for any other role.
  const Peers& progress() const;
  /// When the newest round, or beat of this process, that the peer has acknowledged began. None:
  /// the peer has not answered in this term, this node does not lead, or there is no such peer.
  std::optional<HolderInstant> last_heard(NodeId peer) const;
  /// A leader of which no member needs a message: it holds its lease by the beats of its process.
  bool at_rest() const;
  /// At rest: it has no deadline, and looks when the class lapses or a member's process is back
  /// (promises_moved()). kNoClass: it looks by itself.
  LeaseClassId lease_class() const;
  /// The directory of the holder to whose process the promise is bound; null: to none. While that
  /// support lasts, and longer than the group's own promise, a follower has no deadline for an
  /// election.
  const Uuid* bound_to() const;
  /// It would ask for votes now, and found no place (SharedPromises::take_place()), or has not
  /// asked for one yet: a tick() does.
  bool awaits_place() const;
  std::size_t pending_reads() const;  ///< not answered yet

 private:
  friend class CoreReader;  // fingerprint.cc
  class Impl;               // core_impl.h: the state, and the handling of each input

  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::raft
