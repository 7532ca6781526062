// Both sides of the leader lease: a leader's rounds, a voter's promises. The lease that rests on
// them is derived in core_derive.cc. lease/README.md argues each rule.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>
#include <utility>

namespace leasehold::raft {

// ---- The leader's side ----

void Core::Impl::begin_round() {
  Leader* leader = as_leader();
  LEASEHOLD_ASSERT(leader != nullptr);
  // now_ was sampled before this input was handled: before anything of the round can be sent.
  leader->begin_round(now_, holder_timing());
  leader->commit_of_earlier_round = std::exchange(leader->commit_of_round, commit_);
  leader->partial_round = false;
  // An empty append to all peers, without flow control: they answer it without waiting for a disk.
  for (auto& [id, progress] : leader->progress) {
    if (std::exchange(progress.rests, false)) {
      leader->partial_round = true;
      continue;
    }
    if (progress.state != ProgressState::snapshot) progress.paused = false;
    send_now(id, empty_append(id, progress));
  }
  // TimeoutNow may have been lost; a copy of it finds a higher term and does nothing.
  // Test: Transfer.TimeoutNowIsSentAgainWithEachRound.
  if (leader->transfer && leader->transfer->token) send_token(*leader->transfer->token);
  LEASEHOLD_ASSERT(leader->next_round > now_.promise);
}

// ---- The voter's side ----

// A leader whose D is longer than this is faulty, or this node has missed a change of the settings.
// It does not promise as much, so it does not echo such a round; but it takes the entries, and the
// missed ones are among them. A node that waits to be added knows nothing of its group's D.
Duration Core::Impl::longest_promise() const {
  return log_.membership().members.empty() ? kLeaseLongest : timing().lease * kLeaseStepMax;
}

// Any append or snapshot chunk of the current term renews the promise, also an append whose log
// check fails, whatever this node's role in the membership is.
void Core::Impl::renew_promise(NodeId leader, Duration carried, std::int64_t drift_ppm) {
  LEASEHOLD_ASSERT(leader != options_.id && leader == sender_.id);
  LEASEHOLD_ASSERT(as_leader() == nullptr);
  // The leader counts on a clock within the drift that it names. A clock that may be faster has to
  // promise for longer.
  const Duration duration = std::max(
      timing().lease, options_.timing.stretched(std::min(carried, longest_promise()), drift_ppm));
  holder_ = sender_;
  StoredPromise& stored = hard_state_.promise;
  if (stored.holder == leader && stored.term == hard_state_.term) {
    const Duration remembered = promise_.remembered();
    promise_.renew(duration, now_.promise);
    if (promise_.remembered() != remembered) mark_hard_state();
  } else {
    LEASEHOLD_ASSERT(stored.term < hard_state_.term);
    promise_.replace(duration, now_.promise);
    bound_.reset();
    stored.holder = leader;
    stored.term = hard_state_.term;
    mark_hard_state();
    emit(PromiseGiven{leader, promise_.until()});
  }
  LEASEHOLD_ASSERT(stored.holder == leader);
  LEASEHOLD_ASSERT(stored.term == hard_state_.term);
  if (!log_.membership().settings && carried != options_.timing.lease &&
      settings_reported_ != hard_state_.term) {
    settings_reported_ = hard_state_.term;
    emit(SettingsDiffer{leader, carried});
  }
}

}  // namespace leasehold::raft
