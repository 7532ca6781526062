// The state of the role leader, and what follows from it alone. It ends with the role: the next
// leadership starts without it.
#pragma once

#include <leasehold/base/ring.h>
#include <leasehold/lease/leader_lease.h>
#include <leasehold/lease/rounds.h>
#include <leasehold/lease/timing.h>
#include <leasehold/raft/lease_classes.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/message.h>
#include <leasehold/raft/progress.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace leasehold::raft {

/// A read that waits at the leader.
struct LeaderRead {
  std::uint64_t read = 0;   ///< the caller's number, or the remote asker's
  NodeId asker;             ///< kNobody: this node's own caller
  Incarnation incarnation;  ///< of a remote asker
  ReadMode mode = ReadMode::lease;
  /// A quorum must acknowledge this round or a newer one: it began after the read arrived.
  Round round;
};

/// The leadership is being transferred.
struct Transfer {
  NodeId target;
  PromiseInstant ends;
  /// Set once the target has everything. Invariant: nothing is appended behind token->last.
  std::optional<TransferToken> token;
};

/// What a quorum of the newest membership has acknowledged. None: fewer than a quorum have
/// acknowledged any round.
struct QuorumAcknowledged {
  std::optional<HolderInstant> lease_end;  ///< the end of the newest acknowledged round's promise
  std::optional<HolderInstant> began;      ///< when the newest acknowledged round began
  std::optional<Round> round;              ///< the newest acknowledged round
};

struct Leader {
  /// Leads from `now` on. `first_index` is where the term's empty entry will stand.
  Leader(NodeId self, Now now, Index first_index, const Membership& membership);

  // ---- Peers ----

  /// What is known of `peer`; null for a node that does not receive the log, and for the leader.
  Progress* find(NodeId peer);
  const Progress* find(NodeId peer) const;
  /// Makes the peer receive the log from `next_index` on, unless it does already. Nothing is known
  /// of it: no acknowledgement comes from a default.
  void add_peer(NodeId peer, bool witness, Index next_index, PromiseInstant now);
  /// Callers at the peer wait for what is committed: for a while it gets the news at once.
  void listens(NodeId peer, PromiseInstant now);
  /// The most advanced of `voters` that has answered in this term, except witnesses; of those that
  /// are equal, the one that was `heard` last. kNobody if none has.
  NodeId most_advanced(
      const std::vector<NodeId>& voters,
      const std::function<std::optional<HolderInstant>(const Progress&)>& heard) const;

  // ---- Rounds and acknowledgements ----

  /// The peer has bound its promise, as an append of this term asked. The highest epoch counts.
  void bind(Progress& peer, const Uuid& directory, const lease::Epoch& epoch);
  /// The next round begins. `now` was sampled before anything of it is sent. `timing`: the
  /// holder's numbers.
  void begin_round(Now now, const lease::Timing& timing);
  /// The numbers of the group have become more careful: no round, acknowledged or not, is worth
  /// more than by these, and there is no lease until it is derived again.
  void limit_rounds(const lease::Timing& timing);
  /// No lease rests on a round that has begun.
  void void_rounds();
  /// Valid until another round begins.
  const lease::RoundStart& newest_round() const;
  /// The peer has promised with `round`. A round that is forgotten, or older than one it has
  /// acknowledged, changes nothing.
  void acknowledge(Progress& peer, Round round);
  /// What a quorum holds durably. `own_match` is the leader's durable prefix; none: it does not
  /// vote.
  std::optional<Index> matched(const Membership& membership, std::optional<Index> own_match) const;
  /// What a quorum has acknowledged, in one pass over the voters. The leader acknowledges each
  /// round as it begins, if it `votes`.
  QuorumAcknowledged acknowledged(const Membership& membership, bool votes) const;
  /// When a leader that hears from no quorum has to step down, so that it does not hold a
  /// minority's promises forever.
  HolderInstant quorum_deadline() const;
  /// A voter may still let the newest token pass its promise.
  bool token_alive(Index commit) const { return token_index.value() != 0 && commit <= token_index; }

  // ---- Reads ----

  void add_read(const LeaderRead& read);
  /// Takes the reads that are answered, in the order of their arrival, and calls `answer` for each:
  /// those whose round a quorum has acknowledged, and under a valid lease all that accept the
  /// lease.
  template <class Answer>
  void take_answered_reads(bool lease_valid, const Answer& answer);
  /// Takes all reads.
  template <class Answer>
  void take_reads(const Answer& answer);
  /// See Progress::rests.
  void leave_out_none();
  void end_rest();
  /// A read waits for a round that has not begun, and the newest one has been acknowledged.
  bool wants_round() const;

  // ---- State ----

  NodeId self;
  Term term;
  Now elected_at;
  /// The term's empty entry. Nothing is read, and no lease shown, before it is committed.
  Index first_index;
  /// The newest commit index that was sent to another member in this term, except to witnesses,
  /// which have no state; from the term's empty entry on, since earlier leaders may have sent what
  /// is before. Invariant: never moves back.
  Index sent_commit;
  /// What was committed when the newest round began, and when the one before it did.
  Index commit_of_round;
  Index commit_of_earlier_round;
  lease::RoundRing rounds;
  /// When the next round begins. At rest: when the leader checks whether the rest goes on.
  PromiseInstant next_round;
  /// The leader sends nothing of the group. An input that needs a message, and each round, ends the
  /// rest.
  bool at_rest = false;
  /// What the lease rests on meanwhile: the process says when that is to be checked. Invariant:
  /// kNoClass unless at_rest.
  LeaseClassId lease_class = kNoClass;
  /// When an input last showed that the others had left something unstored for half an election
  /// timeout. Their disks may stand still for the same reason as this node's.
  PromiseInstant others_stalled = PromiseInstant::earliest();
  /// Not all members were sent the newest round: no quorum may ever acknowledge it.
  bool partial_round = false;
  /// Invariant: its end never moves back, except that a token removes the lease, and that more
  /// careful numbers of the group and the end of a joint membership shorten it.
  lease::LeaderLease lease;
  /// No lease rests on a beat that began before: before the election, or before the group's numbers
  /// changed. A beat does not know which numbers it has lived under.
  HolderInstant beats_from;
  /// When the newest round, or beat, that a quorum has acknowledged began. Invariant: never moves
  /// back.
  std::optional<HolderInstant> base;
  /// The newest round that a quorum of the newest membership has acknowledged. Invariant: at most
  /// rounds.newest().
  std::optional<Round> confirmed;
  /// All nodes that receive the log, except this one: the members of the newest membership, and
  /// those that it removes until it is committed.
  Peers progress;
  /// Members that have left the group meanwhile, and may have been asked to bind.
  std::vector<NodeId> bind_asked;
  std::optional<Transfer> transfer;
  /// The last index of the newest token of this term; 0: none. There is no lease before an entry
  /// beyond it is committed.
  Index token_index;
  /// The newest membership whose commit was acted upon (see core_membership.cc).
  Index settled_membership;
  /// In the order of their arrival. Invariant: their rounds never fall, so what a quorum confirms
  /// is a prefix.
  Ring<LeaderRead> reads;
  /// Of these, those of followers. A bound on them must not count what was answered.
  std::size_t remote_reads = 0;
  /// Of these, those that accept the lease. Invariant: none after a check under a valid lease.
  std::size_t lease_reads = 0;

  /// What an input has changed, for Core::Impl::derive() at its end. Invariant: all false between
  /// two inputs.
  struct Due {
    bool matches = false;  ///< an index that a voter holds durably: the commit index may rise
    bool rounds = false;   ///< a round, or whose rounds count: the lease may be longer
    bool reads = false;    ///< a read, or what a read waits for
  };
  Due due;

 private:
  void forget(const LeaderRead& read);
};

template <class Answer>
void Leader::take_answered_reads(bool lease_valid, const Answer& answer) {
  while (!reads.empty() && confirmed && reads.front().round <= *confirmed) {
    const LeaderRead read = reads.front();
    reads.pop_front();
    forget(read);
    answer(read, lease_valid && read.mode == ReadMode::lease);
  }
  if (!lease_valid || lease_reads == 0) return;
  // They wait only while there is no lease, so they are few, or this one has just arrived: it
  // stands at the end.
  // Test: LeaderReads.ALeaseAnswersTheReadsThatAcceptIt.
  std::size_t from = reads.size();
  for (std::size_t left = lease_reads; left > 0;) {
    if (reads[--from].mode == ReadMode::lease) --left;
  }
  std::size_t kept = from;
  for (std::size_t at = from; at < reads.size(); ++at) {
    if (reads[at].mode == ReadMode::lease) {
      forget(reads[at]);
      answer(reads[at], true);
    } else {
      reads[kept++] = reads[at];
    }
  }
  reads.truncate(kept);
}

template <class Answer>
void Leader::take_reads(const Answer& answer) {
  for (const LeaderRead& read : reads) answer(read);
  reads.clear();
  remote_reads = 0;
  lease_reads = 0;
}

}  // namespace leasehold::raft
