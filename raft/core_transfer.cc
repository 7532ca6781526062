// Transfers the leadership (dissertation 3.10) in a few round trips, without waiting for a promise
// to end. lease/README.md argues why that is safe.
//
//   leader:  stop taking proposals -> bring the target up to date -> fix the token: nothing is
//            appended from here on, and the loss of the lease is published -> TimeoutNow
//   target:  token test -> a campaign without a pre-vote, with the token in its vote requests
//   voter:   token test -> the vote, although its promise to the leader lives
//
// The token is (term, target, last index). It is void once an entry beyond its last index is
// committed: a voter that has that entry refuses a candidate without it.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>

namespace leasehold::raft {

// ---- The leader ----

std::optional<TransferRefused> Core::Impl::transfer(Now now, NodeId to) {
  begin_input(now);
  std::optional<TransferRefused> refused = begin_transfer(to);
  end_input();
  return refused;
}

std::optional<TransferRefused> Core::Impl::begin_transfer(NodeId to) {
  Leader* leader = as_leader();
  if (leader == nullptr) return TransferRefused{TransferObstacle::not_leader, leader_};
  if (leader->transfer) {
    return TransferRefused{TransferObstacle::transfer_under_way, leader->transfer->target};
  }
  // A leader that is leaving the voters transfers the leadership by itself.
  if (!own_seat()) return TransferRefused{TransferObstacle::transfer_under_way, kNobody};
  if (to == kNobody)
    to = leader->most_advanced(log_.membership().voters,
                               [this](const Progress& peer) { return last_heard(peer); });
  if (to == kNobody) return TransferRefused{TransferObstacle::nobody_to_follow, kNobody};
  if (to == options_.id) return TransferRefused{TransferObstacle::already_leads, to};
  const std::vector<NodeId>& voters = log_.membership().voters;
  if (!std::binary_search(voters.begin(), voters.end(), to)) {
    return TransferRefused{TransferObstacle::not_a_voter, to};
  }
  if (log_.membership().is_witness(to)) return TransferRefused{TransferObstacle::witness, to};
  LEASEHOLD_ASSERT(leader->find(to) != nullptr);
  leader->transfer = Transfer{to, now_.promise + timing().election_timeout, std::nullopt};
  emit(TransferStarted{to});
  return std::nullopt;
}

// The target may have caught up already. The hard state of a leader does not change, so what lets
// the first TimeoutNow leave at once lets the later ones, too.
void Core::Impl::advance_transfer() {
  Leader* leader = as_leader();
  if (!leader->transfer || leader->transfer->token) return;
  Transfer& transfer = *leader->transfer;
  if (leader->progress.at(transfer.target).match_index < log_.last_index()) return;
  // TimeoutNow would wait for the disk, and could leave when the lease is back.
  // Test: Transfer.TheLeaseStaysUntilTheDiskLetsTimeoutNowLeave.
  if (hard_state_ready() > durable_batch_) return;
  if (lease_end() > now_.holder) emit(LeaseLost{lease_end()});
  // Before TimeoutNow is sent: the lease view of this Ready comes before its messages.
  leader->lease.revoke();
  leader->token_index = log_.last_index();
  transfer.token = TransferToken{hard_state_.term, transfer.target, log_.last_index()};
  transfer.ends = now_.promise + timing().election_timeout;
  emit(TokenIssued{transfer.target, transfer.token->last});
  send_token(*transfer.token);
}

void Core::Impl::send_token(const TransferToken& token) {
  LEASEHOLD_ASSERT(token.target != options_.id);
  LEASEHOLD_ASSERT(token.term == hard_state_.term);
  send_after(hard_state_ready(), token.target, TimeoutNow{token});
}

// An election timeout has passed, and this node still leads.
void Core::Impl::end_transfer() {
  Leader* leader = as_leader();
  LEASEHOLD_ASSERT(leader != nullptr);
  LEASEHOLD_ASSERT(leader->transfer.has_value());
  const Transfer ended = *leader->transfer;
  LEASEHOLD_ASSERT(now_.promise >= ended.ends);
  leader->transfer.reset();
  if (!ended.token) {
    emit(TransferEnded{ended.target, TransferOutcome::target_behind});
    return;
  }
  emit(TransferEnded{ended.target, TransferOutcome::not_elected});
  // Once it is committed the token is void, and the leader may hold the lease again.
  append_entry(EntryKind::empty, Bytes());
}

// This node's removal is committed. Nothing was proposed since it was appended, so a voter that has
// answered is likely to have everything.
void Core::Impl::leave_as_removed() {
  const Leader& leader = *as_leader();
  const NodeId next = leader.most_advanced(
      log_.membership().voters, [this](const Progress& peer) { return last_heard(peer); });
  const Index last = log_.last_index();
  const bool complete = next != kNobody && leader.find(next)->match_index == last;
  LEASEHOLD_ASSERT(next != options_.id);
  become_follower(RoleChangeReason::removed);
  if (!complete) return;
  emit(TokenIssued{next, last});
  send_token(TransferToken{hard_state_.term, next, last});
}

// ---- The target ----

void Core::Impl::handle(NodeId from, const TimeoutNow& m) {
  const TransferToken& token = m.token;
  // It serves one campaign, started in its term: a copy that comes later finds a higher one.
  // Of a token of another node than the leader nothing is known: the leader may hold its lease.
  const bool issued = hard_state_.vote_committed && hard_state_.voted_for == from;
  const bool fits = issued && token.target == options_.id && token.term == hard_state_.term &&
                    token.last == log_.last_index();
  const bool free = !promised_to_another() || hard_state_.promise.term == token.term;
  // The leader holds a lease, and this node could not; but a witness has none.
  const bool worse = !can_hold() && !log_.membership().is_witness(from);
  if (!fits || !free || as_leader() != nullptr || worse || options_.witness || !eligible() ||
      stalled()) {
    emit(TokenUnused{from, token.last});
    return;
  }
  start_campaign(token);
}

// ---- The voter ----

// Whether a token lets a candidate pass the promise of this node. The leader that holds the promise
// has issued the token, and held no lease from then on.
bool Core::Impl::passes_promise(const std::optional<TransferToken>& token, NodeId candidate,
                                Term term, LogId last) const {
  return token && token->term == hard_state_.promise.term && token->target == candidate &&
         token->last == last.index && term == token->term.next();
}

std::string text_of(const TransferRefused& refused) {
  const std::string node = "node " + std::to_string(refused.node.value());
  switch (refused.obstacle) {
    case TransferObstacle::not_leader:
      return "this node does not lead; ask " +
             (refused.node == kNobody ? std::string("again when a leader is known") : node);
    case TransferObstacle::transfer_under_way:
      return "the leadership is being transferred already" +
             (refused.node == kNobody ? std::string() : ", to " + node) + "; wait for it";
    case TransferObstacle::already_leads: return node + " leads already";
    case TransferObstacle::not_a_voter:
      return node + " is not a voter of this group; name one, or promote it first";
    case TransferObstacle::witness:
      return node + " is a witness and cannot lead; name a voter that is not a witness";
    case TransferObstacle::nobody_to_follow:
      return "no other voter that could lead has answered; start one, or stop without a transfer";
    case TransferObstacle::too_late:
      return "the time limit had passed before it could begin; allow more time";
  }
  LEASEHOLD_UNREACHABLE();
}

}  // namespace leasehold::raft
