// Elections: pre-vote, vote, and who may ask for one (Raft paper 5.2, 5.4.1; dissertation 9.6;
// lease/README.md).

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>
#include <leasehold/raft/quorum.h>

#include <algorithm>

namespace leasehold::raft {

// Changing the term or the vote, granting or refusing a vote: none of these ends a promise. Only
// time does.
//
// While a promise lives, a follower or candidate ignores higher terms, except from a leader and in
// a message that may pass the promise: otherwise a stranded node would take the voters from a
// healthy leader.
bool Core::Impl::promised_to_another() const {
  return promise_lives() && hard_state_.promise.holder != options_.id;
}

// The candidate that has sent the message is not the one that has the promise. Its number is not
// enough where more is known: a process on a copy of the directory, or on the same disk at another
// machine, has the number of a holder that may live.
bool Core::Impl::promised_to_other_than_sender() const {
  if (!promise_lives()) return false;
  if (hard_state_.promise.holder != sender_.id) return true;
  if (holder_.id == kNobody) return false;  // this node was restarted since
  if (holder_.uuid != sender_.uuid) return true;
  const Process& holder = holder_.process;
  const Process& sender = sender_.process;
  // A living process always says the same, so one that says nothing is not this holder.
  return holder.incarnation.value() != 0 && holder.place != sender.place;
}

bool Core::Impl::eligible() const {
  if (hard_state_.term >= kTermMax) return false;
  if (own_seat()) return true;
  // The newest membership may never be committed: until it is, a voter of the one before may be
  // needed.
  // Test: Change.ANodeMayCampaignWhileItsRemovalIsNotKnownToBeCommitted.
  return log_.membership_index() > commit_ &&
         log_.membership_at(log_.membership_index().prev()).is_voter(options_.id, options_.uuid);
}

bool Core::Impl::may_campaign() const {
  return as_leader() == nullptr && eligible() && !stalled() && !promised_to_another();
}

// Its time has come, but other groups of this process come first.
bool Core::Impl::awaits_place() const {
  return options_.shared != nullptr && may_campaign() && now_.promise >= election_deadline();
}

// A committed vote shows that there was a leader: wait until the promise to it ends, and then an
// election timeout. An uncommitted one shows only a candidate: wait an election timeout since the
// vote.
PromiseInstant Core::Impl::election_deadline() const {
  PromiseInstant from = vote_updated_;
  if (hard_state_.vote_committed) from = std::max(from, promise_was_over());
  PromiseInstant deadline = from + election_timeout_;
  if (promised_to_another()) deadline = std::max(deadline, promise_until());
  return deadline;
}

void Core::Impl::restart_election_timer() {
  quick_tries_ = 0;
  wait_before_election();
}

void Core::Impl::wait_before_election() {
  vote_updated_ = now_.promise;
  if (quick_tries_ > 0) {
    election_timeout_ = pause_before_try();
    return;
  }
  const std::int64_t timeout = timing().election_timeout.count();
  if (options_.shared == nullptr) {
    election_timeout_ = Duration(random_.between(timeout, 2 * timeout));
  } else {
    // When a process is silent thousands of groups wait at once: by chance alone many of them would
    // have two voters that ask together.
    const ElectionOrder order = election_order();
    const std::int64_t parts = std::max<std::int64_t>(order.voters, 1);
    const std::int64_t from = timeout + timeout * order.before / parts;
    const std::int64_t to = timeout + timeout * (order.before + 1) / parts;
    election_timeout_ = Duration(random_.between(from, std::max(to, from + 1)));
  }
  // A node with a state machine, and with a clock that can hold a lease, campaigns first, and wins
  // unless it lacks a committed entry. Then the group needs this one.
  if (options_.witness || !can_hold()) election_timeout_ += timing().election_timeout;
}

void Core::Impl::start_pre_vote(RoleChangeReason reason) {
  LEASEHOLD_ASSERT(may_campaign());
  LEASEHOLD_ASSERT(as_leader() == nullptr);
  // It knows no leader any more. One that rests has to learn that, if it is heard again.
  // Test: Rest.AMemberThatHasAskedForVotesIsNotAtRest.
  rely();
  leader_ = kNobody;
  refuse_reads();
  if (quick_tries_ > 0) --quick_tries_;
  wait_before_election();
  Candidate candidate;
  candidate.votes.emplace(options_.id, true);
  change_role(std::move(candidate), reason);
  for (const Member& member : log_.membership().members) {
    if (member.id == options_.id || !log_.membership().is_voter(member.id)) continue;
    send_now(member.id, PreVoteRequest{hard_state_.term.next(), log_.last()});
  }
  count_votes();
}

void Core::Impl::start_campaign(const std::optional<TransferToken>& token) {
  LEASEHOLD_ASSERT(token || !promised_to_another());
  LEASEHOLD_ASSERT(as_leader() == nullptr);
  rely();
  leader_ = kNobody;
  refuse_reads();
  hard_state_.term = hard_state_.term.next();
  hard_state_.voted_for = options_.id;
  hard_state_.vote_committed = false;
  mark_hard_state();
  if (token) quick_tries_ = 0;
  wait_before_election();
  Candidate candidate;
  candidate.pre_vote = false;
  candidate.own_vote = hard_state_ready();
  change_role(std::move(candidate),
              token ? RoleChangeReason::transfer : RoleChangeReason::pre_vote_won);
  LEASEHOLD_ASSERT(role() == Role::candidate);
  LEASEHOLD_ASSERT(hard_state_.term > log_.last_term());
  for (const Member& member : log_.membership().members) {
    if (member.id == options_.id || !log_.membership().is_voter(member.id)) continue;
    send_after(hard_state_ready(), member.id, VoteRequest{hard_state_.term, log_.last(), token});
  }
}

void Core::Impl::count_votes() {
  Candidate* candidate = as_candidate();
  LEASEHOLD_ASSERT(candidate != nullptr);
  const auto granted = [this, candidate](NodeId id) {
    if (id == options_.id && !own_seat()) return std::optional<int>();
    const auto vote = candidate->votes.find(id);
    return vote != candidate->votes.end() && vote->second ? std::optional<int>(1) : std::nullopt;
  };
  const auto not_refused = [candidate](NodeId id) {
    const auto vote = candidate->votes.find(id);
    return vote == candidate->votes.end() || vote->second ? std::optional<int>(1) : std::nullopt;
  };
  if (quorum_value<int>(log_.membership(), granted)) {
    if (!candidate->pre_vote) {
      become_leader();
    } else if (may_campaign()) {
      start_campaign(std::nullopt);
    } else {
      become_follower(RoleChangeReason::election_lost);
    }
  } else if (!quorum_value<int>(log_.membership(), not_refused)) {
    become_follower(RoleChangeReason::election_lost);
  }
}

void Core::Impl::become_leader() {
  LEASEHOLD_ASSERT(hard_state_.voted_for == options_.id);
  // A quorum granted it: the promises to lower terms have ended, or their holders gave them up.
  drop_promise();
  quick_tries_ = 0;
  hard_state_.vote_committed = true;
  mark_hard_state();

  change_role(Leader(options_.id, now_, log_.last_index().next(), log_.membership()),
              RoleChangeReason::election_won);
  as_leader()->term = hard_state_.term;
  leader_ = options_.id;
  emit(LeaderKnown{options_.id});
  // Nothing of an earlier term is committed by counting; this entry commits them all
  // (section 5.4.2, figure 8).
  append_entry(EntryKind::empty, Bytes());
  begin_round();
  LEASEHOLD_ASSERT(log_.last_term() == hard_state_.term);
  LEASEHOLD_ASSERT(log_.last_index() == as_leader()->first_index);
}

bool Core::Impl::learn_term_from_reply(Term term) {
  if (term <= hard_state_.term) return false;
  if (as_leader() != nullptr || !promised_to_another()) {
    adopt_term(term, RoleChangeReason::higher_term);
    LEASEHOLD_ASSERT(hard_state_.term == term);
  }
  return true;
}

// Why this node has to refuse a vote (or a pre-vote) in `term` now.
std::optional<VoteRefusal> Core::Impl::judge(NodeId candidate, Term term, LogId last, bool pre_vote,
                                             const std::optional<TransferToken>& token) const {
  if (newcomer()) return VoteRefusal::no_member;
  const Leader* leader = as_leader();
  if (leader != nullptr && leader->lease.valid(now_.holder)) return VoteRefusal::own_lease_valid;
  LEASEHOLD_ASSERT(candidate == sender_.id);
  const bool bound = promised_to_other_than_sender();
  if (bound && !passes_promise(token, candidate, term, last)) return VoteRefusal::promised;
  // The holder itself, in a newer term: it has dropped its lease. A pre-vote does not prove that,
  // but binds no node.
  if (promise_lives() && !pre_vote && term <= hard_state_.promise.term) {
    return VoteRefusal::promised;
  }
  std::optional<VoteRefusal> refusal;
  if (term < hard_state_.term || (pre_vote && term == hard_state_.term)) {
    refusal = VoteRefusal::old_term;
  } else if (!pre_vote && term == hard_state_.term && hard_state_.voted_for != kNobody &&
             hard_state_.voted_for != candidate) {
    refusal = VoteRefusal::voted_for_other;
  } else if (last < log_.last()) {
    refusal = VoteRefusal::log_behind;
  }
  // A token passes the promise only if the vote is granted. Otherwise the promise binds, and so
  // nothing changes, not even the term.
  return refusal && bound ? VoteRefusal::promised : refusal;
}

void Core::Impl::handle(NodeId from, const PreVoteRequest& m) {
  // Nothing changes here, whatever the answer: no term, no vote, no timer, no promise.
  const std::optional<VoteRefusal> refusal = judge(from, m.term, m.last, true, std::nullopt);
  if (refusal == VoteRefusal::promised) refused_ = from;
  if (refusal) {
    emit(VoteRefused{from, true, *refusal});
  } else {
    emit(VoteGranted{from, true});
  }
  send_after(hard_state_ready(), from, PreVoteReply{m.term, hard_state_.term, !refusal, leader_});
}

void Core::Impl::handle(NodeId from, const PreVoteReply& m) {
  if (learn_term_from_reply(m.term)) return;
  Candidate* candidate = as_candidate();
  if (candidate == nullptr || !candidate->pre_vote) return;
  if (m.request_term != hard_state_.term.next()) return;
  candidate->votes.emplace(from, m.granted);
  count_votes();
}

void Core::Impl::handle(NodeId from, const VoteRequest& m) {
  std::optional<VoteRefusal> refusal = judge(from, m.term, m.last, false, m.token);
  const bool barred = refusal == VoteRefusal::own_lease_valid || refusal == VoteRefusal::promised ||
                      refusal == VoteRefusal::no_member;
  // A refusal because of a promise changes nothing, not even the term.
  if (!barred && m.term > hard_state_.term) {
    adopt_term(m.term, RoleChangeReason::higher_term);
    refusal = judge(from, m.term, m.last, false, m.token);
  }
  if (refusal) {
    emit(VoteRefused{from, false, *refusal});
  } else {
    if (hard_state_.voted_for != from) {
      rely();
      become_follower(RoleChangeReason::election_lost);
      hard_state_.voted_for = from;
      hard_state_.vote_committed = false;
      mark_hard_state();
    }
    // The election timer, not the promise: a vote request does not show that there is a leader.
    restart_election_timer();
    campaign_at_once_ = false;
    LEASEHOLD_ASSERT(hard_state_.voted_for == from);
    LEASEHOLD_ASSERT(hard_state_.term == m.term);
    emit(VoteGranted{from, false});
  }
  send_after(hard_state_ready(), from, VoteReply{m.term, hard_state_.term, !refusal, leader_});
}

void Core::Impl::handle(NodeId from, const VoteReply& m) {
  if (learn_term_from_reply(m.term)) return;
  Candidate* candidate = as_candidate();
  if (candidate == nullptr || candidate->pre_vote) return;
  if (m.request_term != hard_state_.term) return;
  candidate->votes.emplace(from, m.granted);
  count_votes();
}

}  // namespace leasehold::raft
