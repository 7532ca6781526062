#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>
#include <leasehold/raft/fingerprint.h>

#include <algorithm>

namespace leasehold::raft {
namespace {

/// How far back the beginning of a round still makes a difference, in multiples of D: behind it a
/// lease has ended and a leader without acknowledgements has stepped down, whatever the drift.
constexpr std::int64_t kPastLeases = 4;

void add_bytes(const Bytes& bytes, Fingerprint& f) {
  f.add(bytes.size());
  for (const char c : bytes.view()) f.add(static_cast<unsigned char>(c));
}

void add_log_id(const LogId& id, Fingerprint& f) {
  f.add(id.term.value());
  f.add(id.index.value());
}

void add_token(const std::optional<TransferToken>& token, Fingerprint& f) {
  f.add(token.has_value() ? 1 : 0);
  if (!token) return;
  f.add(token->term.value());
  f.add(token->target.value());
  f.add(token->last.value());
}

void add_ids(const std::vector<NodeId>& ids, Fingerprint& f) {
  f.add(ids.size());
  for (const NodeId id : ids) f.add(id.value());
}

void add_settings(const GroupSettings& settings, Fingerprint& f) {
  const lease::Timing& timing = settings.timing;
  for (const Duration d : {timing.lease, timing.heartbeat, timing.max_round_trip, timing.margin,
                           timing.election_timeout}) {
    f.add(static_cast<std::uint64_t>(d.count()));
  }
  f.add(static_cast<std::uint64_t>(timing.max_clock_drift_ppm));
  f.add(settings.lease_reads ? 1 : 0);
}

void add_membership(const Membership& membership, Fingerprint& f) {
  f.add(membership.members.size());
  for (const Member& member : membership.members) {
    f.add(member.id.value());
    f.add(member.uuid.high);
    f.add(member.uuid.low);
  }
  add_ids(membership.voters, f);
  add_ids(membership.outgoing_voters, f);
  add_ids(membership.leaving, f);
  // Nothing without them: the pinned fingerprints of groups that have none stay what they are.
  if (!membership.witnesses.empty()) add_ids(membership.witnesses, f);
  if (membership.settings) add_settings(*membership.settings, f);
}

/// 0: `instant` is not after `now`. What never comes is as far ahead at any time.
template <class Tag>
void add_future(lease::Instant<Tag> instant, lease::Instant<Tag> now, Fingerprint& f) {
  if (instant <= now) return f.add(0);  // may be further back than a duration reaches
  const bool never = instant == lease::Instant<Tag>::never();
  const Duration left = never ? instant.since_origin() : instant - now;
  f.add(static_cast<std::uint64_t>(left.count()));
}

/// How long ago `instant` was, but no longer than `oldest`.
template <class Tag>
void add_past(lease::Instant<Tag> instant, lease::Instant<Tag> now, Duration oldest,
              Fingerprint& f) {
  const bool far = instant == lease::Instant<Tag>::earliest();
  const Duration ago = far ? oldest : std::min(oldest, now - instant);
  f.add(static_cast<std::uint64_t>(-ago.count()));
}

void add_epoch(const lease::Epoch& epoch, Fingerprint& f) {
  f.add(epoch.incarnation.value());
  f.add(epoch.counter);
}

void add_process(const Process& process, Fingerprint& f) {
  f.add(process.incarnation.value());
  f.add(process.place);
}

void add_directory(const Uuid& directory, Fingerprint& f) {
  f.add(directory.high);
  f.add(directory.low);
}

void add_start(const lease::RoundStart& start, HolderInstant now, Duration oldest, Fingerprint& f) {
  f.add(start.round.value());
  f.add(static_cast<std::uint64_t>(start.duration.count()));
  f.add(static_cast<std::uint64_t>(start.usable.count()));
  f.add(static_cast<std::uint64_t>(start.drift_ppm));
  add_past(start.began, now, oldest, f);
}

struct Add {
  Fingerprint& f;

  void operator()(const PreVoteRequest& m) const {
    f.add(m.term.value());
    add_log_id(m.last, f);
  }
  void operator()(const PreVoteReply& m) const { reply(m); }
  void operator()(const VoteRequest& m) const {
    f.add(m.term.value());
    add_log_id(m.last, f);
    add_token(m.token, f);
  }
  void operator()(const VoteReply& m) const { reply(m); }
  void operator()(const AppendRequest& m) const {
    f.add(m.term.value());
    add_log_id(m.prev, f);
    f.add(m.entries.size());
    for (const Entry& entry : m.entries) add_entry(entry, f);
    f.add(m.commit.value());
    f.add(m.round.value());
    f.add(static_cast<std::uint64_t>(m.lease.count()));
    f.add(static_cast<std::uint64_t>(m.drift_ppm));
    if (!m.bind) return;
    f.add(m.bind->beat.value());
    add_epoch(m.bind->epoch, f);
  }
  void operator()(const AppendReply& m) const {
    if (m.bound) add_epoch(*m.bound, f);
    f.add(m.request_term.value());
    f.add(m.term.value());
    f.add((m.promised ? 2U : 0U) + (m.matched ? 1U : 0U));
    f.add(m.round.value());
    f.add(m.index.value());
    f.add(m.hint_term.value());
    f.add(m.rejected_prev.value());
  }
  void operator()(const ReadIndexRequest& m) const {
    f.add(m.incarnation.value());
    f.add(m.id);
    f.add(m.quorum ? 1 : 0);
  }
  void operator()(const ReadIndexReply& m) const {
    f.add(m.incarnation.value());
    f.add(m.id);
    f.add(m.index ? m.index->value() + 1 : 0);
    f.add(m.leader.value());
  }
  void operator()(const SnapshotChunk& m) const {
    f.add(m.term.value());
    f.add(m.round.value());
    f.add(static_cast<std::uint64_t>(m.lease.count()));
    f.add(static_cast<std::uint64_t>(m.drift_ppm));
    snapshot(m.id);
    add_membership(m.membership, f);
    f.add(m.size);
    f.add(m.offset);
    add_bytes(m.data, f);
  }
  void operator()(const SnapshotReply& m) const {
    f.add(m.request_term.value());
    f.add(m.term.value());
    f.add((m.promised ? 2U : 0U) + (m.refused ? 1U : 0U));
    f.add(m.round.value());
    snapshot(m.id);
    f.add(m.offset);
  }
  void operator()(const TimeoutNow& m) const { add_token(m.token, f); }

  void snapshot(const SnapshotId& id) const {
    add_log_id(id.last, f);
    f.add(id.tag);
  }
  template <class Reply>
  void reply(const Reply& m) const {
    f.add(m.request_term.value());
    f.add(m.term.value());
    f.add(m.granted ? 1 : 0);
    f.add(m.leader.value());
  }
};

}  // namespace

void add_message(const Message& message, Fingerprint& fingerprint) {
  fingerprint.add(message.index());
  std::visit(Add{fingerprint}, message);
}

void add_hard_state(const HardState& state, Fingerprint& fingerprint) {
  fingerprint.add(state.term.value());
  fingerprint.add(state.voted_for.value());
  fingerprint.add(state.vote_committed ? 1 : 0);
  fingerprint.add(state.promise.holder.value());
  fingerprint.add(state.promise.term.value());
  fingerprint.add(static_cast<std::uint64_t>(state.promise.duration.count()));
}

void add_entry(const Entry& entry, Fingerprint& fingerprint) {
  add_log_id(entry.id, fingerprint);
  fingerprint.add(static_cast<std::uint64_t>(entry.kind));
  add_bytes(entry.payload, fingerprint);
}

/// Knows what a core keeps to itself.
class CoreReader {
 public:
  CoreReader(const Core& core, Now now, Fingerprint& f) : core_(*core.impl_), now_(now), f_(f) {}

  void add() {
    add_hard_state(core_.hard_state_, f_);
    add_future(core_.promise_.until(), now_.promise, f_);
    add_future(core_.promise_.until() + core_.election_timeout_, now_.promise, f_);
    add_future(core_.vote_updated_ + core_.election_timeout_, now_.promise, f_);
    f_.add(static_cast<std::uint64_t>(core_.promise_.remembered().count()));
    f_.add(core_.holder_.uuid.low);
    add_process(core_.holder_.process, f_);
    if (core_.bound_) add_epoch(core_.bound_->epoch, f_);
    f_.add(core_.ended_.newest().size());
    for (const auto& ended : core_.ended_.newest()) {
      f_.add(ended.first.value());
      f_.add(ended.second.uuid.low);
      add_process(ended.second.process, f_);
    }
    f_.add(static_cast<std::uint64_t>(core_.quick_tries_));
    f_.add(core_.refused_.value());
    f_.add(core_.leader_.value());
    f_.add(core_.campaign_at_once_ ? 1 : 0);
    f_.add(core_.machine_stalled_ ? 1 : 0);
    add_log();
    add_disk();
    f_.add(core_.state_.index());
    if (const Candidate* candidate = core_.as_candidate()) add_candidate(*candidate);
    if (const Leader* leader = core_.as_leader()) add_leader(*leader);
    for (const FollowerReads& reads : core_.follower_reads_) {
      f_.add(reads.asked.size());
      for (const std::uint64_t read : reads.asked) f_.add(read);
      f_.add(reads.waiting.size());
      for (const std::uint64_t read : reads.waiting) f_.add(read);
      f_.add(reads.request);
      if (!reads.asked.empty()) past(reads.sent, now_.promise);
    }
    f_.add(core_.next_request_);
    f_.add(core_.published_.term.value());
    f_.add(core_.published_.commit.value());
    add_future(core_.published_.end, now_.holder, f_);
  }

 private:
  /// An instant that lies behind `now`, and matters for a while.
  template <class Tag>
  void past(lease::Instant<Tag> instant, lease::Instant<Tag> now) {
    add_past(instant, now, kPastLeases * core_.timing().lease, f_);
  }

  void add_log() {
    const Log& log = core_.log_;
    add_log_id(log.base(), f_);
    f_.add(log.last_index().value());
    for (Index i = log.base().index.next(); i <= log.last_index(); i = i.next()) {
      f_.add(log.term_at(i)->value());
    }
    f_.add(log.membership_index().value());
    add_membership(log.membership(), f_);
    add_membership(log.membership_at(core_.commit_), f_);
    f_.add(core_.commit_.value());
    f_.add(core_.durable_.value());
    f_.add(core_.handed_out_.value());
    f_.add(core_.announced_commit_.value());
    f_.add(core_.announced_apply_.value());
  }

  /// A batch by its distance from the oldest that is not durable; all that are durable are one.
  void add_batch(ReadyId id) {
    const ReadyId first =
        core_.unanswered_.empty() ? core_.next_ready_ : core_.unanswered_.front().id;
    f_.add(id < first ? 0 : id - first + 1);
  }

  void add_disk() {
    f_.add(core_.unanswered_.size());
    for (const UnansweredBatch& batch : core_.unanswered_) {
      add_batch(batch.id);
      f_.add(batch.last.value());
      past(batch.handed_out, now_.promise);
      f_.add(batch.installs ? 1 : 0);
    }
    add_batch(core_.hard_state_batch_);
  }

  void add_candidate(const Candidate& candidate) {
    f_.add(candidate.pre_vote ? 1 : 0);
    f_.add(candidate.votes.size());
    for (const auto& vote : candidate.votes) {
      f_.add(vote.first.value());
      f_.add(vote.second ? 1 : 0);
    }
    add_batch(candidate.own_vote);
  }

  void add_round(const lease::RoundStart& start) {
    add_start(start, now_.holder, kPastLeases * core_.timing().lease, f_);
  }

  void add_leader(const Leader& leader) {
    past(leader.elected_at.holder, now_.holder);
    past(leader.elected_at.promise, now_.promise);
    f_.add(leader.first_index.value());
    f_.add(leader.sent_commit.value());
    if (core_.options_.commit_news_delay > Duration(0)) {
      f_.add(core_.applied_.value());
      f_.add(leader.commit_of_round.value());
      f_.add(leader.commit_of_earlier_round.value());
    }
    const std::uint64_t newest = leader.rounds.newest().value();
    f_.add(newest);
    const std::uint64_t kept = std::min<std::uint64_t>(newest, lease::RoundRing::kCapacity);
    for (std::uint64_t i = newest - kept + 1; i <= newest; ++i) {
      if (const auto* start = leader.rounds.find(Round(i))) add_round(*start);
    }
    add_future(leader.next_round, now_.promise, f_);
    add_future(leader.others_stalled + core_.timing().election_timeout / 2, now_.promise, f_);
    add_future(leader.lease.end(), now_.holder, f_);
    f_.add(leader.base ? 1 : 0);
    if (leader.base) past(*leader.base, now_.holder);
    f_.add(leader.progress.size());
    for (const auto& peer : leader.progress) {
      f_.add(peer.first.value());
      add_progress(peer.second);
    }
    f_.add(leader.transfer ? 1 : 0);
    if (leader.transfer) {
      f_.add(leader.transfer->target.value());
      add_future(leader.transfer->ends, now_.promise, f_);
      add_token(leader.transfer->token, f_);
    }
    f_.add(leader.token_index.value());
    f_.add(leader.settled_membership.value());
    f_.add(leader.reads.size());
    for (const LeaderRead& read : leader.reads) {
      f_.add(read.read);
      f_.add(read.asker.value());
      f_.add(read.incarnation.value());
      f_.add(static_cast<std::uint64_t>(read.mode));
      f_.add(read.round.value());
    }
    if (core_.options_.shared != nullptr) add_rest(leader);
  }

  void add_rest(const Leader& leader) {
    f_.add((leader.at_rest ? 2U : 0U) + (leader.partial_round ? 1U : 0U));
    f_.add(leader.lease_class.value());
    past(leader.beats_from, now_.holder);
    add_ids(leader.bind_asked, f_);
    for (const auto& peer : leader.progress) {
      const Progress& progress = peer.second;
      if (progress.bound) add_directory(progress.bound->directory, f_);
      f_.add((progress.bind_asked ? 2U : 0U) + (progress.rests ? 1U : 0U));
      f_.add(progress.sent_commit_in.value());
      f_.add(progress.known_commit.value());
      past(progress.heard, now_.promise);
    }
  }

  void add_progress(const Progress& progress) {
    f_.add(static_cast<std::uint64_t>(progress.state));
    f_.add(progress.match_index.value());
    f_.add(progress.next_index.value());
    f_.add((progress.paused ? 2U : 0U) + (progress.intent != 0 ? 1U : 0U));
    f_.add(progress.inflights.size());
    for (const Inflight& inflight : progress.inflights) {
      f_.add(inflight.last.value());
      f_.add(inflight.bytes);
    }
    f_.add(progress.snapshot_ended.value());
    f_.add(progress.sent_commit.value());
    add_future(progress.news_due, now_.promise, f_);
    add_future(progress.listens_until, now_.promise, f_);
    f_.add(progress.acked_round ? 1 : 0);
    if (progress.acked_round) add_round(*progress.acked_round);
    if (progress.bound) add_epoch(progress.bound->epoch, f_);
  }

  const Core::Impl& core_;
  const Now now_;
  Fingerprint& f_;
};

void add_core(const Core& core, Now now, Fingerprint& fingerprint) {
  CoreReader(core, now, fingerprint).add();
}

/// Knows what the promises between processes keep to themselves.
class PromisesReader {
 public:
  PromisesReader(const ProcessPromises& promises, Now now, Fingerprint& f)
      : of_(promises), now_(now), oldest_(kPastLeases * promises.options_.longest_promise), f_(f) {}

  void add() {
    f_.add(of_.healthy_ ? 1 : 0);
    f_.add(static_cast<std::uint64_t>(of_.options_.timing.lease.count()));
    f_.add(static_cast<std::uint64_t>(of_.options_.timing.max_clock_drift_ppm));
    add_future(of_.beat_due_, now_.promise, f_);
    if (of_.classes_.any_lives()) add_future(of_.classes_due_, now_.promise, f_);
    add_beats();
    f_.add(of_.peers_.size());
    for (const auto& peer : of_.peers_) add_peer(peer);
    f_.add(of_.supports_.size());
    for (const auto& [directory, supported] : of_.supports_) {
      add_directory(directory, f_);
      add_supported(supported);
    }
    f_.add(of_.supporters_.size());
    for (const auto& [directory, supporter] : of_.supporters_) {
      add_directory(directory, f_);
      if (!supporter.epoch()) continue;
      add_epoch(*supporter.epoch(), f_);
      if (const auto beat = supporter.acknowledged(*supporter.epoch())) add_beat(*beat);
    }
    add_classes();
    f_.add(of_.remembered_.size());
    for (const auto& [holder, longest] : of_.remembered_) {
      f_.add(holder.value());
      f_.add(static_cast<std::uint64_t>(longest.count()));
    }
  }

 private:
  void add_beat(const lease::RoundStart& beat) { add_start(beat, now_.holder, oldest_, f_); }

  void add_beats() {
    const std::uint64_t newest = of_.beats_.newest().value();
    f_.add(newest);
    const std::uint64_t kept = std::min<std::uint64_t>(newest, lease::RoundRing::kCapacity);
    for (std::uint64_t i = newest - kept + 1; i <= newest; ++i) {
      add_beat(*of_.beats_.find(lease::Beat(i)));
    }
  }

  void add_peer(const ProcessPromises::PeerState& peer) {
    f_.add(peer.id.value() * 2 + (peer.member ? 1 : 0));
    add_directory(peer.directory, f_);
    f_.add(peer.released.size());
    for (const ReleasedGroup& released : peer.released) {
      f_.add(released.group.value());
      f_.add(released.term.value());
      f_.add(released.since.value());
    }
  }

  void add_supported(const ProcessPromises::Supported& supported) {
    const lease::Support& support = supported.support;
    f_.add(supported.id.value());
    add_process(support.process(), f_);
    add_epoch(support.epoch(), f_);
    f_.add(support.released().value());
    f_.add(static_cast<std::uint64_t>(support.remembered().count()));
    add_future(support.until(), now_.promise, f_);
    add_past(support.let_go_at(), now_.promise, oldest_, f_);
    const bool writes = supported.write > of_.persisted_;
    f_.add((supported.lasts ? 2U : 0U) + (writes ? 1U : 0U));
    if (!writes || !supported.held) return;
    f_.add(supported.held->incarnation.value());
    f_.add(supported.held->beat.value());
    add_epoch(supported.held->epoch, f_);
  }

  void add_classes() {
    f_.add(of_.classes_.entries_.size());
    for (const auto& [id, entry] : of_.classes_.entries_) {
      f_.add(id.value());
      f_.add(entry.basis.bound.size());
      for (const LeaseBasis::Bound& voter : entry.basis.bound) {
        add_directory(voter.directory, f_);
        add_epoch(voter.epoch, f_);
      }
      f_.add(entry.basis.voters * 2 + (entry.basis.own ? 1 : 0));
      f_.add(entry.lapsed ? 1 : 0);
      add_future(entry.state.end, now_.holder, f_);
      add_past(entry.state.began, now_.holder, oldest_, f_);
    }
  }

  const ProcessPromises& of_;
  const Now now_;
  const Duration oldest_;
  Fingerprint& f_;
};

void add_promises(const ProcessPromises& promises, Now now, Fingerprint& fingerprint) {
  PromisesReader(promises, now, fingerprint).add();
}

}  // namespace leasehold::raft
