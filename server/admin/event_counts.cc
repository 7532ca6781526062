#include <leasehold/base/assert.h>
#include <leasehold/server/admin/event_counts.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/replica_number.h>

#include <fmt/format.h>

#include <utility>
#include <variant>

namespace leasehold::server {

const char* word_of(raft::RoleChangeReason reason) {
  switch (reason) {
    case raft::RoleChangeReason::started: return "started";
    case raft::RoleChangeReason::election_timeout: return "election_timeout";
    case raft::RoleChangeReason::leader_ended: return "leader_ended";
    case raft::RoleChangeReason::leader_released: return "leader_released";
    case raft::RoleChangeReason::pre_vote_won: return "pre_vote_won";
    case raft::RoleChangeReason::election_won: return "election_won";
    case raft::RoleChangeReason::higher_term: return "higher_term";
    case raft::RoleChangeReason::leader_appeared: return "leader_appeared";
    case raft::RoleChangeReason::quorum_lost: return "quorum_lost";
    case raft::RoleChangeReason::disk_stalled: return "disk_stalled";
    case raft::RoleChangeReason::process_stalled: return "process_stalled";
    case raft::RoleChangeReason::machine_stalled: return "machine_stalled";
    case raft::RoleChangeReason::election_lost: return "election_lost";
    case raft::RoleChangeReason::transfer: return "transfer";
    case raft::RoleChangeReason::removed: return "removed";
  }
  LEASEHOLD_UNREACHABLE();
}

const char* word_of(raft::VoteRefusal reason) {
  switch (reason) {
    case raft::VoteRefusal::own_lease_valid: return "own_lease_valid";
    case raft::VoteRefusal::promised: return "promised";
    case raft::VoteRefusal::old_term: return "old_term";
    case raft::VoteRefusal::voted_for_other: return "voted_for_other";
    case raft::VoteRefusal::log_behind: return "log_behind";
    case raft::VoteRefusal::no_member: return "no_member";
  }
  LEASEHOLD_UNREACHABLE();
}

const char* word_of(raft::TransferOutcome outcome) {
  switch (outcome) {
    case raft::TransferOutcome::left_role: return "left_role";
    case raft::TransferOutcome::target_behind: return "target_behind";
    case raft::TransferOutcome::not_elected: return "not_elected";
  }
  LEASEHOLD_UNREACHABLE();
}

std::uint64_t EventCounts::number(raft::NodeId member) const {
  return (many_ ? node_of(member) : member).value();
}

void EventCounts::note(const raft::Event& event) {
  const std::uint64_t group = event.group.value();
  if (const auto* role = std::get_if<raft::RoleChanged>(&event.what)) {
    const bool led = role->from == raft::Role::leader;
    const bool leads = role->to == raft::Role::leader;
    // A campaign begins with asking whether it could be won, or at once.
    const bool campaigns =
        role->to == raft::Role::pre_candidate ||
        (role->to == raft::Role::candidate && role->from != raft::Role::pre_candidate);
    if (campaigns) add(campaigns_, role->reason);
    if (led) add(ends_, role->reason);
    if (campaigns || led || leads) {
      keep(group, event.term,
           fmt::format("{} to {}: {}", role_name(role->from), role_name(role->to),
                       word_of(role->reason)));
    }
  } else if (const auto* known = std::get_if<raft::LeaderKnown>(&event.what)) {
    keep(group, event.term, fmt::format("node {} leads", number(known->leader)));
  } else if (const auto* refused = std::get_if<raft::VoteRefused>(&event.what)) {
    add(refusals_, refused->reason);
  } else if (const auto* begun = std::get_if<raft::TransferStarted>(&event.what)) {
    keep(group, event.term, fmt::format("transfer to node {}", number(begun->target)));
  } else if (const auto* ended = std::get_if<raft::TransferEnded>(&event.what)) {
    add(transfers_, ended->outcome);
    keep(group, event.term, fmt::format("transfer ended: {}", word_of(ended->outcome)));
  } else if (const auto* gone = std::get_if<raft::HolderEnded>(&event.what)) {
    keep(group, event.term,
         fmt::format("the process of node {} has ended", number(gone->holder.id)));
  } else if (std::holds_alternative<raft::ProtocolViolation>(event.what)) {
    violations_.fetch_add(1, std::memory_order_relaxed);
  }
}

void EventCounts::note_lease(std::uint64_t group, raft::Term term, bool held) {
  add(leases_, held);
  keep(group, term, held ? "holds the lease" : "the lease is over");
}

void EventCounts::keep(std::uint64_t group, raft::Term term, std::string text) {
  Recent recent{wall_now(), group, term.value(), std::move(text)};
  const std::lock_guard lock(mutex_);
  recent_.push_front(std::move(recent));
  if (recent_.size() > kRecentMax) recent_.pop_back();
}

std::vector<EventCounts::Recent> EventCounts::recent() const {
  const std::lock_guard lock(mutex_);
  return {recent_.begin(), recent_.end()};
}

}  // namespace leasehold::server
