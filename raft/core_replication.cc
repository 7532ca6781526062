// Replication: what a leader sends, what a follower does with it, and what is committed (Raft
// paper 5.3, 5.4).

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>

namespace leasehold::raft {
namespace {

// Entries that were cut off were committed, so the log of every later leader has them (section
// 5.4.3): the base matches, whether this is a late copy or a leader that probes at a low index.
// Test: CutLog.AnAppendAcrossTheBaseAppendsTheRest.
void skip_below_base(const Log& log, AppendRequest& m) {
  const LogId base = log.base();
  const auto above = std::find_if(m.entries.begin(), m.entries.end(), [base](const Entry& entry) {
    return entry.id.index > base.index;
  });
  m.entries.erase(m.entries.begin(), above);
  m.prev = base;
  LEASEHOLD_ASSERT(log.matches(m.prev));
}

void handle_refusal(const Log& log, Progress& progress, const AppendReply& m) {
  LEASEHOLD_ASSERT(!m.matched);
  LEASEHOLD_ASSERT(m.rejected_prev > progress.match_index);
  const Index base = log.base().index;
  switch (progress.state) {
    case ProgressState::replicate:
      // Sent and lost, or overtaken.
      progress.become_probe(base);
      break;
    case ProgressState::snapshot:
      // The peer still lacks the base. One that has missed steps to a much longer D answers without
      // a round. Such an answer may be older than the end of the last sending: then the snapshot is
      // sent once more than it has to be.
      if (m.rejected_prev <= base &&
          (m.round > progress.snapshot_ended || m.round == lease::Round())) {
        progress.paused = false;
      }
      break;
    case ProgressState::probe: {
      if (m.rejected_prev != progress.next_index.prev()) break;  // not the probe that is out
      const Index limit = std::max(progress.match_index, std::min(m.index, m.rejected_prev.prev()));
      if (limit < base) {
        // The logs differ from below the base on: no entry that could be probed can match.
        // Test: Catchup.AProbeThatEndsBelowTheBaseEndsInASnapshot.
        progress.become_snapshot(base);
        break;
      }
      const Index probe = log.last_index_with_term_at_most(m.hint_term, limit);
      progress.next_index = std::max(progress.match_index, probe).next();
      progress.paused = false;
      progress.intent = 0;
      LEASEHOLD_ASSERT(progress.next_index.prev() >= base);
      break;
    }
  }
}

// Callers at the peer wait for their own apply; and those that waited during the election wait for
// the first commit of the term, at any node.
bool gets_news_at_once(const Leader& leader, const Progress& progress, PromiseInstant now) {
  return now < progress.listens_until || progress.sent_commit < leader.first_index;
}

}  // namespace

// ---- The follower ----

// The common part of an append and a snapshot chunk: they show that `from` leads `term`. False: the
// term is old. A round that this node does not promise for is taken out: it must not be echoed.
template <class Request>
bool Core::Impl::hear_leader(NodeId from, Request& m) {
  const Term term = m.term;
  if (term < hard_state_.term) return false;
  // A leader of a higher term is always accepted: promises bind votes only.
  if (term > hard_state_.term) adopt_term(term, RoleChangeReason::higher_term);
  LEASEHOLD_ASSERT(as_leader() == nullptr);  // election safety (section 5.2)
  campaign_at_once_ = false;
  refused_ = kNobody;
  if (quick_tries_ > 0) restart_election_timer();
  if (role() != Role::follower) become_follower(RoleChangeReason::leader_appeared);
  if (leader_ != from) {
    LEASEHOLD_ASSERT(leader_ == kNobody);
    leader_ = from;
    emit(LeaderKnown{from});
  }
  if (hard_state_.voted_for != from || !hard_state_.vote_committed) {
    hard_state_.voted_for = from;
    hard_state_.vote_committed = true;
    mark_hard_state();
    // Until now its place among those that wait counted the one that leads.
    if (options_.shared != nullptr) wait_before_election();
  }
  if (m.lease > longest_promise()) m.round = lease::Round();
  renew_promise(from, m.lease, m.drift_ppm);
  LEASEHOLD_ASSERT(hard_state_.term == term);
  LEASEHOLD_ASSERT(leader_ == from);
  LEASEHOLD_ASSERT(role() == Role::follower);
  return true;
}

template bool Core::Impl::hear_leader(NodeId from, AppendRequest& m);
template bool Core::Impl::hear_leader(NodeId from, SnapshotChunk& m);

void Core::Impl::handle(NodeId from, AppendRequest& m) {
  if (!hear_leader(from, m)) {
    // The sender learns the newer term from this, and campaigns beyond it. It is not a promise.
    AppendReply reply;
    reply.request_term = m.term;
    reply.term = hard_state_.term;
    reply.round = m.round;
    reply.rejected_prev = m.prev.index;
    send_after(hard_state_ready(), from, reply);
    return;
  }
  take_bind(m.bind);
  if (m.prev.index < log_.base().index) skip_below_base(log_, m);
  if (log_.matches(m.prev)) {
    append_from_leader(from, m);
  } else {
    refuse_append(from, m);
  }
}

void Core::Impl::append_from_leader(NodeId from, AppendRequest& m) {
  const bool heartbeat = m.entries.empty();
  Index last = m.prev.index;
  for (Entry& entry : m.entries) {
    LEASEHOLD_ASSERT(entry.id.index == last.next());
    last = entry.id.index;
    if (log_.matches(entry.id)) continue;
    if (last <= log_.last_index()) truncate_log(last);
    if (entry.kind == EntryKind::membership) {
      const Result<Membership> membership = decode_membership(entry.payload.view());
      LEASEHOLD_ASSERT(membership.ok());  // checked by the wire's gateway
      log_.append(entry.id.term, &membership.value());
      note_membership();
    } else {
      log_.append(entry.id.term, nullptr);
    }
    pending_.persist.entries.push_back(std::move(entry));
  }
  LEASEHOLD_ASSERT(last <= log_.last_index());
  advance_commit(std::min(m.commit, last));
  held_ = std::max(held_, std::min(m.commit, last));

  AppendReply reply;
  reply.request_term = m.term;
  reply.term = hard_state_.term;
  reply.promised = true;
  reply.round = m.round;
  if (m.bind) reply.bound = bound_->epoch;
  reply.matched = true;
  // The answer to a heartbeat claims only what is durable already, and leaves as soon as the
  // promise is durable: so a slow disk does not cost the lease.
  reply.index = heartbeat ? std::min(last, durable_) : last;
  const ReadyId after = heartbeat ? ReadyId() : entries_ready(last);
  send_after(std::max(after, hard_state_ready()), from, reply);
}

// The leader's log and this one differ from some entry before m.prev on:
//
//   leader:    1 1 2 2 4 4 4     prev = (4, 7)
//   follower:  1 1 2 3 3         hint = (2, 3): nothing above it can be in a log whose entry 7 is
//   of term 4 ...
//
// The hint is the follower's last entry whose term is not above prev's; the leader does the same
// with the hint's term and finds the place to probe in one step for each term that differs.
void Core::Impl::refuse_append(NodeId from, const AppendRequest& m) {
  LEASEHOLD_ASSERT(m.prev.index > commit_);
  AppendReply reply;
  reply.request_term = m.term;
  reply.term = hard_state_.term;
  reply.promised = true;
  reply.round = m.round;
  if (m.bind) reply.bound = bound_->epoch;
  reply.matched = false;
  reply.rejected_prev = m.prev.index;
  reply.index =
      std::max(commit_, log_.last_index_with_term_at_most(m.prev.term, m.prev.index.prev()));
  LEASEHOLD_ASSERT(reply.index < m.prev.index);
  reply.hint_term = log_.term_at(reply.index).value();
  send_after(hard_state_ready(), from, reply);
}

// ---- The leader ----

// What the peer hears may be seen there, so a reader under the lease has to wait until it is
// applied here (rule 52). So the news of a commit that nobody waits for at the peer waits for this
// state machine, but for no more than two rounds: the peers have to apply, too.
Index Core::Impl::commit_to_send(const Progress& progress) const {
  if (progress.witness) return commit_for(progress);
  const Leader& leader = *as_leader();
  if (progress.sent_commit == commit_ || options_.commit_news_delay == Duration(0) ||
      options_.witness || gets_news_at_once(leader, progress, now_.promise)) {
    return commit_;
  }
  const Index shown = std::max({applied_, leader.commit_of_earlier_round, progress.sent_commit});
  return std::min(commit_, shown);
}

AppendRequest Core::Impl::empty_append(NodeId to, Progress& progress) {
  Leader* leader = as_leader();
  LEASEHOLD_ASSERT(leader != nullptr);
  LEASEHOLD_ASSERT(progress.next_index <= log_.last_index().next());
  AppendRequest m;
  m.term = hard_state_.term;
  m.prev.index = progress.next_index.prev();
  m.prev.term = log_.term_at(m.prev.index).value();
  m.commit = commit_to_send(progress);
  if (!progress.witness) leader->sent_commit = std::max(leader->sent_commit, m.commit);
  const lease::RoundStart newest = leader->newest_round();
  m.round = newest.round;
  m.lease = newest.duration;
  m.drift_ppm = newest.drift_ppm;
  m.bind = bind_for(to);
  if (m.bind) progress.bind_asked = true;
  if (m.commit != progress.sent_commit) progress.sent_commit_in = m.round;
  progress.sent_commit = m.commit;
  progress.news_due = PromiseInstant::never();
  return m;
}

void Core::Impl::handle(NodeId from, const AppendReply& m) {
  if (learn_term_from_reply(m.term)) return;
  Leader* leader = as_leader();
  if (leader == nullptr) return;
  Progress* peer = leader->find(from);
  if (peer == nullptr) return;
  // Only a promise of this very term counts, for the lease and for the log.
  if (m.request_term != hard_state_.term || m.term != hard_state_.term || !m.promised) return;
  Progress& progress = *peer;
  leader->acknowledge(progress, m.round);
  if (m.bound) leader->bind(progress, sender_.uuid, *m.bound);

  if (m.matched) {
    if (m.index > log_.last_index()) return;
    const bool news = progress.acknowledged(m.index);
    // An append of the same round may have left before the commit index was known.
    // Test: Rest.ALateAnswerSaysNothingOfTheCommit.
    if (m.round > progress.sent_commit_in) {
      progress.known_commit =
          std::max(progress.known_commit, std::min(m.index, progress.sent_commit));
    }
    if (progress.state == ProgressState::replicate) {
      if (news) progress.paused = false;
    } else if (progress.match_index >= log_.base().index && m.index >= progress.match_index) {
      // Only an answer to a message sent after the present state was known: a late copy would open
      // the window again, and each message in it that overtakes another would be refused and do the
      // same.
      // Test: Replication.ALateCopyOfAnAnswerDoesNotEndAProbe.
      progress.become_replicate();
    }
    // One that is committed commits nothing.
    if (news && m.index > commit_) leader->due.matches = true;
  } else if (m.rejected_prev > progress.match_index) {
    // Else the peer has acknowledged the refused index since: an old answer.
    handle_refusal(log_, progress, m);
  }
  leader->due.reads = true;
}

// An intent means something while this node leads its term and has given its peer no newer one.
bool Core::Impl::open_intent(NodeId to, Term term, std::uint64_t id) const {
  const Leader* leader = as_leader();
  if (leader == nullptr || term != hard_state_.term) return false;
  const Progress* peer = leader->find(to);
  return peer != nullptr && peer->intent == id;
}

bool Core::Impl::current(const AppendIntent& intent) const {
  return open_intent(intent.to, intent.term, intent.id);
}

void Core::Impl::filled(Now now, const AppendIntent& intent, Index last, std::size_t bytes) {
  begin_input(now);
  if (current(intent)) {
    LEASEHOLD_ASSERT(last >= intent.prev.index && last <= intent.last);
    Progress& progress = *as_leader()->find(intent.to);
    progress.intent = 0;
    if (last == intent.prev.index) {
      progress.paused = true;
    } else if (progress.state == ProgressState::probe) {
      progress.paused = true;
    } else if (last > progress.match_index) {
      // At or below it, an earlier transmission was acknowledged while the intent was open.
      // Test: Replication.AFillThatComesAfterItsAcknowledgementMovesNothingBack.
      progress.next_index = last.next();
      progress.inflights.push_back({last, bytes});
      progress.inflight_bytes += bytes;
    }
  }
  end_input();
}

// Whether there is a commit index that the peer could use and that was not sent to it.
bool Core::Impl::keeps_news(const Progress& progress) const {
  return progress.sent_commit < commit_ && progress.intent == 0 &&
         progress.state == ProgressState::replicate &&
         progress.sent_commit < commit_to_send(progress);
}

// At the end of a turn, so that everything proposed in it is sent together.
void Core::Impl::emit_intents() {
  Leader* leader = as_leader();
  for (auto& [id, progress] : leader->progress) {
    if (progress.intent != 0) continue;
    if (progress.state == ProgressState::snapshot) {
      if (progress.paused) continue;
      if (progress.witness) {
        send_beginning(id, progress);
        continue;
      }
      // A witness cannot send a state: this peer waits for another leader.
      // Test: Witness.ThatLeadsSendsNoSnapshot.
      if (options_.witness) continue;
      progress.intent = next_intent_++;
      pending_.snapshots.push_back({progress.intent, id, hard_state_.term});
      emit(SnapshotSending{id});
      continue;
    }
    const bool room = progress.inflights.size() < options_.inflight_messages_max &&
                      progress.inflight_bytes < options_.inflight_bytes_max;
    if (progress.next_index <= log_.last_index() && !progress.paused && room) {
      const AppendRequest head = empty_append(id, progress);
      LEASEHOLD_ASSERT(head.prev.index < log_.last_index());
      progress.intent = next_intent_++;
      pending_.intents.push_back({progress.intent, id, head.term, head.prev, log_.last_index(),
                                  head.commit, head.round, head.lease, head.drift_ppm, head.bind});
    } else if (keeps_news(progress)) {
      // No append carries the news, and a follower that waits for its own apply must not wait for
      // the next heartbeat.
      const bool at_once = gets_news_at_once(*leader, progress, now_.promise);
      const PromiseInstant due =
          now_.promise + (at_once ? Duration(0) : options_.commit_news_delay);
      progress.news_due = std::min(progress.news_due, due);
      if (now_.promise >= progress.news_due) send_now(id, empty_append(id, progress));
    }
  }
}

void Core::Impl::listens(Now now, NodeId peer) {
  begin_input(now);
  if (Leader* leader = as_leader()) leader->listens(peer, now_.promise);
  end_input();
}

void Core::Impl::applied(Now now, Index index) {
  begin_input(now);
  LEASEHOLD_ASSERT(index >= applied_);
  applied_ = index;
  end_input();
}

}  // namespace leasehold::raft
