#include <leasehold/base/assert.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/log_observer.h>
#include <leasehold/server/settings.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <string>
#include <utility>
#include <variant>

namespace leasehold::server {
namespace {

const char* reason_text(raft::RoleChangeReason reason) {
  switch (reason) {
    case raft::RoleChangeReason::started: return "started";
    case raft::RoleChangeReason::election_timeout:
      return "there was no leader for an election timeout";
    case raft::RoleChangeReason::leader_ended: return "the leader's process has ended";
    case raft::RoleChangeReason::leader_released: return "the leader has left its role";
    case raft::RoleChangeReason::pre_vote_won: return "a quorum would vote for this node";
    case raft::RoleChangeReason::election_won: return "a quorum voted for this node";
    case raft::RoleChangeReason::higher_term: return "a higher term was learned";
    case raft::RoleChangeReason::leader_appeared: return "another node leads";
    case raft::RoleChangeReason::quorum_lost: return "no quorum answered for a whole lease";
    case raft::RoleChangeReason::disk_stalled:
    case raft::RoleChangeReason::process_stalled: return "the disk does not answer";
    case raft::RoleChangeReason::machine_stalled: return "the store makes no progress";
    case raft::RoleChangeReason::election_lost: return "a quorum did not vote for this node";
    case raft::RoleChangeReason::transfer:
      return "the leader transfers the leadership to this node";
    case raft::RoleChangeReason::removed: return "this node is no voter any more";
  }
  LEASEHOLD_UNREACHABLE();
}

const char* refusal_text(raft::VoteRefusal reason) {
  switch (reason) {
    case raft::VoteRefusal::own_lease_valid: return "this node holds the lease";
    case raft::VoteRefusal::promised: return "a promise to another lives";
    case raft::VoteRefusal::old_term: return "its term is old";
    case raft::VoteRefusal::voted_for_other: return "this node voted for another";
    case raft::VoteRefusal::log_behind: return "its log is behind";
    case raft::VoteRefusal::no_member: return "this node is not a member yet";
  }
  LEASEHOLD_UNREACHABLE();
}

const char* vote_word(bool pre_vote) {
  return pre_vote ? "pre-vote" : "vote";
}

/// One line for each kind of event.
struct Line {
  std::string at;  ///< "term 3", or "group 2, term 3"
  bool of_many = false;

  /// "3"; of a later replica "3 (replica 10003)".
  std::string number(raft::NodeId member) const {
    const raft::NodeId node = of_many ? node_of(member) : member;
    if (node == member) return std::to_string(member.value());
    return fmt::format("{} (replica {})", node.value(), member.value());
  }

  void operator()(const raft::RoleChanged& e) const {
    const bool leads = e.to == raft::Role::leader || e.from == raft::Role::leader;
    spdlog::log(leads ? spdlog::level::info : spdlog::level::debug, "{}: {} -> {}: {}", at,
                role_name(e.from), role_name(e.to), reason_text(e.reason));
  }
  void operator()(const raft::LeaderKnown& e) const {
    spdlog::info("{}: node {} leads", at, number(e.leader));
  }
  void operator()(const raft::VoteGranted& e) const {
    spdlog::debug("{}: {} for node {}", at, vote_word(e.pre_vote), number(e.candidate));
  }
  void operator()(const raft::VoteRefused& e) const {
    spdlog::debug("{}: no {} for node {}: {}", at, vote_word(e.pre_vote), number(e.candidate),
                  refusal_text(e.reason));
  }
  void operator()(const raft::PromiseGiven& e) const {
    spdlog::debug("{}: promise to node {}", at, number(e.holder));
  }
  void operator()(const raft::HolderEnded& e) const {
    spdlog::info("{}: the process of node {} has ended, and the promise to it with it", at,
                 number(e.holder.id));
  }
  void operator()(const raft::LeaseGained&) const { spdlog::info("{}: holds the lease", at); }
  void operator()(const raft::LeaseLost&) const { spdlog::info("{}: gave the lease up", at); }
  void operator()(const raft::SettingsDiffer& e) const {
    spdlog::warn("{}: node {} has --lease {}, which is not this node's: make them equal", at,
                 number(e.peer), format_duration(e.theirs));
  }
  void operator()(const raft::SettingsChanged& e) const {
    const lease::Timing& t = e.settings.timing;
    spdlog::info(
        "{}: the group's settings (entry {}): lease {}, heartbeat {}, clock drift {} ppm, "
        "margin {}, round trip {}, election timeout {}, lease reads {}",
        at, e.index.value(), format_duration(t.lease), format_duration(t.heartbeat),
        t.max_clock_drift_ppm, format_duration(t.margin), format_duration(t.max_round_trip),
        format_duration(t.election_timeout), e.settings.lease_reads ? "on" : "off");
  }
  void operator()(const raft::LogCut& e) const {
    spdlog::debug("{}: the log is cut up to entry {}", at, e.to.value());
  }
  void operator()(const raft::SnapshotSending& e) const {
    spdlog::info("{}: node {} needs entries that are cut off: it is sent a snapshot", at,
                 number(e.peer));
  }
  void operator()(const raft::SnapshotInstalled& e) const {
    spdlog::info("{}: a snapshot up to entry {} takes the place of the log", at,
                 e.last.index.value());
  }
  void operator()(const raft::TransferStarted& e) const {
    spdlog::info("{}: transfers the leadership to node {}", at, number(e.target));
  }
  void operator()(const raft::TokenIssued& e) const {
    spdlog::info("{}: gave the lease up, node {} may campaign", at, number(e.target));
  }
  void operator()(const raft::TokenUnused& e) const {
    spdlog::debug("{}: cannot use a transfer by node {}", at, number(e.issuer));
  }
  void operator()(const raft::TransferEnded& e) const {
    switch (e.outcome) {
      case raft::TransferOutcome::left_role: return;
      case raft::TransferOutcome::target_behind:
        spdlog::warn("{}: node {} did not catch up in time: this node leads on", at,
                     number(e.target));
        return;
      case raft::TransferOutcome::not_elected:
        spdlog::warn("{}: node {} was not elected in time: this node leads on", at,
                     number(e.target));
        return;
    }
    LEASEHOLD_UNREACHABLE();
  }
  void operator()(const raft::MembershipChanged& e) const {
    if (e.outgoing_voters != 0) {
      spdlog::info("{}: entry {} changes the members: {} voters, {} before, {} learners", at,
                   e.index.value(), e.voters, e.outgoing_voters, e.learners);
    } else {
      spdlog::info("{}: members of entry {}: {} voters, {} learners", at, e.index.value(), e.voters,
                   e.learners);
    }
  }
  void operator()(const raft::ProtocolViolation& e) const {
    spdlog::error(
        "protocol violation: a message of node {} was ignored: {} ({} messages ignored since the "
        "start). That node is faulty, or somebody speaks in its name: stop it, and look at its log",
        number(e.peer), text_of(e.what), e.count);
  }
  void operator()(const raft::MembershipCommitted& e) const {
    spdlog::info("{}: the members of entry {} are committed", at, e.index.value());
  }
};

}  // namespace

void LogObserver::on_change(const replica::Change& change) {
  if (const auto* members = std::get_if<replica::MembershipChange>(&change)) {
    if (named_) named_(members->membership);
  }
  if (const auto* lease = std::get_if<replica::LeaseChange>(&change)) {
    // The first change of all says that there is none.
    const bool changed = std::exchange(lease_held_, lease->held) != lease->held;
    if (changed && counts_ != nullptr) counts_->note_lease(group_, lease->term, lease->held);
  }
  const auto* leadership = std::get_if<replica::LeadershipChange>(&change);
  if (leadership == nullptr) return;
  leader_known_.store(leadership->leader != raft::kNobody, std::memory_order_relaxed);
}

void LogObserver::on_event(const raft::Event& event) {
  if (counts_ != nullptr) counts_->note(event);
  std::visit(Line{fmt::format("{}term {}", prefix_, event.term.value()), !prefix_.empty()},
             event.what);
}

void LogObserver::on_notice(const std::string& text) {
  // It may contain text that strangers sent: it is data, not a format.
  spdlog::info("{}{}", prefix_, text);
}

}  // namespace leasehold::server
