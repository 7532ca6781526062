// Both sides of the leader lease: rounds, the voters' promises, the lease that stands on them,
// check-quorum. lease/README.md argues each rule.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core.h>
#include <leasehold/raft/quorum.h>

#include <algorithm>

namespace leasehold::raft {

// ---- The leader's side ----

void Core::begin_round() {
  Leader* leader = as_leader();
  LEASEHOLD_ASSERT(leader != nullptr);
  // now_ was sampled before this input was handled: before anything of the round can be sent.
  leader->rounds.begin(now_.holder, options_.timing.lease);
  leader->next_round = now_.promise + options_.timing.heartbeat;
  // An empty append to everybody, whatever flow control says: it is answered without waiting for a
  // disk.
  for (auto& [id, progress] : leader->progress) {
    if (progress.state != ProgressState::snapshot) progress.paused = false;
    send_now(id, empty_append(progress));
  }
  // TimeoutNow may have been lost; a copy of it finds a higher term and does nothing.
  if (leader->transfer && leader->transfer->token) send_token(*leader->transfer->token);
  update_lease();
}

void Core::acknowledge_round(Progress& progress, Round round) {
  Leader* leader = as_leader();
  const std::optional<lease::RoundStart> start = leader->rounds.find(round);
  if (!start) return;
  // The newest one counts, not the last to arrive.
  if (progress.acked_round && progress.acked_round->round >= start->round) return;
  progress.acked_round = start;
  update_lease();
}

void Core::update_lease() {
  Leader* leader = as_leader();
  const auto newest_ack = [this, leader](NodeId id) -> std::optional<lease::RoundStart> {
    if (id == options_.id && own_seat()) return leader->rounds.find(leader->rounds.newest());
    const auto progress = leader->progress.find(id);
    if (progress == leader->progress.end()) return std::nullopt;
    return progress->second.acked_round;
  };
  const auto end_of = [this, &newest_ack](NodeId id) -> std::optional<HolderInstant> {
    const std::optional<lease::RoundStart> ack = newest_ack(id);
    if (!ack) return std::nullopt;
    return ack->began + options_.timing.usable(ack->duration);
  };
  const auto began_of = [&newest_ack](NodeId id) -> std::optional<HolderInstant> {
    const std::optional<lease::RoundStart> ack = newest_ack(id);
    if (!ack) return std::nullopt;
    return ack->began;
  };
  // A voter that lets a token pass is bound by no promise: what it has acknowledged counts again
  // once the token is worth nothing.
  const auto end = quorum_value<HolderInstant>(log_.membership(), end_of);
  // A witness could answer nothing by a lease, and has no other use for one.
  if (end && !token_alive(*leader) && !options_.witness) leader->lease.extend(*end);
  if (const auto base = quorum_value<HolderInstant>(log_.membership(), began_of)) {
    if (!leader->base || *base > *leader->base) leader->base = base;
  }
}

// When a leader that hears from no quorum has to leave, so that it does not hold a minority's
// promises for ever.
HolderInstant Core::quorum_deadline(const Leader& leader) const {
  HolderInstant since = leader.elected_at.holder;
  if (leader.base) since = std::max(since, *leader.base);
  const std::optional<lease::RoundStart> newest = leader.rounds.find(leader.rounds.newest());
  LEASEHOLD_ASSERT(newest.has_value());
  return since + newest->duration;
}

// ---- The voter's side ----

// Any append or snapshot chunk of the current term renews the promise, also an append whose log
// check fails, whatever this node's role in the membership is.
void Core::renew_promise(NodeId leader, Duration carried) {
  const Duration duration = std::max(options_.timing.lease, carried);
  StoredPromise& stored = hard_state_.promise;
  if (stored.holder == leader && stored.term == hard_state_.term) {
    const Duration remembered = promise_.remembered();
    promise_.renew(duration, now_.promise);
    if (promise_.remembered() != remembered) mark_hard_state();
  } else {
    LEASEHOLD_ASSERT(stored.term < hard_state_.term);
    promise_.replace(duration, now_.promise);
    stored.holder = leader;
    stored.term = hard_state_.term;
    mark_hard_state();
    emit(PromiseGiven{leader, promise_.until()});
  }
  if (carried != options_.timing.lease && settings_reported_ != hard_state_.term) {
    settings_reported_ = hard_state_.term;
    emit(SettingsDiffer{leader, carried});
  }
}

}  // namespace leasehold::raft
