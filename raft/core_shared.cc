// How the lease of this group rests on promises between processes, which it shares with other
// groups (docs/decisions/0024). Without SharedPromises nothing here has an effect.
//
// The member: an append binds its promise to the support that its process gives to the leader's.
// Then the promise lives as long as the support does, at the same epoch. A follower sleeps
// meanwhile: its process wakes it when the support ends.
//
// The leader: a member that has bound its promise counts by the beats that its process has
// acknowledged. If none needs a message, the leader rests, and its lease lasts as long as the class
// that it has joined (lease_classes.h).

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>
#include <leasehold/raft/quorum.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace leasehold::raft {
namespace {

/// A peer is silent if nothing was heard of it for so many D: nobody sends to it in vain.
constexpr int kSilentLeases = 3;
/// In such times is one tried again whose process has answered before.
constexpr int kRareTries = 20;

}  // namespace

// ---- The member ----

const lease::Support* Core::Impl::support() const {
  return bound_ ? options_.shared->support_of(bound_->directory) : nullptr;
}

bool Core::Impl::promise_lives() const {
  if (promise_.live(now_.promise)) return true;
  const lease::Support* const shared = support();
  return shared != nullptr && shared->covers(bound_->epoch, now_.promise);
}

PromiseInstant Core::Impl::promise_until() const {
  const lease::Support* const shared = support();
  if (shared == nullptr || shared->epoch() != bound_->epoch) return promise_.until();
  return std::max(promise_.until(), shared->until());
}

// Since when this node may wait for an election. What other groups have let go is over since then,
// and not since this group's own last append: they must not all ask at once.
PromiseInstant Core::Impl::promise_was_over() const {
  const lease::Support* const shared = support();
  if (shared == nullptr || shared->epoch() == bound_->epoch) return promise_until();
  return std::max(promise_.until(), shared->let_go_at());
}

// Until its support ends, this follower waits for nothing: ProcessReady::lapsed_supports names
// that end.
bool Core::Impl::sleeps() const {
  const lease::Support* const shared = support();
  return shared != nullptr && shared->covers(bound_->epoch, now_.promise) &&
         shared->until() >= promise_.until();
}

// The promise is renewed. What remains of `bind` is to be answered with bound_.
void Core::Impl::take_bind(std::optional<BindRequest>& bind) {
  if (!bind) return;
  LEASEHOLD_ASSERT(holder_ == sender_ && hard_state_.promise.holder == sender_.id);
  const lease::Support* const shared =
      options_.shared != nullptr ? options_.shared->support_of(sender_.uuid) : nullptr;
  if (shared == nullptr || !shared->accepts({sender_.process, bind->beat, bind->epoch})) {
    bind.reset();
    return;
  }
  bound_ = BoundPromise{sender_.uuid, shared->epoch()};
  LEASEHOLD_ASSERT(bound_->epoch == bind->epoch);
}

// This node is about to do what a live promise forbids, and its promise is over. If that was bound,
// the holder must not count on what this node acknowledges to it from now on.
void Core::Impl::rely() {
  if (!bound_ || promise_lives()) return;
  const lease::Support* const shared = support();
  if (shared != nullptr && shared->epoch() == bound_->epoch) {
    options_.shared->rely(bound_->directory, now_.promise);
  }
  bound_.reset();
  LEASEHOLD_ASSERT(!promise_lives());
}

void Core::Impl::drop_promise() {
  promise_.drop();
  bound_.reset();
  hard_state_.promise = StoredPromise{};
  LEASEHOLD_ASSERT(!promise_lives());
}

void Core::Impl::released(Now now, const Peer& peer, Term term) {
  begin_input(now);
  const StoredPromise& promise = hard_state_.promise;
  // A later term is another leadership, of which this says nothing. A node that waits to be added
  // keeps its own promise, which is all that it has of its group.
  const bool held =
      peer.id != kNobody && promise.holder == peer.id && promise.term <= term && holder_ == peer;
  // Test: Shared.ANewcomerIsReleasedToo.
  if (held) bound_.reset();
  if (held && log_.ever_names(options_.id, options_.uuid)) {
    LEASEHOLD_ASSERT(as_leader() == nullptr);  // it would have dropped the promise
    drop_promise();
    if (leader_ == peer.id) {
      become_follower(RoleChangeReason::leader_released);
      restart_election_timer();
    }
    LEASEHOLD_ASSERT(leader_ != peer.id);
  }
  end_input();
}

// ---- The leader ----

void Core::Impl::promises_moved(Now now) {
  begin_input(now);  // derives what follows
  end_input();
}

// None: the member's process has acknowledged no beat.
std::optional<BindRequest> Core::Impl::bind_for(NodeId member) const {
  if (options_.shared == nullptr) return std::nullopt;
  const Member* const found = log_.membership().find(member);
  if (found == nullptr) return std::nullopt;  // about to be removed
  const lease::Supporter* const supporter = options_.shared->supporter(found->uuid);
  if (supporter == nullptr || !supporter->epoch()) return std::nullopt;
  return BindRequest{options_.shared->beats().newest(), *supporter->epoch()};
}

// As Leader::acknowledged(), and each voter also contributes the newest beat of this process that
// its process has acknowledged at the epoch at which it has bound its promise in this term.
QuorumAcknowledged Core::Impl::acknowledged(const Leader& leader, bool votes) const {
  if (options_.shared == nullptr) return leader.acknowledged(log_.membership(), votes);
  const SharedPromises& shared = *options_.shared;
  const lease::Timing numbers = holder_timing();
  using Values =
      std::tuple<std::optional<HolderInstant>, std::optional<HolderInstant>, std::optional<Round>>;
  const auto values = [&](const lease::RoundStart* round, std::optional<lease::RoundStart> beat,
                          bool lacks_nothing) -> Values {
    Values found;
    if (round != nullptr) found = {round->end(), round->began, round->round};
    if (!beat) return found;
    auto& [end, began, number] = found;
    // A beat knows nothing of this group's numbers.
    beat->limit(numbers);
    if (beat->began > leader.beats_from) end = std::max(end, std::optional(beat->end()));
    // A peer that lacks an entry has to answer in the group: its process alone commits nothing.
    // Test: Shared.ALeaderThatCommitsNothingStepsDownThoughItsBeatsAreHeard.
    if (lacks_nothing) began = std::max(began, std::optional(beat->began));
    return found;
  };
  const auto values_of = [&](NodeId id) -> Values {
    if (id == options_.id && votes) {
      const lease::RoundStart* const newest = shared.beats().find(shared.beats().newest());
      return values(&leader.newest_round(),
                    newest != nullptr ? std::optional(*newest) : std::nullopt, true);
    }
    const Progress* const peer = leader.find(id);
    if (peer == nullptr) return {};
    const lease::RoundStart* const round = peer->acked_round ? &*peer->acked_round : nullptr;
    const lease::Supporter* const supporter =
        peer->bound ? shared.supporter(peer->bound->directory) : nullptr;
    if (supporter == nullptr) return values(round, std::nullopt, false);
    return values(round, supporter->acknowledged(peer->bound->epoch),
                  peer->match_index == log_.last().index);
  };
  const auto [end, began, round] =
      quorum_values<HolderInstant, HolderInstant, Round>(log_.membership(), values_of);
  return {end, began, round};
}

// The newest round or beat of this process that the peer has acknowledged began then.
std::optional<HolderInstant> Core::Impl::last_heard(const Progress& peer) const {
  std::optional<HolderInstant> heard;
  if (peer.acked_round) heard = peer.acked_round->began;
  if (!peer.bound) return heard;
  LEASEHOLD_ASSERT(options_.shared != nullptr);  // else nothing is bound
  const lease::Supporter* const supporter = options_.shared->supporter(peer.bound->directory);
  if (supporter == nullptr) return heard;
  const std::optional<lease::RoundStart> beat = supporter->acknowledged(peer.bound->epoch);
  return beat ? std::max(heard, std::optional(beat->began)) : heard;
}

/// When a leader at rest has to look again, if no input ends the rest.
struct Core::Impl::Rest {
  PromiseInstant until;                            ///< before its lease ends, unless it has a class
  PromiseInstant retry = PromiseInstant::never();  ///< a silent member
};

// No peer needs a message of the group, and the lease needs no round: each peer lacks nothing and
// its promise rests on the beats of this process, or it does not answer. Notes which peers rest:
// the next round leaves them out.
std::optional<Core::Impl::Rest> Core::Impl::find_rest(Leader& leader) const {
  if (options_.shared == nullptr) return std::nullopt;
  leader.leave_out_none();
  if (!leader.lease.valid(now_.holder)) return std::nullopt;
  const Index last = log_.last_index();
  if (commit_ != last || leader.transfer || !leader.reads.empty()) return std::nullopt;
  // The beats may be rarer than this group needs, or worth less to it.
  const Duration rest = leader.lease.end() - now_.holder - timing().heartbeat;
  if (rest.count() <= 0) return std::nullopt;
  Rest found{now_.promise + rest};
  const lease::RoundStart& newest = leader.newest_round();
  bool all_rest = true;
  for (auto& [id, peer] : leader.progress) {
    const Member* const member = log_.membership().find(id);
    const lease::Supporter* const supporter =
        member != nullptr ? options_.shared->supporter(member->uuid) : nullptr;
    const bool met = supporter != nullptr && supporter->epoch();
    const auto beat = met ? supporter->acknowledged(*supporter->epoch()) : std::nullopt;
    const Duration lease = std::max(newest.duration, beat ? beat->duration : Duration(0));
    const Duration silence = lease * kSilentLeases;
    const bool beats_heard = beat && now_.holder - beat->began < silence;
    if (member != nullptr && !beats_heard && now_.promise - peer.heard >= silence) {
      // Its next message, or its process's next answer, ends the rest. But a process whose groups
      // do not know this node answers no beat: it is tried again, more rarely if it has answered
      // once, for a group that it may have left since.
      // Tests: Rest.AMemberThatWasNeverHeardIsTriedNowAndThen, .ASilentMemberIsTriedNowAndThen.
      const Duration tried = now_.holder - newest.began;
      const Duration apart = met ? silence * kRareTries : silence;
      found.retry = std::min(found.retry, now_.promise + (apart - tried));
      continue;
    }
    // At another epoch it has let go, and has to bind again. One that is no member is about to be
    // removed.
    const bool bound = peer.bound && met && *supporter->epoch() == peer.bound->epoch &&
                       peer.bound->directory == member->uuid;
    peer.rests = bound && peer.match_index == last && peer.known_commit >= commit_for(peer);
    all_rest = all_rest && peer.rests;
  }
  if (all_rest && found.retry > now_.promise) return found;
  // Behind a round that some were not sent, the next one comes in time for the lease.
  if (rest < timing().heartbeat) leader.leave_out_none();
  return std::nullopt;
}

bool Core::Impl::try_rest(Leader& leader) {
  const std::optional<Rest> rest = find_rest(leader);
  if (!rest) return false;
  leader.at_rest = true;
  leader.lease_class = join_class(leader);
  leader.leave_out_none();
  leader.next_round =
      leader.lease_class != kNoClass ? rest->retry : std::min(rest->until, rest->retry);
  return true;
}

// kNoClass: the leader, which may rest, has to look by itself.
LeaseClassId Core::Impl::join_class(const Leader& leader) const {
  const SharedPromises& shared = *options_.shared;
  const Membership& newest = log_.membership();
  if (newest.joint() || options_.witness || !shows_leases()) return kNoClass;
  LeaseBasis basis(holder_timing());
  basis.voters = newest.voters.size();
  basis.own = own_seat();
  const auto counts = [&leader](const lease::RoundStart* beat) {
    return beat != nullptr && beat->began > leader.beats_from;
  };
  if (!counts(shared.beats().find(shared.beats().newest()))) return kNoClass;
  for (const auto& [id, peer] : leader.progress) {
    if (!peer.rests || !newest.is_voter(id)) continue;
    const auto beat = shared.supporter(peer.bound->directory)->acknowledged(peer.bound->epoch);
    if (!counts(beat ? &*beat : nullptr)) return kNoClass;
    basis.bound.push_back({peer.bound->directory, peer.bound->epoch});
  }
  std::sort(basis.bound.begin(), basis.bound.end());
  return options_.shared->join(basis, now_.holder);
}

void Core::Impl::give_back() {
  pending_.give_back();
  unanswered_.give_back();
  if (Leader* leader = as_leader()) {
    for (auto& [id, progress] : leader->progress) progress.inflights.give_back();
    leader->reads.give_back();
  }
}

LeaseClassId Core::Impl::lease_class() const {
  return as_leader() != nullptr ? as_leader()->lease_class : kNoClass;
}

// What this leader would have seen if it had looked at each beat.
void Core::Impl::advance_by_class(Leader& leader) const {
  if (leader.lease_class == kNoClass) return;
  LEASEHOLD_ASSERT(leader.at_rest && !leader.token_alive(commit_) && !options_.witness);
  const LeaseClass& reached = options_.shared->lease_class(leader.lease_class);
  leader.lease.extend(reached.end);
  if (!leader.base || reached.began > *leader.base) leader.base = reached.began;
}

std::optional<Release> Core::Impl::release_at_stop() {
  if (Leader* const leader = as_leader(); leader != nullptr) {
    leader->end_rest();
    release_members(*leader);
  }
  return std::exchange(pending_.release, std::nullopt);
}

// This node leads no more, and the loss is published with the next Ready, before the release.
void Core::Impl::release_members(const Leader& leader) {
  std::vector<NodeId> members = leader.bind_asked;
  for (const auto& [id, progress] : leader.progress) {
    if (progress.bind_asked) members.push_back(id);
  }
  if (members.empty()) return;
  if (pending_.release) {
    members.insert(members.end(), pending_.release->members.begin(),
                   pending_.release->members.end());
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  pending_.release = Release{leader.term, std::move(members)};
}

}  // namespace leasehold::raft
