#include <leasehold/sim/world/recorder.h>
#include <leasehold/sim/world/trace.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::sim {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

/// What a trace line keeps of a message.
struct Summary {
  std::uint64_t type = 0;
  std::uint64_t term = 0;
  std::uint64_t x = 0;
  std::uint64_t y = 0;
};

constexpr const char* kMessageNames[] = {
    "PreVoteRequest", "PreVoteReply", "VoteRequest",      "VoteReply",
    "AppendRequest",  "AppendReply",  "ReadIndexRequest", "ReadIndexReply",
    "ForwardRequest", "ForwardReply", "FormationConfirm", "SnapshotChunk",
    "SnapshotReply",  "TimeoutNow",   "ProcessBeat",      "ProcessBeatReply"};
/// The meaning of x and y, by type.
constexpr const char* kMessageNumbers[][2] = {{"last term", "last index"},
                                              {"request term", "granted"},
                                              {"last term", "last index"},
                                              {"request term", "granted"},
                                              {"last", "commit"},
                                              {"index", "promised+2*matched"},
                                              {"incarnation", "id"},
                                              {"id", "index"},
                                              {"incarnation", "sequence"},
                                              {"sequence", "reason"},
                                              {"members", "formed"},
                                              {"snapshot's last", "offset"},
                                              {"offset", "promised+2*refused"},
                                              {"target", "last index"},
                                              {"beat", "released"},
                                              {"beat", "epoch"}};

Summary summarize(const raft::Message& message) {
  return std::visit(
      Overloaded{
          [](const raft::PreVoteRequest& m) {
            return Summary{0, m.term.value(), m.last.term.value(), m.last.index.value()};
          },
          [](const raft::PreVoteReply& m) {
            return Summary{1, m.term.value(), m.request_term.value(), m.granted ? 1U : 0U};
          },
          [](const raft::VoteRequest& m) {
            return Summary{2, m.term.value(), m.last.term.value(), m.last.index.value()};
          },
          [](const raft::VoteReply& m) {
            return Summary{3, m.term.value(), m.request_term.value(), m.granted ? 1U : 0U};
          },
          [](const raft::AppendRequest& m) {
            return Summary{4, m.term.value(), m.prev.index.value() + m.entries.size(),
                           m.commit.value()};
          },
          [](const raft::AppendReply& m) {
            const std::uint64_t flags = (m.promised ? 1U : 0U) + (m.matched ? 2U : 0U);
            return Summary{5, m.term.value(), m.index.value(), flags};
          },
          [](const raft::ReadIndexRequest& m) {
            return Summary{6, 0, m.incarnation.value(), m.id};
          },
          [](const raft::ReadIndexReply& m) {
            return Summary{7, 0, m.id, m.index ? m.index->value() : 0};
          },
          [](const raft::SnapshotChunk& m) {
            return Summary{11, m.term.value(), m.id.last.index.value(), m.offset};
          },
          [](const raft::SnapshotReply& m) {
            const std::uint64_t flags = (m.promised ? 1U : 0U) + (m.refused ? 2U : 0U);
            return Summary{12, m.term.value(), m.offset, flags};
          },
          [](const raft::TimeoutNow& m) {
            return Summary{13, m.token.term.value(), m.token.target.value(), m.token.last.value()};
          },
      },
      message);
}

Summary summarize(const wire::PeerMessage& message) {
  return std::visit(Overloaded{
                        [](const raft::Message& m) { return summarize(m); },
                        [](const wire::ForwardRequest& m) {
                          return Summary{8, m.term.value(), m.incarnation.value(), m.sequence};
                        },
                        [](const wire::ForwardReply& m) {
                          return Summary{9, 0, m.sequence, static_cast<std::uint64_t>(m.reason)};
                        },
                        [](const wire::FormationConfirm& m) {
                          return Summary{10, 0, m.members.size(), m.formed ? 1U : 0U};
                        },
                        [](const raft::ProcessBeat& m) {
                          return Summary{14, 0, m.beat.value(), m.released.size()};
                        },
                        [](const raft::ProcessBeatReply& m) {
                          return Summary{15, 0, m.beat.value(), m.epoch.counter};
                        },
                    },
                    message.payload);
}

constexpr const char* kEventNames[] = {
    "role changed",      "leader known",       "vote granted",       "vote refused",
    "promise given",     "lease gained",       "lease lost",         "settings differ",
    "log cut",           "snapshot sending",   "snapshot installed", "members changed",
    "members committed", "transfer started",   "token issued",       "token unused",
    "transfer ended",    "protocol violation", "settings changed",   "holder ended"};
constexpr const char* kRoleNames[] = {"follower", "pre-candidate", "candidate", "leader"};
constexpr const char* kReasonNames[] = {"started",      "election timeout", "pre-vote won",
                                        "election won", "higher term",      "leader appeared",
                                        "quorum lost",  "disk stalled",     "election lost",
                                        "transfer",     "removed",          "leader ended"};

template <std::size_t N>
std::string name_of(const char* const (&names)[N], std::uint64_t which) {
  return which < N ? names[which] : std::to_string(which);
}

std::string format_event(const TraceLine& line) {
  const std::uint64_t* n = line.numbers;
  std::string text = fmt::format("{}, term {}", name_of(kEventNames, n[0]), n[1]);
  if (n[0] == 0) {
    return fmt::format("{}: {} -> {} ({})", text, name_of(kRoleNames, n[2]),
                       name_of(kRoleNames, n[3]), name_of(kReasonNames, n[4]));
  }
  if (n[0] == 5 || n[0] == 6) return text;
  if (n[0] == 8) return fmt::format("{}, up to entry {}", text, n[2]);
  if (n[0] == 10) return fmt::format("{}, up to entry {} of term {}", text, n[2], n[3]);
  if (n[0] == 11) {
    return fmt::format("{}, entry {}: {} voters, {} outgoing", text, n[2], n[3], n[4]);
  }
  if (n[0] == 12) return fmt::format("{}, entry {}", text, n[2]);
  if (n[0] == 18) {
    return fmt::format("{}, entry {}: lease (ns) {}, drift (ppm) {}", text, n[2], n[3], n[4]);
  }
  text += fmt::format(", node {}", n[2]);
  if (n[0] == 2 || n[0] == 3) text += n[3] != 0 ? " (pre-vote)" : " (vote)";
  return text;
}

std::string number_pair(const char* first, std::uint64_t a, const char* second, std::uint64_t b) {
  return fmt::format("{} {}, {} {}", first, a, second, b);
}

}  // namespace

std::string format_instant(TrueInstant at) {
  const std::int64_t ns = at.since_origin().count();
  return fmt::format("{}.{:09} s", ns / 1'000'000'000, ns % 1'000'000'000);
}

void Trace::add(TraceKind kind, std::uint64_t node, std::uint64_t a, std::uint64_t b,
                std::uint64_t c, std::uint64_t d, std::uint64_t e) {
  const TraceLine line{queue_.now(), kind, node, {a, b, c, d, e}};
  mix(static_cast<std::uint64_t>(line.at.since_origin().count()));
  mix(static_cast<std::uint64_t>(kind) * 1024 + node);
  for (std::uint64_t number : line.numbers) mix(number);
  if (recorder_ != nullptr) recorder_->line(line);
  if (tail_max_ == 0) return;
  if (lines_.size() < tail_max_) {
    lines_.push_back(line);
  } else {
    lines_[next_] = line;
  }
  ++count_;
  if (++next_ == tail_max_) next_ = 0;
}

void Trace::add_message(TraceKind kind, raft::NodeId node, raft::NodeId peer,
                        const wire::PeerMessage& message) {
  if (recorder_ != nullptr) recorder_->message(kind, node, peer, message);
  const Summary summary = summarize(message);
  add(kind, node.value(), peer.value(), summary.type, summary.term, summary.x, summary.y);
}

void Trace::add_event(const raft::Event& event) {
  if (recorder_ != nullptr) recorder_->event(event);
  std::uint64_t n[3] = {0, 0, 0};
  std::visit(Overloaded{
                 [&n](const raft::RoleChanged& what) {
                   n[0] = static_cast<std::uint64_t>(what.from);
                   n[1] = static_cast<std::uint64_t>(what.to);
                   n[2] = static_cast<std::uint64_t>(what.reason);
                 },
                 [&n](const raft::LeaderKnown& what) { n[0] = what.leader.value(); },
                 [&n](const raft::VoteGranted& what) {
                   n[0] = what.candidate.value();
                   n[1] = what.pre_vote ? 1 : 0;
                 },
                 [&n](const raft::VoteRefused& what) {
                   n[0] = what.candidate.value();
                   n[1] = what.pre_vote ? 1 : 0;
                   n[2] = static_cast<std::uint64_t>(what.reason);
                 },
                 [&n](const raft::PromiseGiven& what) { n[0] = what.holder.value(); },
                 [&n](const raft::HolderEnded& what) { n[0] = what.holder.id.value(); },
                 [](const raft::LeaseGained&) {},
                 [](const raft::LeaseLost&) {},
                 [&n](const raft::SettingsDiffer& what) { n[0] = what.peer.value(); },
                 [&n](const raft::SettingsChanged& what) {
                   const lease::Timing& timing = what.settings.timing;
                   n[0] = what.index.value();
                   n[1] = static_cast<std::uint64_t>(timing.lease.count());
                   n[2] = static_cast<std::uint64_t>(timing.max_clock_drift_ppm);
                 },
                 [&n](const raft::LogCut& what) { n[0] = what.to.value(); },
                 [&n](const raft::SnapshotSending& what) { n[0] = what.peer.value(); },
                 [&n](const raft::SnapshotInstalled& what) {
                   n[0] = what.last.index.value();
                   n[1] = what.last.term.value();
                 },
                 [&n](const raft::MembershipChanged& what) {
                   n[0] = what.index.value();
                   n[1] = what.voters;
                   n[2] = what.outgoing_voters;
                 },
                 [&n](const raft::MembershipCommitted& what) { n[0] = what.index.value(); },
                 [&n](const raft::TransferStarted& what) { n[0] = what.target.value(); },
                 [&n](const raft::TokenIssued& what) {
                   n[0] = what.target.value();
                   n[1] = what.last.value();
                 },
                 [&n](const raft::TokenUnused& what) {
                   n[0] = what.issuer.value();
                   n[1] = what.last.value();
                 },
                 [&n](const raft::ProtocolViolation& what) {
                   n[0] = what.peer.value();
                   n[1] = static_cast<std::uint64_t>(what.what);
                 },
                 [&n](const raft::TransferEnded& what) {
                   n[0] = what.target.value();
                   n[1] = static_cast<std::uint64_t>(what.outcome);
                 },
             },
             event.what);
  add(TraceKind::raft_event, event.node.value(), event.what.index(), event.term.value(), n[0], n[1],
      n[2]);
}

std::vector<std::string> Trace::tail() const {
  std::vector<std::string> text;
  const std::uint64_t kept = std::min<std::uint64_t>(count_, tail_max_);
  for (std::uint64_t i = count_ - kept; i < count_; ++i) {
    text.push_back(format(lines_[static_cast<std::size_t>(i % tail_max_)]));
  }
  return text;
}

std::string Trace::format(const TraceLine& line) {
  const std::uint64_t* n = line.numbers;
  std::string text = fmt::format("{}  node {}  ", format_instant(line.at), line.node);
  const auto message = [n] {
    std::string what = fmt::format("{} term {}", name_of(kMessageNames, n[1]), n[2]);
    if (n[1] >= std::size(kMessageNumbers)) return what;
    return fmt::format("{}, {}", what,
                       number_pair(kMessageNumbers[n[1]][0], n[3], kMessageNumbers[n[1]][1], n[4]));
  };
  switch (line.kind) {
    case TraceKind::sent: return fmt::format("{}-> {}  {}", text, n[0], message());
    case TraceKind::lost: return fmt::format("{}-> {}  lost: {}", text, n[0], message());
    case TraceKind::delivered: return fmt::format("{}<- {}  {}", text, n[0], message());
    case TraceKind::replayed: return fmt::format("{}<- {}  replay: {}", text, n[0], message());
    case TraceKind::raft_event: return text + format_event(line);
    case TraceKind::published:
      return fmt::format("{}publishes a lease of term {}, {}", text, n[0],
                         number_pair("commit", n[1], "left (ns, own clock)", n[2]));
    case TraceKind::synced:
      return fmt::format("{}disk: {}", text, number_pair("batches durable", n[0], "newest", n[1]));
    case TraceKind::applied: return fmt::format("{}applied up to {}", text, n[0]);
    case TraceKind::started:
      return fmt::format("{}starts: {}", text,
                         number_pair("incarnation", n[0], "durable applied index", n[1]));
    case TraceKind::crashed:
      return fmt::format("{}crashes: {}", text,
                         number_pair("waiting batches", n[0], "of which survive", n[1]));
    case TraceKind::failed: return text + "stops: its storage failed";
    case TraceKind::paused:
      return fmt::format("{}{}{} ns", text,
                         n[1] != 0 ? "ordering thread paused for " : "process paused for ", n[0]);
    case TraceKind::suspended: return fmt::format("{}suspended for {} ns", text, n[0]);
    case TraceKind::resumed: return text + "continues";
    case TraceKind::blocked: return fmt::format("{}link to {} is cut", text, n[0]);
    case TraceKind::unblocked: return fmt::format("{}link to {} is whole", text, n[0]);
    case TraceKind::rates_changed:
      return fmt::format("{}clock rates (ppm): {}", text,
                         number_pair("holder", n[0], "promise", n[1]));
    case TraceKind::healed: return text + "all faults end";
    case TraceKind::invoked:
      return fmt::format("{}client {}{}{}", text, n[0], n[1] != 0 ? " writes " : " reads ",
                         number_pair("key", n[2], "value", n[3]));
    case TraceKind::returned:
      return fmt::format("{}client {} {}: {}", text, n[0],
                         n[1] == 0 ? "is answered" : (n[1] == 1 ? "is refused" : "does not know"),
                         number_pair("key", n[2], "value", n[3]));
    case TraceKind::space:
      return text + (n[0] == 0 ? fmt::format("its disk is full; in reserve (bytes): {}", n[1])
                               : "its disk has space again");
    case TraceKind::machine_durable:
      return fmt::format("{}its state machine is durable up to {}", text, n[0]);
    case TraceKind::snapshot_taken:
      return fmt::format("{}takes a snapshot: {}", text, number_pair("last", n[0], "bytes", n[2]));
    case TraceKind::chunk_stored:
      return fmt::format("{}of the snapshot from node {}: {}{}{}", text, n[0],
                         number_pair("offset given", n[1], "holds up to", n[2]),
                         n[3] != 0 ? ", refused" : "", n[4] != 0 ? ", complete" : "");
    case TraceKind::installed:
      return fmt::format("{}its state machine is given the snapshot up to {}{}", text, n[0],
                         n[1] != 0 ? " as it starts" : "");
  }
  return text;
}

}  // namespace leasehold::sim
