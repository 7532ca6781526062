#include <leasehold/base/assert.h>
#include <leasehold/story/record.h>

#include <fmt/format.h>

#include <array>
#include <variant>

namespace leasehold::story {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

const char* reason_name(raft::RoleChangeReason reason) {
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
  return "other";
}

const char* refusal_name(raft::VoteRefusal refusal) {
  switch (refusal) {
    case raft::VoteRefusal::own_lease_valid: return "own_lease_valid";
    case raft::VoteRefusal::promised: return "promised";
    case raft::VoteRefusal::old_term: return "old_term";
    case raft::VoteRefusal::voted_for_other: return "voted_for_other";
    case raft::VoteRefusal::log_behind: return "log_behind";
    case raft::VoteRefusal::no_member: return "no_member";
  }
  return "other";
}

const char* outcome_name(raft::TransferOutcome outcome) {
  switch (outcome) {
    case raft::TransferOutcome::left_role: return "left_role";
    case raft::TransferOutcome::target_behind: return "target_behind";
    case raft::TransferOutcome::not_elected: return "not_elected";
  }
  return "other";
}

std::string text_of(raft::LogId id) {
  if (id.index.value() == 0) return "an empty log";
  return fmt::format("entry {} of term {}", id.index.value(), id.term.value());
}

std::string text_of(const raft::AppendRequest& m) {
  std::string text = fmt::format("term {}, round {}", m.term.value(), m.round.value());
  if (m.entries.empty()) {
    text += ", heartbeat";
  } else {
    const std::uint64_t first = m.prev.index.value() + 1;
    const std::uint64_t last = m.prev.index.value() + m.entries.size();
    text += m.entries.size() == 1 ? fmt::format(", entry {}", first)
                                  : fmt::format(", entries {}..{}", first, last);
  }
  text = fmt::format("{} after {}, commit {}", text, text_of(m.prev), m.commit.value());
  if (!m.bind) return text;
  return fmt::format("{}, binds from beat {} on at epoch {}", text, m.bind->beat.value(),
                     epoch_text(m.bind->epoch));
}

std::string text_of(const raft::AppendReply& m) {
  const std::string text = fmt::format("term {}, round {}, {}", m.term.value(), m.round.value(),
                                       m.promised ? "promised" : "no promise");
  const std::string bound = m.bound ? ", bound at epoch " + epoch_text(*m.bound) : "";
  if (m.matched) return fmt::format("{}, holds up to {}{}", text, m.index.value(), bound);
  return fmt::format("{}, entry {} does not match, try {}{}", text, m.rejected_prev.value(),
                     m.index.value(), bound);
}

std::string text_of(const raft::SnapshotChunk& m) {
  return fmt::format("term {}, round {}, bytes {}..{} of {}, the state after {}", m.term.value(),
                     m.round.value(), m.offset, m.offset + m.data.size(), m.size,
                     text_of(m.id.last));
}

std::string text_of(const raft::SnapshotReply& m) {
  return fmt::format("term {}, round {}{}{}", m.term.value(), m.round.value(),
                     m.promised ? ", promised" : ", no promise",
                     m.refused ? ", refused" : fmt::format(", holds up to byte {}", m.offset));
}

std::string text_of(const raft::MembershipChanged& e) {
  std::string text = fmt::format("{}{}", e.voters, e.voters == 1 ? " voter" : " voters");
  if (e.outgoing_voters != 0) text += fmt::format(", and {} that are left", e.outgoing_voters);
  if (e.learners != 0) text += fmt::format(", {} who learn", e.learners);
  return text;
}

std::string ask(Term term, raft::LogId last) {
  return fmt::format("term {}, last is {}", term.value(), text_of(last));
}

std::string answer(Term request, Term term, bool granted) {
  return fmt::format("{} for term {}, own term {}", granted ? "granted" : "refused",
                     request.value(), term.value());
}

}  // namespace

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::run: return "run";
    case Kind::start: return "start";
    case Kind::crash: return "crash";
    case Kind::notice: return "notice";
    case Kind::fail: return "fail";
    case Kind::pause: return "pause";
    case Kind::suspend: return "suspend";
    case Kind::resume: return "resume";
    case Kind::clock: return "clock";
    case Kind::cut: return "cut";
    case Kind::join: return "join";
    case Kind::heal: return "heal";
    case Kind::disk: return "disk";
    case Kind::role: return "role";
    case Kind::leader: return "leader";
    case Kind::vote: return "vote";
    case Kind::refusal: return "refusal";
    case Kind::promise: return "promise";
    case Kind::unpromised: return "unpromised";
    case Kind::lease: return "lease";
    case Kind::lease_lost: return "lease_lost";
    case Kind::settings: return "settings";
    case Kind::log_cut: return "log_cut";
    case Kind::snapshot: return "snapshot";
    case Kind::members: return "members";
    case Kind::transfer: return "transfer";
    case Kind::round: return "round";
    case Kind::sent: return "sent";
    case Kind::delivered: return "delivered";
    case Kind::lost: return "lost";
    case Kind::commit: return "commit";
    case Kind::asked: return "asked";
    case Kind::read: return "read";
    case Kind::write: return "write";
    case Kind::mark: return "mark";
  }
  LEASEHOLD_UNREACHABLE();
}

const char* role_name(raft::Role role) {
  constexpr std::array<const char*, 4> kNames = {"follower", "pre_candidate", "candidate",
                                                 "leader"};
  return kNames[static_cast<std::size_t>(role)];
}

namespace {

/// "lease 1000ms, drift 100000ppm, margin 10ms, ...".
std::string text_of(const raft::GroupSettings& settings) {
  const lease::Timing& timing = settings.timing;
  return fmt::format("lease {}, drift {}ppm, margin {}, heartbeat {}, election {}, rtt {}{}",
                     format_time(timing.lease), timing.max_clock_drift_ppm,
                     format_time(timing.margin), format_time(timing.heartbeat),
                     format_time(timing.election_timeout), format_time(timing.max_round_trip),
                     settings.lease_reads ? "" : ", no reads by lease");
}

/// Fills a record with what an event of the core says. False: the event gives no record.
struct FromEvent {
  Record& record;

  bool operator()(const raft::RoleChanged& e) const {
    record.kind = Kind::role;
    record.what = role_name(e.to);
    record.why = reason_name(e.reason);
    return e.reason != raft::RoleChangeReason::started;
  }
  bool operator()(const raft::LeaderKnown& e) const {
    record.kind = Kind::leader;
    record.peer = e.leader;
    return e.leader != record.node;
  }
  bool operator()(const raft::VoteGranted& e) const {
    record.kind = Kind::vote;
    record.peer = e.candidate;
    record.what = e.pre_vote ? "pre_vote" : "vote";
    return true;
  }
  bool operator()(const raft::VoteRefused& e) const {
    record.kind = Kind::refusal;
    record.peer = e.candidate;
    record.what = e.pre_vote ? "pre_vote" : "vote";
    record.why = refusal_name(e.reason);
    return true;
  }
  bool operator()(const raft::PromiseGiven&) const { return false; }
  bool operator()(const raft::HolderEnded&) const { return false; }
  bool operator()(const raft::LeaseGained&) const { return false; }
  bool operator()(const raft::LeaseLost&) const {
    record.kind = Kind::lease_lost;
    return true;
  }
  bool operator()(const raft::SettingsDiffer& e) const {
    record.kind = Kind::settings;
    record.peer = e.peer;
    record.what = "differ";
    record.text = format_time(e.theirs);
    return true;
  }
  bool operator()(const raft::SettingsChanged& e) const {
    record.kind = Kind::settings;
    record.index = e.index;
    record.what = "changed";
    record.text = text_of(e.settings);
    return true;
  }
  bool operator()(const raft::LogCut& e) const {
    record.kind = Kind::log_cut;
    record.index = e.to;
    return true;
  }
  bool operator()(const raft::SnapshotSending& e) const {
    record.kind = Kind::snapshot;
    record.peer = e.peer;
    record.what = "sending";
    return true;
  }
  bool operator()(const raft::SnapshotInstalled& e) const {
    record.kind = Kind::snapshot;
    record.index = e.last.index;
    record.what = "installed";
    return true;
  }
  bool operator()(const raft::ProtocolViolation&) const { return false; }
  bool operator()(const raft::TransferStarted& e) const {
    record.kind = Kind::transfer;
    record.peer = e.target;
    record.what = "started";
    return true;
  }
  bool operator()(const raft::TokenIssued& e) const {
    record.kind = Kind::transfer;
    record.peer = e.target;
    record.index = e.last;
    record.what = "token";
    return true;
  }
  bool operator()(const raft::TokenUnused& e) const {
    record.kind = Kind::transfer;
    record.peer = e.issuer;
    record.index = e.last;
    record.what = "unused";
    return true;
  }
  bool operator()(const raft::TransferEnded& e) const {
    record.kind = Kind::transfer;
    record.peer = e.target;
    record.what = "ended";
    record.why = outcome_name(e.outcome);
    return true;
  }
  bool operator()(const raft::MembershipChanged& e) const {
    record.kind = Kind::members;
    record.index = e.index;
    record.what = "changed";
    record.text = text_of(e);
    return true;
  }
  bool operator()(const raft::MembershipCommitted& e) const {
    record.kind = Kind::members;
    record.index = e.index;
    record.what = "committed";
    return true;
  }
};

}  // namespace

std::optional<Record> record_of(Duration at, const raft::Event& event) {
  Record record;
  record.at = at;
  record.node = event.node;
  record.term = event.term;
  if (!std::visit(FromEvent{record}, event.what)) return std::nullopt;
  return record;
}

std::string message_name(const raft::Message& message) {
  return std::visit(Overloaded{
                        [](const raft::PreVoteRequest&) { return "pre_vote"; },
                        [](const raft::PreVoteReply&) { return "pre_vote_reply"; },
                        [](const raft::VoteRequest&) { return "vote"; },
                        [](const raft::VoteReply&) { return "vote_reply"; },
                        [](const raft::AppendRequest&) { return "append"; },
                        [](const raft::AppendReply&) { return "append_reply"; },
                        [](const raft::ReadIndexRequest&) { return "read_index"; },
                        [](const raft::ReadIndexReply&) { return "read_index_reply"; },
                        [](const raft::SnapshotChunk&) { return "snapshot"; },
                        [](const raft::SnapshotReply&) { return "snapshot_reply"; },
                        [](const raft::TimeoutNow&) { return "timeout_now"; },
                    },
                    message);
}

std::string message_text(const raft::Message& message) {
  return std::visit(
      Overloaded{
          [](const raft::PreVoteRequest& m) { return ask(m.term, m.last); },
          [](const raft::PreVoteReply& m) { return answer(m.request_term, m.term, m.granted); },
          [](const raft::VoteRequest& m) {
            return ask(m.term, m.last) + (m.token ? ", with a token" : "");
          },
          [](const raft::VoteReply& m) { return answer(m.request_term, m.term, m.granted); },
          [](const raft::AppendRequest& m) { return text_of(m); },
          [](const raft::AppendReply& m) { return text_of(m); },
          [](const raft::ReadIndexRequest& m) {
            return fmt::format("request {}{}", m.id, m.quorum ? ", by a quorum" : "");
          },
          [](const raft::ReadIndexReply& m) {
            return fmt::format("request {}{}", m.id,
                               m.index ? fmt::format(", index {}", m.index->value()) : ", refused");
          },
          [](const raft::SnapshotChunk& m) { return text_of(m); },
          [](const raft::SnapshotReply& m) { return text_of(m); },
          [](const raft::TimeoutNow& m) {
            return fmt::format("term {}, node {} may campaign with entry {}", m.token.term.value(),
                               m.token.target.value(), m.token.last.value());
          },
      },
      message);
}

std::string message_name(const raft::ProcessBeat& /*beat*/) {
  return "beat";
}

std::string message_name(const raft::ProcessBeatReply& /*reply*/) {
  return "beat_reply";
}

std::string message_text(const raft::ProcessBeat& beat) {
  std::string text = fmt::format("beat {}", beat.beat.value());
  for (const raft::ReleasedGroup& released : beat.released) {
    text += fmt::format(", leads group {} no more in term {}", released.group.value(),
                        released.term.value());
  }
  return text;
}

std::string message_text(const raft::ProcessBeatReply& reply) {
  return fmt::format("beat {}, epoch {}", reply.beat.value(), epoch_text(reply.epoch));
}

std::string epoch_text(const lease::Epoch& epoch) {
  return fmt::format("{}.{}", epoch.incarnation.value(), epoch.counter);
}

namespace {

template <class Beat>
Record between_processes(Duration at, Kind kind, NodeId node, NodeId peer, const Beat& message) {
  Record record;
  record.at = at;
  record.kind = kind;
  record.node = node;
  record.peer = peer;
  record.round = Round(message.beat.value());
  record.what = message_name(message);
  record.text = message_text(message);
  return record;
}

}  // namespace

Record record_of(Duration at, Kind kind, NodeId node, NodeId peer, const raft::Message& message) {
  Record record;
  record.at = at;
  record.kind = kind;
  record.node = node;
  record.peer = peer;
  record.what = message_name(message);
  record.text = message_text(message);
  const auto verdict = [](bool yes) { return yes ? "granted" : "refused"; };
  std::visit(Overloaded{
                 [&record](const raft::PreVoteRequest& m) { record.term = m.term; },
                 [&](const raft::PreVoteReply& m) {
                   record.term = m.term;
                   record.why = verdict(m.granted);
                 },
                 [&record](const raft::VoteRequest& m) { record.term = m.term; },
                 [&](const raft::VoteReply& m) {
                   record.term = m.term;
                   record.why = verdict(m.granted);
                 },
                 [&record](const raft::AppendRequest& m) {
                   record.term = m.term;
                   record.round = m.round;
                   record.index = m.prev.index + m.entries.size();
                   record.why = m.entries.empty() ? "heartbeat" : "entries";
                 },
                 [&record](const raft::AppendReply& m) {
                   record.term = m.term;
                   record.round = m.round;
                   record.index = m.index;
                   record.why = m.promised ? (m.matched ? "matched" : "unmatched") : "unpromised";
                 },
                 [&record](const raft::TimeoutNow& m) {
                   record.term = m.token.term;
                   record.index = m.token.last;
                 },
                 [](const raft::ReadIndexRequest&) {},
                 [](const raft::ReadIndexReply&) {},
                 [&record](const raft::SnapshotChunk& m) {
                   record.term = m.term;
                   record.round = m.round;
                   record.index = m.id.last.index;
                   record.why = "entries";
                 },
                 [&record](const raft::SnapshotReply& m) {
                   record.term = m.term;
                   record.round = m.round;
                   record.index = m.id.last.index;
                   record.why = m.promised ? (m.refused ? "unmatched" : "matched") : "unpromised";
                 },
             },
             message);
  return record;
}

Record record_of(Duration at, Kind kind, NodeId node, NodeId peer, const raft::ProcessBeat& beat) {
  return between_processes(at, kind, node, peer, beat);
}

Record record_of(Duration at, Kind kind, NodeId node, NodeId peer,
                 const raft::ProcessBeatReply& reply) {
  return between_processes(at, kind, node, peer, reply);
}

std::string node_name(NodeId node, GroupId group) {
  return "node " + short_name(node, group);
}

std::string short_name(NodeId node, GroupId group) {
  constexpr std::uint64_t kLetters = 26;
  if (group.value() < 2) return std::to_string(node.value());
  if (group.value() > kLetters) return fmt::format("{} of group {}", node.value(), group.value());
  return fmt::format("{}{}", node.value(), static_cast<char>('a' + group.value() - 1));
}

std::string format_time(Duration time) {
  const std::int64_t ns = time.count();
  const std::int64_t microseconds = (ns < 0 ? -ns : ns) / 1000;
  std::string text = fmt::format("{}{}", ns < 0 ? "-" : "", microseconds / 1000);
  if (microseconds % 1000 != 0) {
    std::string fraction = fmt::format(".{:03}", microseconds % 1000);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    text += fraction;
  }
  return text + "ms";
}

}  // namespace leasehold::story
