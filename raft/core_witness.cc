// Witnesses: members that vote and keep the log, and have no state machine. A database with two
// full replicas uses one as its third vote. docs/decisions/0013 argues the rules.
//
// In elections, promises and quorums a witness is a voter like any other: it stores every entry
// with its payload before it acknowledges it. What is different:
//
//   - It never answers reads, never accepts proposals, and holds no lease.
//   - It may have a committed entry that none of the remaining full voters has. Then only it can be
//     elected. It leads until a full voter has all of its log, and transfers the leadership to that
//     one.
//   - So its log has to hold what a full member lacks. It cuts only what a leader announced to it
//     as committed, and a leader announces to it only what every full member holds durably (or what
//     the leader's own log has lost as well). What it commits as a leader, perhaps by the votes of
//     witnesses alone, it may not cut before every full member has it.
//   - A change of the voters is completed only when a full voter that stays has everything, and a
//     leader that is removed leaves only then.
//   - It needs no snapshot. If it is behind the leader's log, its log begins again where the
//     leader's begins.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>

namespace leasehold::raft {

namespace {

/// Whether `id` votes in the newest membership, not only in the one that is being left.
bool stays_voter(const Membership& membership, NodeId id) {
  return std::binary_search(membership.voters.begin(), membership.voters.end(), id);
}

}  // namespace

// ---- The leader ----

// A witness that leads transfers the leadership as soon as a full voter has everything.
void Core::Impl::transfer_as_witness() {
  Leader* leader = as_leader();
  LEASEHOLD_ASSERT(options_.witness);
  held_ = std::max(held_, held_by_all());
  if (leader->transfer || !own_seat()) return;
  // Nothing is appended meanwhile, so some full voter gets everything if any can. While joint that
  // may be one that leaves, with the only state that can bring up one that stays.
  NodeId next = kNobody;
  for (const auto& [id, progress] : leader->progress) {
    const bool complete = progress.acked_round && progress.match_index == log_.last_index();
    if (!complete || progress.witness || !log_.membership().is_voter(id)) continue;
    next = id;
    if (stays_voter(log_.membership(), id)) break;
  }
  if (next == kNobody) return;
  LEASEHOLD_ASSERT(next != options_.id);
  leader->transfer = Transfer{next, now_.promise + timing().election_timeout, std::nullopt};
  emit(TransferStarted{next});
}

// The committed prefix that every full member holds durably. With witnesses, a commit may lack one
// of them.
Index Core::Impl::held_by_all() const {
  LEASEHOLD_ASSERT(as_leader() != nullptr);
  Index held = commit_;
  if (!options_.witness) held = std::min(held, durable_);
  for (const auto& [id, other] : as_leader()->progress) {
    if (!other.witness) held = std::min(held, other.match_index);
  }
  return held;
}

// The commit index that the peer gets. A witness cuts its log up to there. When this leader is
// gone, the entries above it may be the only means to bring up a full member. Entries that this log
// has already cut off cannot serve for that, and would make a witness's log grow while a member is
// away. A leader that leaves the group takes its state along, with which that member could be
// brought up.
Index Core::Impl::commit_for(const Progress& progress) const {
  if (!progress.witness) return commit_;
  const bool stays = stays_voter(log_.membership(), options_.id);
  return stays ? std::max(held_by_all(), log_.base().index) : held_by_all();
}

// Whether the state outlives the joint membership: a full voter that stays has everything that a
// witness may have cut, which is committed and below the entry that begins the change, or which an
// earlier leader announced to it. Witnesses alone can be a quorum of both halves, and a member that
// leaves may be the last one that has what is cut off. Without witnesses every quorum has such a
// voter.
bool Core::Impl::state_stays() const {
  const Membership& newest = log_.membership();
  if (newest.witnesses.empty()) return true;
  const Index begun = std::max(log_.membership_index(), as_leader()->first_index);
  return std::any_of(newest.voters.begin(), newest.voters.end(), [&](NodeId id) {
    if (newest.is_witness(id)) return false;
    if (id == options_.id) return durable_ >= begun;
    return as_leader()->progress.at(id).match_index >= begun;
  });
}

// The witness needs entries that are gone. It needs no state: what is cut off is committed, so
// every later leader knows its effect or has its entries.
// Test: Witness.BeginsAgainWhereTheLeadersLogBegins.
void Core::Impl::send_beginning(NodeId to, Progress& progress) {
  const Leader* leader = as_leader();
  LEASEHOLD_ASSERT(leader != nullptr);
  LEASEHOLD_ASSERT(progress.witness);
  LEASEHOLD_ASSERT(progress.match_index < log_.base().index);
  SnapshotChunk m;
  m.term = hard_state_.term;
  const lease::RoundStart newest = leader->newest_round();
  m.round = newest.round;
  m.lease = newest.duration;
  m.drift_ppm = newest.drift_ppm;
  m.id.last = log_.base();
  m.membership = log_.membership_at(m.id.last.index);
  // Sent again when it refuses a heartbeat of a newer round.
  progress.paused = true;
  progress.snapshot_ended = m.round;
  send_now(to, std::move(m));
}

// ---- The follower ----

// A full member that began its log without the state before it would serve a state that never
// existed; a witness has no use for a state.
// Test: Witness.AFullMemberTakesNoBeginningWithoutAState.
void Core::Impl::take_beginning(NodeId from, const SnapshotChunk& m) {
  LEASEHOLD_ASSERT(m.term == hard_state_.term);
  SnapshotReply reply;
  reply.request_term = m.term;
  reply.term = hard_state_.term;
  reply.promised = true;
  reply.round = m.round;
  reply.id = m.id;
  reply.refused = !options_.witness || m.size != 0;
  // One at a time: until it is durable, the answers to heartbeats claim nothing of it.
  if (!reply.refused && !resetting()) accept_snapshot(m.id, m.membership);
  send_after(hard_state_ready(), from, reply);
}

}  // namespace leasehold::raft
