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
  promised_until_ = core.promise().until();
  commit_ = core.commit_index();
  if (promise_.holder != raft::kNobody) tell_promise(at, core, time, "restarted");
}

void CoreWatch::tell_promise(Duration at, const raft::Core& core, const TrueTime& time,
                             const char* why) {
  Record told = record(at, Kind::promise, core);
  told.peer = core.hard_state().promise.holder;
  told.term = core.hard_state().promise.term;
  told.until = time.of(core.promise().until());
  told.why = why;
  sink_(told);
}

const raft::Progress* CoreWatch::edge_of(const raft::Core& core, NodeId* peer) const {
  const raft::Progress* found = nullptr;
  for (const auto& entry : core.progress()) {
    const raft::Progress& progress = entry.second;
    if (!progress.acked_round) continue;
    if (progress.acked_round->end() != core.lease_end()) continue;
    // If several reach that far, the newest arrival completed the quorum.
    const auto known = acked_.find(entry.first);
    const bool news = known == acked_.end() || known->second != progress.acked_round->round;
    if (found != nullptr && !news) continue;
    found = &progress;
    *peer = entry.first;
  }
  return found;
}

void CoreWatch::tell_lease(Duration at, const raft::Core& core, const TrueTime& time,
                           const char* why) {
  Record told = record(at, Kind::lease, core);
  told.until = time.of(core.lease_end());
  told.why = why;
  NodeId peer;
  const raft::Progress* edge = edge_of(core, &peer);
  if (edge != nullptr) {
    told.peer = peer;
    told.round = edge->acked_round->round;
    told.from = time.of(edge->acked_round->began);
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
      told.what = core.role() == raft::Role::leader ? "elected" : "ended";
      sink_(told);
    }
  } else if (other_holder || core.promise().until() != promised_until_) {
    tell_promise(at, core, time, other_holder ? "given" : "renewed");
  }
  promise_ = promise;
  promised_until_ = core.promise().until();

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
  for (const auto& entry : core.progress()) {
    if (entry.second.acked_round) acked_[entry.first] = entry.second.acked_round->round;
  }
}

void CoreWatch::rates_changed(Duration at, const raft::Core& core, const TrueTime& time) {
  if (core.hard_state().promise.holder != raft::kNobody && time.of(core.promise().until()) > at) {
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
