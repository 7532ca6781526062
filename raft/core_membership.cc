// Membership changes: joint consensus, effective on append (Raft paper section 6; dissertation
// chapter 4).
//
// A change, leaving the joint state included, is appended only when the newest membership and an
// entry of the leader's own term are committed. The first keeps a change from following an
// uncommitted one: two memberships next to each other in the log share a voter in every pair of
// quorums, two that are further apart need not. The second keeps a leader from building on a
// membership that an earlier leader never committed and that the entry of another leader may still
// replace.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>

namespace leasehold::raft {

// Whether this node votes and counts in the newest membership.
bool Core::Impl::own_seat() const {
  return log_.membership().is_voter(options_.id, options_.uuid);
}

// This node's directory was made to join a group, and no leader has it as a member yet: a leader
// sends messages only to its members, under their own uuid. Its vote would not be a member's vote.
// Its log may still be empty when it has heard from a leader: the group may need it as a voter
// before it knows of its membership.
// Test: Change.ANewcomerVotesOnlyWhenALeaderHasSpokenToIt.
bool Core::Impl::newcomer() const {
  return hard_state_.promise.holder == kNobody && !log_.ever_names(options_.id, options_.uuid);
}

// An answer of a node that is in none of the memberships that this log still has: nothing was asked
// of it. Or one from another directory than the newest membership names: it has forgotten what the
// named one has promised, voted and stored. Requests are handled whichever directory sends them:
// this node's own membership may be the older one.
bool Core::Impl::from_impostor(const Peer& from, const Message& message) const {
  const bool answer = std::holds_alternative<PreVoteReply>(message) ||
                      std::holds_alternative<VoteReply>(message) ||
                      std::holds_alternative<AppendReply>(message) ||
                      std::holds_alternative<SnapshotReply>(message);
  if (!answer) return false;
  const Member* member = log_.membership().find(from.id);
  if (member == nullptr) return !log_.names(from.id, from.uuid);
  return member->uuid != from.uuid;
}

// ---- A change begins ----

std::variant<LogId, ChangeRefused> Core::Impl::change_membership(
    Now now, const WantedMembers& wanted, std::optional<MembershipId> expected) {
  begin_input(now);
  std::variant<LogId, ChangeRefused> answer = ChangeRefused{ChangeObstacle::not_leader, leader_};
  if (as_leader() != nullptr) {
    // By content: the place of the entry moves to the base when the log is cut, and an entry that
    // was replaced may stand at the same index.
    const bool as_expected = !expected || *expected == id_of(log_.membership());
    answer = as_expected ? begin_change(wanted) : membership_changed(log_.membership());
  }
  end_input();
  return answer;
}

std::variant<LogId, ChangeRefused> Core::Impl::begin_change(const WantedMembers& wanted) {
  const Leader* leader = as_leader();
  LEASEHOLD_ASSERT(leader != nullptr);
  const Membership& newest = log_.membership();
  if (!takes_proposals()) return ChangeRefused{ChangeObstacle::transfer_under_way};
  if (newest.joint() || log_.membership_index() > commit_) {
    return ChangeRefused{ChangeObstacle::change_under_way};
  }
  if (commit_ < leader->first_index) return ChangeRefused{ChangeObstacle::leader_is_new};
  std::variant<Membership, ChangeRefused> plan = plan_change(newest, wanted);
  if (const auto* refused = std::get_if<ChangeRefused>(&plan)) return *refused;
  const Membership& next = *std::get_if<Membership>(&plan);
  for (const NodeId id : promoted(newest, next)) {
    const Progress* peer = leader->find(id);
    if (peer != nullptr && caught_up(*peer)) continue;
    const Index match = peer != nullptr ? peer->match_index : Index();
    return ChangeRefused{ChangeObstacle::learner_behind, id, log_.last_index() - match};
  }
  append_membership(next);
  return log_.last();
}

// The group must not have to wait for a new voter: neither for the entries that it lacks, nor for
// its part in the lease and in elections. Entries that were cut off come as a snapshot, which may
// take hours even if the entries are few.
bool Core::Impl::caught_up(const Progress& progress) const {
  if (progress.match_index < log_.base().index) return false;
  // The last entry that it took may be that of an earlier removal, after which its node has deleted
  // it. The process of that node answers for its other groups.
  if (progress.match_index < log_.membership_index()) return false;
  if (log_.last_index() - progress.match_index > options_.promotion_lag_max) return false;
  // Test: Rest.ALearnerIsPromoted.
  const std::optional<HolderInstant> heard = last_heard(progress);
  return heard && *heard + timing().lease > now_.holder;
}

void Core::Impl::append_membership(const Membership& next) {
  Leader* leader = as_leader();
  LEASEHOLD_ASSERT(leader != nullptr);
  LEASEHOLD_ASSERT(log_.membership_index() <= commit_);
  LEASEHOLD_ASSERT(commit_ >= leader->first_index);
  LEASEHOLD_ASSERT(may_follow(log_.membership(), next));
  // From here on the new half alone elects. It has promised less than the lease, if D became
  // shorter between the round of the lease and the one that brought it the joint entry.
  // Test: Settings.ALeaseOfALongerDEndsWithTheHalfThatGaveIt.
  if (log_.membership().joint()) leader->lease.revoke();
  log_.append(hard_state_.term, &next);
  pending_.persist.entries.push_back({log_.last(), EntryKind::membership, encode_membership(next)});
  note_membership();
  for (const Member& member : next.members) {
    if (member.id == options_.id) continue;
    leader->add_peer(member.id, next.is_witness(member.id), log_.last_index(), now_.promise);
  }
  // A membership is in effect from its append on.
  leader->due.rounds = true;
  LEASEHOLD_ASSERT(log_.membership_index() == log_.last_index());
}

// ---- A change is committed ----

// What follows when the newest membership is committed.
void Core::Impl::settle_membership() {
  Leader* leader = as_leader();
  LEASEHOLD_ASSERT(leader != nullptr);
  const Index index = log_.membership_index();
  LEASEHOLD_ASSERT(leader->settled_membership <= index);
  if (index == leader->settled_membership || index > commit_ || commit_ < leader->first_index) {
    return;
  }
  // A removed node gets one message with the commit of its removal, whatever this node shows, and
  // no more. Test: SentCommit.AMemberThatIsRemovedHearsOfItAtOnce.
  auto& peers = leader->progress;
  for (auto peer = peers.begin(); peer != peers.end();) {
    if (log_.membership().find(peer->first) != nullptr) {
      ++peer;
      continue;
    }
    leader->listens(peer->first, now_.promise);
    send_now(peer->first, empty_append(peer->first, peer->second));
    if (peer->second.bind_asked) leader->bind_asked.push_back(peer->first);
    peer = peers.erase(peer);
  }
  // Nothing is appended during a transfer; the next leader may do it.
  if (log_.membership().joint() && leader->transfer) return;
  // One that leaves hands over to a full voter. Witnesses alone may have committed its removal.
  // Test: Witness.ALeaderThatIsRemovedStaysUntilAFullVoterCanFollow.
  if ((log_.membership().joint() || !own_seat()) && !state_stays()) return;
  leader->settled_membership = index;
  if (log_.membership().joint()) {
    append_membership(without_outgoing(log_.membership()));
  } else if (!own_seat()) {
    leave_as_removed();
  }
}

void Core::Impl::note_membership() {
  const Membership& newest = log_.membership();
  MembershipChanged event;
  event.index = log_.membership_index();
  event.voters = static_cast<std::uint32_t>(newest.voters.size());
  event.outgoing_voters = static_cast<std::uint32_t>(newest.outgoing_voters.size());
  for (const Member& member : newest.members) {
    if (!newest.is_voter(member.id)) ++event.learners;
  }
  emit(event);
  note_settings();
}

}  // namespace leasehold::raft
