// What must hold after every input: in the state, and for the step from the state checked last.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

namespace leasehold::raft {

// At a leader: one change at a time, every member has its progress, and only one at rest has a
// class.
void Core::Impl::check_members(const Leader& leader) const {
  if (leader.lease_class != kNoClass) {
    LEASEHOLD_ASSERT(leader.at_rest && !leader.transfer && commit_ == log_.last_index());
    LEASEHOLD_ASSERT(options_.shared->lease_class(leader.lease_class).began > leader.beats_from);
  }
  const Membership& newest = log_.membership();
  const bool known = log_.membership_index() <= commit_ && commit_ >= leader.first_index;
  // What this leader appended follows a committed membership.
  if (log_.membership_index() >= leader.first_index) {
    LEASEHOLD_ASSERT(commit_ >= leader.first_index);
    LEASEHOLD_ASSERT(log_.memberships_above(commit_) <= 1);
  }
  // Once it is committed, the joint state is left and so is the role of one that was removed, as
  // soon as a full voter can go on.
  if (known) LEASEHOLD_ASSERT(!newest.joint() || leader.transfer || !state_stays());
  const CheckedMembers members{hard_state_.term, log_.membership_changes(),
                               leader.progress.changes(), known};
  if (members == checked_.members) return;
  const bool votes = own_seat();
  if (known) LEASEHOLD_ASSERT(votes || !state_stays());
  std::size_t others = 0;
  auto peer = leader.progress.begin();
  for (const Member& member : newest.members) {
    if (member.id == options_.id) continue;
    ++others;
    while (peer != leader.progress.end() && peer->first < member.id) ++peer;
    LEASEHOLD_ASSERT(peer != leader.progress.end() && peer->first == member.id);
  }
  // No other node receives the log, except those whose removal is not committed.
  if (known) LEASEHOLD_ASSERT(leader.progress.size() == others);
  // One that does not vote leads only as long as the state has to stay: that moves with the log.
  if (votes) checked_.members = members;
}

void Core::Impl::check_transfer(const Leader& leader) const {
  LEASEHOLD_ASSERT(leader.token_index <= log_.last_index());
  // While a token may pass a promise there is no lease, shown or not.
  if (leader.token_alive(commit_))
    LEASEHOLD_ASSERT(leader.lease.end() == HolderInstant::earliest());
  if (!leader.transfer) {
    LEASEHOLD_ASSERT(leader.token_index < log_.last_index());
    return;
  }
  LEASEHOLD_ASSERT(leader.progress.contains(leader.transfer->target));
  const std::optional<TransferToken>& token = leader.transfer->token;
  if (!token) return;
  LEASEHOLD_ASSERT(token->term == hard_state_.term);
  LEASEHOLD_ASSERT(token->last == leader.token_index);
  LEASEHOLD_ASSERT(log_.last_index() == token->last);
}

void Core::Impl::check_reads() const {
  if (const Leader* leader = as_leader()) {
    LEASEHOLD_ASSERT(leader->remote_reads <= leader->reads.size());
    LEASEHOLD_ASSERT(leader->lease_reads <= leader->reads.size());
  }
  for (const FollowerReads& reads : follower_reads_) {
    // A read that waits is asked for by the request after the one that is out.
    LEASEHOLD_ASSERT(reads.waiting.empty() || !reads.asked.empty());
    if (!reads.asked.empty()) LEASEHOLD_ASSERT(leader_ != kNobody && leader_ != options_.id);
  }
}

void Core::Impl::check_invariants() const {
  // Of a state.
  LEASEHOLD_ASSERT(commit_ >= log_.base().index);
  LEASEHOLD_ASSERT(commit_ <= log_.last_index());
  LEASEHOLD_ASSERT(durable_ <= log_.last_index());
  LEASEHOLD_ASSERT((durable_ < log_.base().index) == resetting());
  LEASEHOLD_ASSERT(handed_out_ >= log_.base().index);
  LEASEHOLD_ASSERT(handed_out_ <= log_.last_index());
  LEASEHOLD_ASSERT(announced_apply_ <= commit_);
  LEASEHOLD_ASSERT(received_.has_value() == pending_.persist.reset.has_value());
  LEASEHOLD_ASSERT(!pending_.persist.reset || !pending_.persist.cut);
  LEASEHOLD_ASSERT(log_.last_term() <= hard_state_.term);
  LEASEHOLD_ASSERT(hard_state_.promise.term <= hard_state_.term);
  LEASEHOLD_ASSERT((hard_state_.promise.holder == kNobody) ==
                   (hard_state_.promise.duration.count() == 0));
  LEASEHOLD_ASSERT(hard_state_.promise.duration == promise_.remembered());
  LEASEHOLD_ASSERT(!bound_ || (options_.shared != nullptr && holder_.id != kNobody));
  LEASEHOLD_ASSERT(quick_tries_ == 0 || leader_ == kNobody);
  LEASEHOLD_ASSERT(!hard_state_.vote_committed || hard_state_.voted_for != kNobody);
  LEASEHOLD_ASSERT(log_.membership_index() <= log_.last_index());
  switch (role()) {
    case Role::follower: LEASEHOLD_ASSERT(leader_ != options_.id); break;
    case Role::pre_candidate: LEASEHOLD_ASSERT(leader_ == kNobody); break;
    case Role::candidate:
      LEASEHOLD_ASSERT(leader_ == kNobody);
      LEASEHOLD_ASSERT(hard_state_.voted_for == options_.id);
      break;
    case Role::leader: {
      const Leader& leader = *as_leader();
      LEASEHOLD_ASSERT(leader_ == options_.id);
      LEASEHOLD_ASSERT(hard_state_.voted_for == options_.id && hard_state_.vote_committed);
      LEASEHOLD_ASSERT(!promise_lives() && !bound_);
      LEASEHOLD_ASSERT(leader.first_index <= log_.last_index());
      LEASEHOLD_ASSERT(log_.last_term() == hard_state_.term);
      if (options_.witness) {
        LEASEHOLD_ASSERT(lease_end() == HolderInstant::earliest() && leader.reads.empty());
      }
      check_members(leader);
      check_transfer(leader);
      for (const auto& [id, progress] : leader.progress) {
        LEASEHOLD_ASSERT(id != options_.id);
        LEASEHOLD_ASSERT(progress.match_index < progress.next_index);
        LEASEHOLD_ASSERT(progress.next_index <= log_.last_index().next());
        LEASEHOLD_ASSERT(progress.next_index.prev() >= log_.base().index);
        LEASEHOLD_ASSERT(progress.inflights.size() <= options_.inflight_messages_max);
        if (progress.state != ProgressState::snapshot) continue;
        LEASEHOLD_ASSERT(progress.match_index < log_.base().index);
        LEASEHOLD_ASSERT(progress.next_index.prev() == log_.base().index);
        LEASEHOLD_ASSERT(progress.inflights.empty());
      }
      break;
    }
  }

  check_reads();

  // Of a step.
  LEASEHOLD_ASSERT(hard_state_.term >= checked_.term);
  LEASEHOLD_ASSERT(log_.base().index >= checked_.base);
  LEASEHOLD_ASSERT(commit_ >= checked_.commit);
  const HolderInstant end = lease_end();
  if (as_leader() != nullptr && checked_.term == hard_state_.term) {
    // It never moves back, unless a token removes it, the group's numbers change, or the joint
    // state ends.
    LEASEHOLD_ASSERT(end >= checked_.lease_end || as_leader()->token_alive(commit_) ||
                     log_.membership_index() > checked_.membership);
  }
  checked_ = {hard_state_.term, log_.base().index, commit_, log_.membership_index(), end,
              checked_.members};
}

}  // namespace leasehold::raft
