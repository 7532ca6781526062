// Group: one running replica of a group, as its program calls it.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/clock.h>
#include <leasehold/lease/timing.h>
#include <leasehold/net/peer_security.h>
#include <leasehold/node/calls.h>
#include <leasehold/node/member_edit.h>
#include <leasehold/replica/calls.h>
#include <leasehold/replica/counters.h>
#include <leasehold/replica/lease_view.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::replica {
class Tap;
}

namespace leasehold::node {

class Tracer;

/// A member as status shows it.
struct MemberStatus {
  raft::NodeId id;
  std::string address;
  bool voter = true;       ///< else a learner; while joint: in either half
  bool connected = false;  ///< this node holds a connection to it (true for itself)
  raft::Index match;       ///< at the leader: its durable prefix; 0 elsewhere
  raft::Uuid uuid{};       ///< of its directory; zero until the group is formed
  bool leaving = false;    ///< no longer a member once the joint state is left
  bool witness = false;    ///< keeps the log and no state
  /// What it has proved on the connections with this node: to send to it, and to hear from it.
  net::PeerProofs proofs{};
  /// At the leader: the age of the newest round, or beat of the process, that it has acknowledged.
  /// None: it has not answered in this term, or it is this node.
  std::optional<lease::Duration> heard_ago{};
};

/// A snapshot of a node, for people, `status` and metrics.
struct NodeStatus {
  raft::NodeId id;
  raft::Uuid uuid;
  raft::Incarnation incarnation;
  std::uint64_t cluster_id = 0;
  bool formed = false;
  std::vector<raft::NodeId> missing;  ///< not formed: initial members that have not confirmed
  bool witness = false;               ///< NodeOptions::witness
  bool joining = false;  ///< this node waits to be added to a group; then it is not formed either
  std::string address;   ///< where peers reach this node, as far as it knows
  /// The newest refusal between this node and a peer, in words; empty when there was none, when the
  /// two have connected since, or when nothing was refused for ten seconds.
  std::string problem;
  raft::Role role = raft::Role::follower;
  raft::Term term;
  raft::NodeId leader;
  /// The last leader that this process knows of; equals `leader` when that is known. During an
  /// election, others look there first.
  raft::NodeId last_leader;
  raft::Index commit, applied, last, durable;
  raft::Index first;            ///< of the log: entries below were cut off; 0 until formed
  std::uint64_t log_bytes = 0;  ///< payloads of the entries in the log, about
  raft::Index machine_durable;  ///< the index that the state machine has made durable
  bool disk_full = false;       ///< the node refuses commands
  std::vector<replica::SnapshotTransfer>
      transfers;                  ///< snapshots on their way to or from this node
  lease::Duration lease_left{0};  ///< zero without a valid lease
  /// Until then this node elects nobody but the holder of its promise; zero without a promise.
  lease::Duration promise_left{0};
  raft::NodeId promise_to;         ///< of the newest promise; kNobody: there was none
  std::size_t calls_waiting = 0;   ///< of this node's callers
  std::size_t proposals_held = 0;  ///< of these, until a leader is known, or until the next try
  /// Commands that wait for the next append of this leader, and entries of it that are appended and
  /// not committed.
  std::size_t proposals_queued = 0, proposals_uncommitted = 0;
  /// Of the newest membership in the log, committed or not; until formed, of the initial peers.
  std::vector<MemberStatus> members;
  /// Its place in the log, or the log's beginning if its entry was cut off.
  raft::LogId membership;
  raft::MembershipId membership_id{};  ///< of its content: CallOptions::expected_membership
  /// The group's, as of the newest membership; none: the node follows `timing`, what it was started
  /// with.
  std::optional<raft::GroupSettings> settings;
  lease::Timing timing;                           ///< what the node follows
  raft::FeatureLevel level = raft::kOldestLevel;  ///< what may be proposed, as this node knows
  bool membership_joint = false;                  ///< a change is half made
  bool membership_committed = false;              ///< false: it may still be taken back
  replica::DriverCounters counters;
  std::uint64_t frames_rejected = 0;  ///< malformed or refused on the peer port
  std::uint64_t syncs = 0;            ///< of the log
  bool deputy = false;                ///< one runs beside this node (NodeOptions::deputy)
  std::uint64_t deputy_restarts = 0;
  bool notices_heard = false;          ///< the UDP port for them is open
  std::uint64_t notices_believed = 0;  ///< of the ends of other processes
  std::uint64_t notices_late = 0;      ///< of processes whose next ones were met already
  std::uint64_t notices_refused = 0;   ///< forged, of unknown processes, or none at all
};

/// One running replica: alone in its process (Node), or one of many (Host).
///
/// Every method may be called from any thread, except that those that wait must not be called from
/// the threads of the node or host. Completions are called exactly once, never inside the call that
/// took them: on a thread that applies when a command was applied, on the thread of the node or
/// host in every other case, so two may run at the same time. They must be quick and must not
/// block. Once the replica is stopped, a call completes at once, inside itself.
///
/// A call whose timeout passes, or that is cancelled, ends at once: a proposal as unknown if it may
/// have been appended and else as dropped, a read without an index.
///
/// Until the group is formed (all initial members have met: status() lists the missing ones)
/// proposals and reads wait for it, up to their timeout. A node that waits to be added to a group,
/// or that leaves it, refuses them.
class Group {
 public:
  virtual ~Group() = default;

  /// Replicates a command; CallOptions::expected makes that depend on who leads.
  virtual void propose(Bytes command, CallOptions options, replica::ProposeCompletion done) = 0;
  /// Replicates many, in this order: they share the way to the node's thread, and at the leader an
  /// append and a disk write. This is not a transaction: each ends by itself, and one that has to
  /// be sent again may come after later ones.
  virtual void propose_batch(std::vector<Proposal> batch, CallOptions options) = 0;
  /// Completes when the state machine may be read: linearizably, or with CallOptions::max_age when
  /// it is young enough.
  virtual void read(raft::ReadMode mode, CallOptions options, replica::ReadCompletion done) = 0;
  /// Completes when this node has applied `index`.
  virtual void wait_applied(raft::Index index, CallOptions options,
                            replica::ReadCompletion done) = 0;
  /// Changes the members, at the leader: all of `edits`, or nothing. A new voter is added, which
  /// makes it a learner, and promoted in a later change, when it has caught up (learner_behind says
  /// how far it is). A node that is added has to run (NodeOptions::join) unless its uuid is given.
  /// Completes when the change is committed and complete; one whose call ended as unknown may still
  /// be made. Refused retryably while another change is under way. Refused for good if
  /// CallOptions::expected_membership is not in effect, with the one that is; and with older_build
  /// if the group has settings and a node that is to be added, or promoted, cannot read them.
  virtual void change_members(MemberEdits edits, CallOptions options, MembersCompletion done) = 0;
  /// Changes the group's settings, at the leader; what `edit` does not name stays. Completes when
  /// the change is committed: no lease of less careful numbers is left then. Refused with the
  /// inequality that it would break, and retryably while another change is under way. A group that
  /// was formed by a version without settings gets its first ones from what the leader was started
  /// with and `edit` (which may be empty), once every member is connected and knows them.
  virtual void change_settings(const raft::SettingsEdit& edit, CallOptions options,
                               replica::SettingsCompletion done) = 0;
  /// Ends every call of `group` that was made before and still waits. An appended command may be
  /// executed all the same. Group 0 has no calls.
  virtual void cancel(replica::CallGroup group) = 0;

  /// Transfers the leadership to `to`, or to the most advanced voter (kNobody), in a few round
  /// trips and without waiting for the lease to end. Only at the leader. Meanwhile commands and
  /// reads wait, at every node, until the next leader answers them. `done`: with the new leader,
  /// also if `to` leads already; `refused`: nothing was begun, and why; `failed`: the target did
  /// not become leader within two election timeouts, and this node still leads; `unknown`: the
  /// timeout passed first.
  virtual void transfer_leadership(raft::NodeId to, CallOptions options,
                                   replica::TransferCompletion done) = 0;

  /// Prepares this node for its end. From its next turn on it refuses new proposals and reads of
  /// its callers: they end as dropped, or without an index, with the leader as a hint. Calls that
  /// it has accepted end as always. If it leads, now or later, it transfers to the most advanced
  /// voter that it reaches, and again if that fails. It stays a member: it votes, and stores what
  /// the leader sends. Completes when no call waits and another node leads (or none of the others
  /// is reached), or when the timeout passes, with the number of calls that still wait. Then call
  /// stop(). It cannot be undone; the timeout of the first call counts.
  virtual void drain(CallOptions options, DrainCompletion done) = 0;

  /// propose(), and waits for the outcome.
  replica::ProposeResult propose_and_wait(Bytes command, CallOptions options);
  /// read(), and waits; then the caller reads its state machine on its own thread. With mode
  /// `lease`, on a leader whose lease is valid and which has applied everything, it takes no lock
  /// and asks no other node: two clock reads at most. The same on any node whose state is not older
  /// than CallOptions::max_age. See examples/read_point for its parts.
  replica::ReadResult read_point(raft::ReadMode mode, CallOptions options);
  /// change_members(), and waits.
  MembersResult change_members_and_wait(MemberEdits edits, CallOptions options);

  /// Makes the state machine durable as it is now and cuts the log to its tail (CutLog). The node
  /// does this by itself later; this call does it now. Completes on lh-node, however long it takes.
  /// Errors: unavailable (the group has not formed), and those of LogCutCompletion.
  virtual void cut_log(replica::LogCutCompletion done) = 0;

  /// Reads the committed log, for a program that follows the changes elsewhere: an index, a cache,
  /// another system (change data capture). Completes with the commands from `from` on, in the
  /// log's order and with nothing left out, as soon as this node has applied any; a follower has
  /// them a little later than the leader. At any replica but a witness. The next call goes on at
  /// LogPart::next: one call at a time, and a reader that is slow keeps nobody waiting. Completes
  /// on the node's thread. drain() does not wait for it.
  virtual void read_log(const replica::LogReadFrom& from, CallOptions options,
                        replica::LogReadCompletion done) = 0;

  /// The state machine's disk is full, or has space again: while it is full this node takes no
  /// commands and no entries, as with a full disk of its own, so that it commits nothing that it
  /// could not apply. Lease reads continue once it has applied everything that was committed by
  /// then.
  virtual void machine_space(bool full) = 0;

  /// Shows `tap` (replica/tap.h) from now on all that goes into this replica and comes out of it,
  /// in place of the one before; null: nobody looks. Until the group has formed there is nothing to
  /// see. The node's thread calls it, and drops it when it has seen enough.
  virtual void tap(std::shared_ptr<replica::Tap> tap) = 0;

  /// For lease reads on the caller's own thread, without a lock.
  virtual const replica::LeaseView& lease_view() const = 0;
  virtual const lease::Clock& clock() const = 0;
  virtual void status(std::function<void(NodeStatus)> done) = 0;
  /// Called once, on a thread of the node, when the node can no longer run (storage failed, fenced
  /// by a newer self; with the code `removed`: it was removed from its group).
  virtual void on_failure(std::function<void(Error)> failed) = 0;

 protected:
  Tracer* tracer_ = nullptr;  ///< of read_point()

 private:
  replica::ReadResult find_read_point(raft::ReadMode mode, CallOptions options);
  replica::ReadResult traced_read_point(raft::ReadMode mode, CallOptions options);
};

}  // namespace leasehold::node
