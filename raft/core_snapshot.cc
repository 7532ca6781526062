// The log is cut at the front, and a peer that needs what was cut off gets a snapshot (Raft paper,
// section 7).
//
// The core knows only the name of a snapshot. The driver has the bytes: it sends the chunks, stores
// those that arrive, and reports the outcome. This file decides what a chunk means for the term,
// the promise and the lease, by the same rules as for an append.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>
#include <utility>

namespace leasehold::raft {

// ---- The front of the own log ----

void Core::Impl::cut_log(Now now, Index to) {
  begin_input(now);
  if (to > log_.base().index) {
    // Entries that are not committed are not applied, and entries that are not durable may still be
    // needed as a whole.
    LEASEHOLD_ASSERT(to <= commit_ && to <= cut_limit());
    LEASEHOLD_ASSERT(to <= durable_);
    log_.cut(to);
    pending_.persist.cut = LogBase{log_.base(), log_.membership_at(to)};
    if (Leader* leader = as_leader()) {
      for (auto& [id, progress] : leader->progress) {
        // Test: Catchup.ACutBelowAProbeEndsInASnapshot.
        if (progress.next_index <= to) progress.become_snapshot(to);
      }
    }
    LEASEHOLD_ASSERT(log_.base().index == to);
    LEASEHOLD_ASSERT(!pending_.persist.reset);
    emit(LogCut{to});
  }
  end_input();
}

// ---- The leader ----

bool Core::Impl::current(const SnapshotIntent& intent) const {
  return open_intent(intent.to, intent.term, intent.id);
}

// The round is the newest when the chunk leaves, not when the snapshot was begun: the answer proves
// a promise that is as fresh as the chunk (lease/README.md).
bool Core::Impl::stamp(const SnapshotIntent& intent, SnapshotChunk& chunk) const {
  if (!current(intent)) return false;
  const Leader* leader = as_leader();
  chunk.term = hard_state_.term;
  const lease::RoundStart newest = leader->newest_round();
  chunk.round = newest.round;
  chunk.lease = newest.duration;
  chunk.drift_ppm = newest.drift_ppm;
  return true;
}

void Core::Impl::snapshot_ended(Now now, const SnapshotIntent& intent) {
  begin_input(now);
  if (current(intent)) {
    Leader* leader = as_leader();
    Progress& progress = *leader->find(intent.to);
    progress.intent = 0;
    progress.paused = true;
    progress.snapshot_ended = leader->rounds.newest();
    LEASEHOLD_ASSERT(!current(intent));
  }
  end_input();
}

void Core::Impl::handle(NodeId from, const SnapshotReply& m) {
  if (learn_term_from_reply(m.term)) return;
  Leader* leader = as_leader();
  if (leader == nullptr) return;
  Progress* peer = leader->find(from);
  if (peer == nullptr) return;
  if (m.request_term != hard_state_.term || m.term != hard_state_.term || !m.promised) return;
  leader->acknowledge(*peer, m.round);
  leader->due.reads = true;
}

// ---- The follower ----

void Core::Impl::handle(NodeId from, SnapshotChunk& m) {
  if (!hear_leader(from, m)) {
    SnapshotReply reply;
    reply.request_term = m.term;
    reply.term = hard_state_.term;
    reply.round = m.round;
    reply.id = m.id;
    send_after(hard_state_ready(), from, reply);
    return;
  }
  if (options_.witness || m.size == 0) {
    take_beginning(from, m);
  } else {
    pending_.chunks.push_back({from, std::move(m)});
  }
}

void Core::Impl::chunk_stored(Now now, const StoredChunk& stored) {
  begin_input(now);
  SnapshotReply reply;
  reply.request_term = stored.request_term;
  reply.term = hard_state_.term;
  // The chunk renewed the promise when it arrived, and storing it took time: since then the promise
  // may have gone to a later leader, and then the round of this one must not be echoed.
  const StoredPromise& promise = hard_state_.promise;
  reply.promised = hard_state_.term == stored.request_term && promise.term == stored.request_term &&
                   promise.holder == stored.from;
  reply.round = stored.round;
  reply.id = stored.id;
  reply.refused = stored.refused;
  reply.offset = stored.offset;
  send_after(hard_state_ready(), stored.from, reply);
  end_input();
}

bool Core::Impl::snapshot_received(Now now, const SnapshotId& id, const Membership& membership) {
  begin_input(now);
  const bool needed = accept_snapshot(id, membership);
  end_input();
  return needed;
}

bool Core::Impl::accept_snapshot(const SnapshotId& id, const Membership& membership) {
  LEASEHOLD_ASSERT(id.last.term <= hard_state_.term);
  if (as_leader() != nullptr || id.last.index <= commit_) return false;
  // More may have been committed since the snapshot's first chunk was judged.
  if (below_committed(id.last)) return false;
  held_ = std::max(held_, id.last.index);
  if (log_.matches(id.last)) {
    // "Retain log entries following it" (section 7), and those before: what is in a snapshot is
    // committed.
    advance_commit(id.last.index);
    return false;
  }
  // Until the snapshot has replaced it durably, the durable prefix ends at the old commit index at
  // most: a batch that is still under way may name entries that are now gone, and that could differ
  // from those in the snapshot (the A-B-A race, as in truncate_log()).
  durable_ = std::min(durable_, commit_);
  for (UnansweredBatch& batch : unanswered_) batch.last = std::min(batch.last, commit_);
  const bool differs = !(membership == log_.membership());
  log_.reset(id.last, membership);
  if (differs) note_membership();
  commit_ = id.last.index;
  handed_out_ = id.last.index;
  // Also of a snapshot that came in this turn.
  // Test: Snapshot.ReplacesAnotherOfTheSameTurn.
  PersistBatch& batch = pending_.persist;
  batch.reset = LogBase{id.last, membership};
  batch.truncate_from.reset();
  batch.entries.clear();
  batch.cut.reset();
  received_ = id;
  LEASEHOLD_ASSERT(resetting());
  LEASEHOLD_ASSERT(log_.last() == id.last);
  LEASEHOLD_ASSERT(durable_ < commit_);
  return true;
}

/// A snapshot has replaced the log, and that is not durable yet.
bool Core::Impl::resetting() const {
  return received_.has_value() ||
         std::any_of(unanswered_.begin(), unanswered_.end(),
                     [](const UnansweredBatch& batch) { return batch.installs.has_value(); });
}

}  // namespace leasehold::raft
