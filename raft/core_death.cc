// What a node does when it knows that a process of a peer has ended (lease/README.md, rules 37 to
// 40). A belief, because of silence or of a broken connection, is not knowledge and comes to no
// function here.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace leasehold::raft {
namespace {

/// Then it waits for election timeouts again: the leader is not what keeps it from winning.
constexpr int kQuickTries = 5;

/// Not the number itself: a placement may give every third group to one node.
constexpr std::size_t share_of(GroupId group) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U;  // Fibonacci hashing
  return static_cast<std::size_t>((group.value() * kGolden) >> 33U);
}

}  // namespace

void Core::Impl::ended(Now now, const Peer& peer) {
  begin_input(now);
  // Of this node's own process it would be a lie, and of earlier ones no news.
  if (peer.id != kNobody && peer.id != options_.id) note_end(peer);
  end_input();
}

// A message shows that the processes before its sender have ended.
void Core::Impl::note_start(const Peer& from) {
  const std::uint64_t incarnation = from.process.incarnation.value();
  if (incarnation > 1) {
    note_end({from.id, from.uuid, {Incarnation(incarnation - 1), from.process.place}});
  }
}

void Core::Impl::note_end(const Peer& peer) {
  LEASEHOLD_ASSERT(peer.id != options_.id && peer.id != kNobody);
  if (!ended_.add(peer, log_.membership())) return;
  const StoredPromise& promise = hard_state_.promise;
  // After a restart this node does not know which process it promised: the number may have led
  // that term before or after the one that ended.
  const bool of_holder = promise.holder == peer.id && holder_.uuid == peer.uuid &&
                         ended_by(holder_.process, peer.process);
  if (!of_holder) return;
  LEASEHOLD_ASSERT(as_leader() == nullptr);  // it would have dropped the promise
  const bool awaited = leader_ == peer.id || promise_lives();
  // The promise of a node that waits to be added is also the sign that a leader has spoken to it.
  const bool newcomer = !log_.ever_names(options_.id, options_.uuid);
  bound_.reset();
  if (!newcomer) {
    emit(HolderEnded{holder_, promise.term});
    // The disk remembers the promise until the next vote or promise replaces it there: a restart
    // before that waits, which is safe, and nothing has to wait for the disk now.
    drop_promise();
  }
  if (leader_ == peer.id) become_follower(RoleChangeReason::leader_ended);
  if (newcomer) return;
  // A vote that is given shows a campaign that is under way, by a token: it goes on as it is.
  // Test: Death.DisturbsNoCampaignThatIsUnderWay.
  const bool campaign = hard_state_.voted_for != kNobody && !hard_state_.vote_committed;
  if (awaited && !campaign) hasten_election();
  LEASEHOLD_ASSERT(!promised_to_another());
  LEASEHOLD_ASSERT(leader_ != peer.id);
}

// The next elections need no timeout: nobody waits for a sign of life.
void Core::Impl::hasten_election() {
  LEASEHOLD_ASSERT(as_leader() == nullptr);
  quick_tries_ = kQuickTries;
  LEASEHOLD_ASSERT(vote_updated_ <= now_.promise);
  wait_before_election();
}

// Those that ask for votes at the same moment each vote for themselves. So the voters have an
// order, by their numbers, without the one that led. Of thousands of groups that had the same
// leader each voter is the first in its share: else one does all the work, and the others ask again
// for what it has not come to.
ElectionOrder Core::Impl::election_order() const {
  const Membership& membership = log_.membership();
  // The leader that has ended; or this node led, and has more of the log than most.
  const NodeId led = hard_state_.vote_committed ? hard_state_.voted_for : kNobody;
  std::vector<NodeId> voters;
  for (const Member& member : membership.members) {
    if (membership.is_voter(member.id) && member.id != led) voters.push_back(member.id);
  }
  if (options_.shared != nullptr && !voters.empty()) {
    const std::size_t share = share_of(options_.group) % voters.size();
    std::rotate(voters.begin(), voters.begin() + static_cast<std::ptrdiff_t>(share), voters.end());
  }
  ElectionOrder order;
  order.voters = static_cast<std::int64_t>(voters.size());
  const auto own = std::find(voters.begin(), voters.end(), options_.id);
  if (own != voters.end()) order.before = own - voters.begin();
  order.refused_before = std::find(voters.begin(), own, refused_) != own;
  return order;
}

// All that know of the death ask one after the other, and again in the same order; one that this
// node has refused, before it knew, has had its turn.
Duration Core::Impl::pause_before_try() const {
  auto [voters, before, refused_before] = election_order();
  if (refused_before && before > 0) --before;
  // See restart_election_timer().
  if (options_.witness || !can_hold()) before += voters;
  const Duration turn = timing().max_round_trip / 2;
  const bool first = quick_tries_ == kQuickTries;
  // Two that have voted for themselves may have done so at the same moment.
  const bool voted = hard_state_.voted_for == options_.id && !hard_state_.vote_committed;
  const Duration pause = turn * ((first ? 0 : voters) + (first || voted ? before : 0));
  return std::min(pause, timing().election_timeout);
}

}  // namespace leasehold::raft
