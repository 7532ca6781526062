// What must hold after every input: of a state, and of the step from the last one checked.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core.h>

namespace leasehold::raft {

void Core::check_invariants() const {
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
  LEASEHOLD_ASSERT(!hard_state_.vote_committed || hard_state_.voted_for != kNobody);
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
      LEASEHOLD_ASSERT(!promise_.live(now_.promise));
      LEASEHOLD_ASSERT(leader.first_index <= log_.last_index());
      LEASEHOLD_ASSERT(log_.last_term() == hard_state_.term);
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

  // Of a step.
  LEASEHOLD_ASSERT(hard_state_.term >= checked_.term);
  LEASEHOLD_ASSERT(log_.base().index >= checked_.base);
  LEASEHOLD_ASSERT(commit_ >= checked_.commit);
  const HolderInstant end = lease_end();
  if (as_leader() != nullptr && checked_.lease_term == hard_state_.term) {
    LEASEHOLD_ASSERT(end >= checked_.lease_end);
  }
  checked_.term = hard_state_.term;
  checked_.base = log_.base().index;
  checked_.commit = commit_;
  checked_.lease_term = hard_state_.term;
  checked_.lease_end = end;
}

}  // namespace leasehold::raft
