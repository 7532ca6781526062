#include <leasehold/base/assert.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/log_observer.h>
#include <leasehold/server/settings.h>

#include <spdlog/spdlog.h>

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
    case raft::RoleChangeReason::disk_stalled: return "the disk does not answer";
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
  std::uint64_t term;

  void operator()(const raft::RoleChanged& e) const {
    const bool leads = e.to == raft::Role::leader || e.from == raft::Role::leader;
    spdlog::log(leads ? spdlog::level::info : spdlog::level::debug, "term {}: {} -> {}: {}", term,
                role_name(e.from), role_name(e.to), reason_text(e.reason));
  }
  void operator()(const raft::LeaderKnown& e) const {
    spdlog::info("term {}: node {} leads", term, e.leader.value());
  }
  void operator()(const raft::VoteGranted& e) const {
    spdlog::debug("term {}: {} for node {}", term, vote_word(e.pre_vote), e.candidate.value());
  }
  void operator()(const raft::VoteRefused& e) const {
    spdlog::debug("term {}: no {} for node {}: {}", term, vote_word(e.pre_vote),
                  e.candidate.value(), refusal_text(e.reason));
  }
  void operator()(const raft::PromiseGiven& e) const {
    spdlog::debug("term {}: promise to node {}", term, e.holder.value());
  }
  void operator()(const raft::HolderEnded& e) const {
    spdlog::info("term {}: the process of node {} has ended, and the promise to it with it", term,
                 e.holder.id.value());
  }
  void operator()(const raft::LeaseGained&) const {
    spdlog::info("term {}: holds the lease", term);
  }
  void operator()(const raft::LeaseLost&) const {
    spdlog::info("term {}: gave the lease up", term);
  }
  void operator()(const raft::SettingsDiffer& e) const {
    spdlog::warn("term {}: node {} has --lease {}, which is not this node's: make them equal", term,
                 e.peer.value(), format_duration(e.theirs));
  }
  void operator()(const raft::SettingsChanged& e) const {
    const lease::Timing& t = e.settings.timing;
    spdlog::info(
        "term {}: the group's settings (entry {}): lease {}, heartbeat {}, clock drift {} ppm, "
        "margin {}, round trip {}, election timeout {}, lease reads {}",
        term, e.index.value(), format_duration(t.lease), format_duration(t.heartbeat),
        t.max_clock_drift_ppm, format_duration(t.margin), format_duration(t.max_round_trip),
        format_duration(t.election_timeout), e.settings.lease_reads ? "on" : "off");
  }
  void operator()(const raft::LogCut& e) const {
    spdlog::debug("term {}: the log is cut up to entry {}", term, e.to.value());
  }
  void operator()(const raft::SnapshotSending& e) const {
    spdlog::info("term {}: node {} needs entries that are cut off: it is sent a snapshot", term,
                 e.peer.value());
  }
  void operator()(const raft::SnapshotInstalled& e) const {
    spdlog::info("term {}: a snapshot up to entry {} takes the place of the log", term,
                 e.last.index.value());
  }
  void operator()(const raft::TransferStarted& e) const {
    spdlog::info("term {}: transfers the leadership to node {}", term, e.target.value());
  }
  void operator()(const raft::TokenIssued& e) const {
    spdlog::info("term {}: gave the lease up, node {} may campaign", term, e.target.value());
  }
  void operator()(const raft::TokenUnused& e) const {
    spdlog::debug("term {}: cannot use a transfer by node {}", term, e.issuer.value());
  }
  void operator()(const raft::TransferEnded& e) const {
    switch (e.outcome) {
      case raft::TransferOutcome::left_role: return;
      case raft::TransferOutcome::target_behind:
        spdlog::warn("term {}: node {} did not catch up in time: this node leads on", term,
                     e.target.value());
        return;
      case raft::TransferOutcome::not_elected:
        spdlog::warn("term {}: node {} was not elected in time: this node leads on", term,
                     e.target.value());
        return;
    }
    LEASEHOLD_UNREACHABLE();
  }
  void operator()(const raft::MembershipChanged& e) const {
    if (e.outgoing_voters != 0) {
      spdlog::info("term {}: entry {} changes the members: {} voters, {} before, {} learners", term,
                   e.index.value(), e.voters, e.outgoing_voters, e.learners);
    } else {
      spdlog::info("term {}: members of entry {}: {} voters, {} learners", term, e.index.value(),
                   e.voters, e.learners);
    }
  }
  void operator()(const raft::ProtocolViolation& e) const {
    spdlog::error(
        "protocol violation: a message of node {} was ignored: {} ({} messages ignored since the "
        "start). That node is faulty, or somebody speaks in its name: stop it, and look at its log",
        e.peer.value(), text_of(e.what), e.count);
  }
  void operator()(const raft::MembershipCommitted& e) const {
    spdlog::info("term {}: the members of entry {} are committed", term, e.index.value());
  }
};

}  // namespace

void LogObserver::on_change(const replica::Change& change) {
  const auto* leadership = std::get_if<replica::LeadershipChange>(&change);
  if (leadership == nullptr) return;
  leader_known_.store(leadership->leader != raft::kNobody, std::memory_order_relaxed);
}

void LogObserver::on_event(const raft::Event& event) {
  std::visit(Line{event.term.value()}, event.what);
}

void LogObserver::on_notice(const std::string& text) {
  // It may contain text that strangers sent: it is data, not a format.
  spdlog::info("{}", text);
}

}  // namespace leasehold::server
