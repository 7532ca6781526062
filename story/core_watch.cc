#include <leasehold/story/core_watch.h>

namespace leasehold::story {

Record CoreWatch::record(Duration at, Kind kind, const raft::Core& core) const {
  Record record;
  record.at = at;
  record.kind = kind;
  record.node = node_;
  record.term = core.term();
  return record;
}

void CoreWatch::started(Duration at, const raft::Core& core, const TrueTime& time) {
  promise_ = core.hard_state().promise;
  promised_until_ = core.promise_until();
  commit_ = core.commit_index();
  if (promise_.holder != raft::kNobody) tell_promise(at, core, time, "restarted");
}

void CoreWatch::tell_promise(Duration at, const raft::Core& core, const TrueTime& time,
                             const char* why) {
  Record told = record(at, Kind::promise, core);
  told.peer = core.hard_state().promise.holder;
  told.term = core.hard_state().promise.term;
  told.until = time.of(core.promise_until());
  told.why = why;
  sink_(told);
}

/// Of a peer that has bound its promise to the process.
std::optional<lease::RoundStart> CoreWatch::acked_beat(const raft::Core& core,
                                                       const raft::Progress& peer) {
  if (!peer.bound) return std::nullopt;
  const lease::Supporter* const supporter = core.options().shared->supporter(peer.bound->directory);
  auto beat = supporter != nullptr ? supporter->acknowledged(peer.bound->epoch) : std::nullopt;
  if (beat) beat->limit(core.timing());
  return beat;
}

std::optional<CoreWatch::Edge> CoreWatch::edge_of(const raft::Core& core) const {
  std::optional<Edge> found;
  for (const auto& entry : core.progress()) {
    const NodeId peer = entry.first;
    const raft::Progress& progress = entry.second;
    const auto known = acked_.find(peer);
    const auto consider = [&](const std::optional<lease::RoundStart>& start, bool beat) {
      if (!start || start->end() != core.lease_end()) return;
      // If several reach that far, the newest arrival completed the quorum.
      const bool news =
          known == acked_.end() || (beat ? known->second.second != lease::Beat(start->round.value())
                                         : known->second.first != start->round);
      if (!found || news) found = Edge{peer, *start, beat};
    };
    consider(progress.acked_round, false);
    consider(acked_beat(core, progress), true);
  }
  return found;
}

void CoreWatch::tell_lease(Duration at, const raft::Core& core, const TrueTime& time,
                           const char* why) {
  Record told = record(at, Kind::lease, core);
  told.until = time.of(core.lease_end());
  told.why = why;
  if (const std::optional<Edge> edge = edge_of(core)) {
    told.peer = edge->peer;
    told.round = edge->start.round;
    told.from = time.of(edge->start.began);
    if (edge->beat) told.what = "beat";
  }
  sink_(told);
}

void CoreWatch::observe(Duration at, const raft::Core& core, const TrueTime& time) {
  if (core.commit_index() > commit_) {
    commit_ = core.commit_index();
    Record told = record(at, Kind::commit, core);
    told.index = commit_;
    sink_(told);
  }
  const raft::StoredPromise& promise = core.hard_state().promise;
  const bool other_holder = promise.holder != promise_.holder || promise.term != promise_.term;
  if (promise.holder == raft::kNobody) {
    if (promise_.holder != raft::kNobody && promised_until_ > raft::PromiseInstant::earliest()) {
      Record told = record(at, Kind::unpromised, core);
      told.peer = promise_.holder;
      told.what = release_ ? "released" : "ended";
      if (core.role() == raft::Role::leader) told.what = "elected";
      sink_(told);
    }
  } else if (other_holder || core.promise_until() > promised_until_) {
    tell_promise(at, core, time, other_holder ? "given" : "renewed");
  } else if (core.promise_until() < promised_until_ && time.of(promised_until_) > at) {
    tell_promise(at, core, time, "unbound");
  }
  release_ = false;
  promise_ = promise;
  promised_until_ = core.promise_until();

  const raft::HolderInstant end = core.lease_end();
  const bool gained = lease_end_ == raft::HolderInstant::earliest() || lease_term_ != core.term();
  if (end != raft::HolderInstant::earliest() && (gained || end != lease_end_)) {
    // Only more careful settings shorten a lease.
    const char* moved = end < lease_end_ ? "shortened" : "extended";
    tell_lease(at, core, time, gained ? "gained" : moved);
  }
  lease_end_ = end;
  lease_term_ = core.term();
  acked_.clear();
  for (const auto& [peer, progress] : core.progress()) {
    const auto beat = acked_beat(core, progress);
    const Round round = progress.acked_round ? progress.acked_round->round : Round();
    acked_[peer] = {round, beat ? lease::Beat(beat->round.value()) : lease::Beat()};
  }
}

void CoreWatch::rates_changed(Duration at, const raft::Core& core, const TrueTime& time) {
  if (core.hard_state().promise.holder != raft::kNobody && time.of(core.promise_until()) > at) {
    tell_promise(at, core, time, "clock");
  }
  if (core.lease_end() != raft::HolderInstant::earliest() && time.of(core.lease_end()) > at) {
    tell_lease(at, core, time, "clock");
  }
}

void CoreWatch::sent(Duration at, const raft::Message& message) {
  const auto* append = std::get_if<raft::AppendRequest>(&message);
  if (append == nullptr) return;
  if (append->term == round_term_ && append->round <= round_) return;
  round_term_ = append->term;
  round_ = append->round;
  Record told;
  told.at = at;
  told.kind = Kind::round;
  told.node = node_;
  told.term = append->term;
  told.round = append->round;
  sink_(told);
}

}  // namespace leasehold::story
