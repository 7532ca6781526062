// The frame of a turn: inputs come in with their time, effects collect in pending_, take_ready()
// (core_output.cc) hands them out.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>

namespace leasehold::raft {
namespace {

// The others have not committed what they got a `patience` ago. They need this node's disk for that
// only where one of them is missing, and then no other leader could commit it either.
bool others_stall(const Ring<UnansweredBatch>& unanswered, Index commit, PromiseInstant now,
                  Duration patience) {
  for (const UnansweredBatch& batch : unanswered) {
    if (now - batch.handed_out < patience) return false;
    if (batch.last > commit) return true;
  }
  return false;
}

}  // namespace

Core::Impl::Impl(const CoreOptions& options, InitialState initial, Now now)
    : options_(options),
      random_(options.seed),
      now_(now),
      started_at_(now.promise),
      started_term_(initial.hard_state.term),
      hard_state_(initial.hard_state),
      vote_updated_(now.promise),
      log_(initial.base, std::move(initial.base_membership), std::move(initial.runs),
           initial.last_index, std::move(initial.memberships)) {
  LEASEHOLD_ASSERT(options_.timing.validate().ok());
  LEASEHOLD_ASSERT(options_.id != kNobody);
  LEASEHOLD_ASSERT(initial.applied >= log_.base().index);
  LEASEHOLD_ASSERT(initial.applied <= log_.last_index());
  commit_ = initial.applied;
  held_ = log_.base().index;
  durable_ = log_.last_index();
  handed_out_ = log_.last_index();
  applied_ = commit_;
  announced_commit_ = commit_;
  announced_apply_ = commit_;
  announced_settings_ = log_.membership().settings;
  // Independent of the vote: a node that ever promised may still be bound, and no longer knows
  // since when, nor with what bound on the drift of its clock.
  const Duration remembered = hard_state_.promise.duration;
  Duration longest = remembered;
  if (options_.shared != nullptr && remembered.count() > 0) {
    longest = std::max(longest, options_.shared->remembered(hard_state_.promise.holder));
  }
  promise_ = lease::VoterPromise::restarted(remembered, options_.timing.stretched(longest, 0),
                                            now.promise);
  published_ = LeaseState{hard_state_.term, HolderInstant::earliest(), commit_, commit_, kNoClass};
  pending_.lease = published_;
  checked_ = {hard_state_.term,        log_.base().index,         commit_,
              log_.membership_index(), HolderInstant::earliest(), {}};
  restart_election_timer();
  // This process follows the one that led: it has the newest log, and the voters let it pass,
  // unless the directory has come to another place.
  if (hard_state_.vote_committed && hard_state_.voted_for == options_.id) hasten_election();
  emit(RoleChanged{Role::follower, Role::follower, RoleChangeReason::started});
  LEASEHOLD_ASSERT(leader_ == kNobody);
  check_invariants();
}

Role Core::Impl::role() const {
  if (std::holds_alternative<Leader>(state_)) return Role::leader;
  if (const auto* candidate = std::get_if<Candidate>(&state_)) {
    return candidate->pre_vote ? Role::pre_candidate : Role::candidate;
  }
  return Role::follower;
}

const Peers& Core::Impl::progress() const {
  static const Peers kNone;
  const Leader* leader = as_leader();
  return leader != nullptr ? leader->progress : kNone;
}

HolderInstant Core::Impl::lease_end() const {
  const Leader* leader = as_leader();
  if (leader == nullptr || commit_ < leader->first_index || leader->token_alive(commit_) ||
      !shows_leases()) {
    return HolderInstant::earliest();
  }
  return end_of(
      {leader->term, leader->lease.end(), commit_, leader->sent_commit, leader->lease_class});
}

std::optional<HolderInstant> Core::Impl::quorum_round() const {
  return as_leader() != nullptr ? as_leader()->base : std::nullopt;
}

HolderInstant Core::Impl::end_of(const LeaseState& state) const {
  if (state.lease_class == kNoClass) return state.end;
  return std::max(state.end, options_.shared->lease_class(state.lease_class).end);
}

std::size_t Core::Impl::pending_reads() const {
  std::size_t count = 0;
  if (const Leader* leader = as_leader()) count += leader->reads.size();
  for (const FollowerReads& reads : follower_reads_) {
    count += reads.asked.size() + reads.waiting.size();
  }
  return count;
}

// ---- Inputs ----

void Core::Impl::begin_input(Now now) {
  LEASEHOLD_ASSERT(now.holder >= now_.holder);
  LEASEHOLD_ASSERT(now.promise >= now_.promise);
  now_ = now;
  input_came_ = true;
  LEASEHOLD_ASSERT(!campaign_at_once_);
  observe_time();
}

void Core::Impl::end_input() {
  derive();
  if (campaign_at_once_) {
    campaign_at_once_ = false;
    if (may_campaign()) start_pre_vote(RoleChangeReason::higher_term);
  }
  LEASEHOLD_ASSERT(!campaign_at_once_);
  check_invariants();
}

// The time alone can show a leader that it must step down; so every input begins with this check.
void Core::Impl::observe_time() {
  Leader* leader = as_leader();
  if (leader == nullptr) return;
  if (options_.shared != nullptr) {
    // Beats may have been acknowledged since.
    // Test: Shared.AnIdleLeaderIsNotDeposedByALateInput.
    leader->due.rounds = leader->due.reads = true;
    advance_by_class(*leader);
    derive_quorum(*leader);
  }
  if (now_.holder >= leader->quorum_deadline()) {
    become_follower(RoleChangeReason::quorum_lost);
    return;
  }
  if (others_stall(unanswered_, commit_, now_.promise, timing().election_timeout / 2)) {
    leader->others_stalled = now_.promise;
  }
  if (const auto why = stalled()) become_follower(*why);
}

void Core::Impl::tick(Now now) {
  begin_input(now);
  if (Leader* leader = as_leader()) {
    if (leader->transfer && now_.promise >= leader->transfer->ends) end_transfer();
    if (now_.promise >= leader->next_round && !try_rest(*leader)) begin_round();
  } else {
    const bool due = may_campaign() && now_.promise >= election_deadline();
    if (due &&
        (options_.shared == nullptr || options_.shared->take_place(options_.group, now_.promise))) {
      start_pre_vote(quick_tries_ > 0 ? RoleChangeReason::leader_ended
                                      : RoleChangeReason::election_timeout);
    }
    for (std::size_t i = 0; i < follower_reads_.size(); ++i) {
      const FollowerReads& reads = follower_reads_[i];
      if (!reads.asked.empty() && now_.promise >= reads.sent + timing().election_timeout) {
        ask_leader(static_cast<ReadMode>(i));
      }
    }
  }
  end_input();
}

PromiseInstant Core::Impl::next_deadline() const {
  if (const Leader* leader = as_leader()) {
    PromiseInstant due = leader->next_round;
    // The holder's clock is the faster of the two: the rest on it is at least the rest on the
    // timers' clock.
    if (leader->lease_class == kNoClass) {
      due = std::min(due, now_.promise + (leader->quorum_deadline() - now_.holder));
    }
    if (leader->transfer) due = std::min(due, leader->transfer->ends);
    for (const auto& [id, progress] : leader->progress) {
      if (keeps_news(progress)) due = std::min(due, progress.news_due);
    }
    if (!unanswered_.empty() && commit_ > durable_) {
      const Duration patience = timing().election_timeout;
      due = std::min(due, std::max(unanswered_.front().handed_out + patience,
                                   leader->others_stalled + patience / 2));
    }
    return due;
  }
  PromiseInstant due = PromiseInstant::never();
  if (eligible() && !stalled() && !awaits_place() && !sleeps()) due = election_deadline();
  for (const FollowerReads& reads : follower_reads_) {
    if (!reads.asked.empty()) due = std::min(due, reads.sent + timing().election_timeout);
  }
  return due;
}

void Core::Impl::step(Now now, const Peer& from, Message& message) {
  begin_input(now);
  // A message without a sender or from this node itself is a fault of the transport; it is ignored.
  // One from a process that has ended comes too late: it could bind this node to a leader that is
  // gone.
  if (from.id != kNobody && from.id != options_.id && !ended_.contains(from) &&
      !from_impostor(from, message)) {
    sender_ = from;
    note_start(from);
    if (Leader* leader = as_leader(); leader != nullptr && options_.shared != nullptr) {
      const Member* const member = log_.membership().find(from.id);
      Progress* const peer = leader->find(from.id);
      if (peer != nullptr && member != nullptr && member->uuid == from.uuid)
        peer->heard = now.promise;
    }
    if (const std::optional<Violation> what = violation(from.id, message)) {
      report(from.id, *what);
    } else {
      std::visit([this, from](auto& m) { handle(from.id, m); }, message);
    }
  }
  end_input();
}

// A leader that no longer votes leads only until its removal is committed. It accepts no new
// entries, so that the entry of its removal is its last, and a voter that has it can follow at
// once.
bool Core::Impl::takes_proposals() const {
  const Leader* leader = as_leader();
  return leader != nullptr && !leader->transfer && own_seat() && !options_.witness &&
         log_.last_index() < kIndexMax;
}

bool Core::Impl::meets(const ExpectedLeader& expected) const {
  if (expected.term && *expected.term != hard_state_.term) return false;
  return expected.leader == kNobody || expected.leader == leader_;
}

std::optional<LogId> Core::Impl::propose(Now now, std::vector<Bytes> payloads,
                                         const ExpectedLeader& expected) {
  begin_input(now);
  std::optional<LogId> first;
  // Behind begin_input(): the time alone may have ended the leadership that is expected.
  if (takes_proposals() && meets(expected) && !payloads.empty()) {
    first = LogId{hard_state_.term, log_.last_index().next()};
    for (Bytes& payload : payloads) append_entry(EntryKind::command, std::move(payload));
    LEASEHOLD_ASSERT(log_.last_index() - first->index + 1 == payloads.size());
  }
  end_input();
  return first;
}

void Core::Impl::persisted(Now now, ReadyId id) {
  begin_input(now);
  LEASEHOLD_ASSERT(id < next_ready_);
  durable_batch_ = std::max(durable_batch_, id);
  while (!unanswered_.empty() && unanswered_.front().id <= id) {
    const UnansweredBatch& batch = unanswered_.front();
    durable_ = std::max(durable_, batch.last);
    if (batch.installs) {
      // Nothing below it was announced since the snapshot arrived, and nothing will be.
      LEASEHOLD_ASSERT(announced_apply_ < batch.installs->last.index);
      announced_apply_ = batch.installs->last.index;
      pending_.install = batch.installs;
      emit(SnapshotInstalled{batch.installs->last});
    }
    unanswered_.pop_front();
  }
  LEASEHOLD_ASSERT(durable_ <= log_.last_index());
  LEASEHOLD_ASSERT(unanswered_.empty() || unanswered_.front().id > durable_batch_);
  if (Candidate* candidate = as_candidate()) {
    if (!candidate->pre_vote && candidate->own_vote <= durable_batch_) {
      candidate->votes.emplace(options_.id, true);
      count_votes();
    }
  }
  // The leader is one of those whose durable prefix counts.
  if (Leader* leader = as_leader()) leader->due.matches = true;
  end_input();
}

// ---- The log and the roles ----

void Core::Impl::append_entry(EntryKind kind, Bytes payload) {
  LEASEHOLD_ASSERT(kind != EntryKind::membership);
  LEASEHOLD_ASSERT(as_leader() != nullptr);
  log_.append(hard_state_.term, nullptr);
  pending_.persist.entries.push_back({log_.last(), kind, std::move(payload)});
}

void Core::Impl::truncate_log(Index from) {
  LEASEHOLD_ASSERT(from > commit_);
  LEASEHOLD_ASSERT(as_leader() == nullptr);  // leader append-only (section 5.3)
  const bool falls_back = log_.membership_index() >= from;
  log_.truncate(from);
  if (falls_back) note_membership();  // Test: Change.ATruncatedMembershipFallsBackToTheOneBefore.
  // A completion that is still to come refers to the entries that the log had when the batch was
  // issued (the A-B-A race).
  // Test: Replication.ACompletionOfReplacedEntriesMovesNoMatch.
  durable_ = std::min(durable_, from.prev());
  for (UnansweredBatch& batch : unanswered_) batch.last = std::min(batch.last, from.prev());
  auto& entries = pending_.persist.entries;
  while (!entries.empty() && entries.back().id.index >= from) entries.pop_back();
  if (from <= handed_out_) {
    handed_out_ = from.prev();
    pending_.persist.truncate_from = from;
  }
  LEASEHOLD_ASSERT(log_.last_index() == from.prev());
  LEASEHOLD_ASSERT(durable_ <= log_.last_index());
}

void Core::Impl::advance_commit(Index index) {
  if (index <= commit_) return;
  LEASEHOLD_ASSERT(index <= log_.last_index());
  const Index membership = log_.membership_index();
  const bool news = commit_ < membership && membership <= index;
  commit_ = index;
  if (news) emit(MembershipCommitted{membership});
}

void Core::Impl::mark_hard_state() {
  hard_state_.promise.duration = promise_.remembered();
  pending_.persist.hard_state = hard_state_;
}

// The batch that has to be durable before the current hard state is.
ReadyId Core::Impl::hard_state_ready() const {
  return pending_.persist.hard_state ? next_ready_ : hard_state_batch_;
}

// The batch that has to be durable before everything up to `index` is; zero if it is.
ReadyId Core::Impl::entries_ready(Index index) const {
  if (index <= durable_) return ReadyId();
  for (const UnansweredBatch& batch : unanswered_) {
    if (batch.last >= index) return batch.id;
  }
  return next_ready_;
}

// Why this node would be no leader for its group; none: it can act.
std::optional<RoleChangeReason> Core::Impl::stalled() const {
  const Duration patience = timing().election_timeout;
  const bool disk =
      !unanswered_.empty() && now_.promise - unanswered_.front().handed_out >= patience;
  // While all disks stand still no leader could write, and the lease of this one serves reads. Once
  // the others move again, this disk has half an election timeout to follow.
  // Test: Election.ALeaderWhoseDiskStallsLeadsOnWhileTheOthersStoreNothing.
  const Leader* leader = as_leader();
  const bool others_write =
      leader == nullptr ||
      (commit_ > durable_ && now_.promise >= leader->others_stalled + patience / 2);
  if (disk && others_write) return RoleChangeReason::disk_stalled;
  if (options_.shared != nullptr && !options_.shared->healthy()) {
    return RoleChangeReason::process_stalled;
  }
  if (machine_stalled_) return RoleChangeReason::machine_stalled;
  return std::nullopt;
}

void Core::Impl::machine_stalled(Now now, bool stalled) {
  machine_stalled_ = stalled;
  begin_input(now);  // a leader steps down
  end_input();
}

void Core::Impl::adopt_term(Term term, RoleChangeReason reason) {
  LEASEHOLD_ASSERT(term > hard_state_.term);
  LEASEHOLD_ASSERT(term > log_.last_term());
  const Leader* leader = as_leader();
  const bool led = leader != nullptr;
  // Most likely the target's campaign, which a campaign of this node would disturb.
  // Test: Transfer.TheLeaderDoesNotCampaignAgainstItsTarget.
  const bool handing_over = led && leader->transfer && leader->transfer->token;
  hard_state_.term = term;
  hard_state_.voted_for = kNobody;
  hard_state_.vote_committed = false;
  mark_hard_state();
  // The leader of the term before may find this node bound when it is heard again, and rest.
  // Test: Rest.AMemberThatHasTakenAHigherTermIsNotAtRest.
  rely();
  become_follower(reason);
  if (led && !handing_over) campaign_at_once_ = true;
  LEASEHOLD_ASSERT(role() == Role::follower);
  LEASEHOLD_ASSERT(hard_state_.voted_for == kNobody);
}

void Core::Impl::become_follower(RoleChangeReason reason) {
  leader_ = kNobody;
  refuse_reads();
  if (const Leader* leader = as_leader()) {
    if (lease_end() > now_.holder) emit(LeaseLost{lease_end()});
    if (leader->transfer) {
      emit(TransferEnded{leader->transfer->target, TransferOutcome::left_role});
    }
    restart_election_timer();
    release_members(*leader);
  }
  if (role() != Role::follower) change_role(Follower{}, reason);
  LEASEHOLD_ASSERT(leader_ == kNobody);
  LEASEHOLD_ASSERT(lease_end() == HolderInstant::earliest());
}

void Core::Impl::change_role(std::variant<Follower, Candidate, Leader> next,
                             RoleChangeReason reason) {
  const Role from = role();
  state_ = std::move(next);
  emit(RoleChanged{from, role(), reason});
}

}  // namespace leasehold::raft
