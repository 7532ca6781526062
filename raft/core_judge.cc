// What a message claims, judged before it is handled: even a peer that has proved who it is may be
// faulty, or malicious. A message that no correct member can have sent moves nothing. The
// assertions of the handlers are about bugs of this node; no message reaches one of them.
//
// Who may speak. A request is handled whichever node sends it: a leader or a candidate may have
// become a member by entries that this node lacks, and the group may need this node's vote or its
// log to go on. The transport decides who may send at all: members, and nodes whose log is newer.
// An answer is different. This node asks only members of its own log, so an answer of another node,
// or of another directory, moves nothing, not even the term.
//
// The numbers. A term costs a campaign, which begins with a durable write. 2^20 campaigns in each
// second, of all members together, are more than any group can make. A node that was away may find
// a jump of 2^40: at 1,000 elections in each second that is 35 years. So the terms that a node can
// be made to adopt grow with time, not with the number of messages: a peer that names the largest
// term that is allowed, again and again, would need 2^41 seconds to reach kTermMax, or 2^21
// restarts of this node. Indices come one by one, except by a snapshot: it may jump by 2^50, which
// are 35 years at 1,000,000 entries in each second. Above kTermMax and kIndexMax a node starts no
// campaign and takes no proposal, so that "the next one" stays within what the wire can carry.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>

namespace leasehold::raft {
namespace {

constexpr std::uint64_t kTermJump = std::uint64_t{1} << 40U;
constexpr std::uint64_t kTermsPerSecond = std::uint64_t{1} << 20U;
constexpr std::uint64_t kIndexJump = std::uint64_t{1} << 50U;

/// How often violations are reported at most.
constexpr Duration kReportPause = std::chrono::seconds(1);

}  // namespace

// ---- The parts of a message ----

bool Core::Impl::reachable_term(Term term) const {
  if (term <= hard_state_.term) return true;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now_.promise - started_at_);
  const std::uint64_t grown = static_cast<std::uint64_t>(seconds.count()) * kTermsPerSecond;
  return term <= std::min(kTermMax, started_term_ + (kTermJump + grown));
}

// Whether this node knows another leader of its own term.
bool Core::Impl::another_led(NodeId from) const {
  if (as_leader() != nullptr) return true;
  if (leader_ != kNobody && leader_ != from) return true;
  if (hard_state_.vote_committed && hard_state_.voted_for != from) return true;
  const StoredPromise& promise = hard_state_.promise;
  return promise.holder != kNobody && promise.term == hard_state_.term && promise.holder != from;
}

std::optional<Violation> Core::Impl::judge_leader(NodeId from, Term term, Duration lease) const {
  if (!reachable_term(term)) return Violation::term_too_high;
  if (lease.count() <= 0 || lease > kLeaseLongest) return Violation::lease_too_long;
  if (term == hard_state_.term && another_led(from)) return Violation::second_leader;
  return std::nullopt;
}

// Whether the log of every leader has `id`, as far as this node can tell: what is committed here
// stands in all of them.
bool Core::Impl::contradicts_committed(LogId id) const {
  return id.index >= log_.base().index && id.index <= commit_ && !log_.matches(id);
}

std::optional<Violation> Core::Impl::judge_memberships(const AppendRequest& m) const {
  const Index base = log_.base().index;
  std::optional<Membership> before;  // a copy only where there is one to compare with
  for (const Entry& entry : m.entries) {
    if (entry.kind != EntryKind::membership || entry.id.index <= base) continue;
    Result<Membership> next = decode_membership(entry.payload.view());
    if (!next.ok()) return Violation::impossible_membership;
    if (!before) before = log_.membership_at(std::max(m.prev.index, base));
    // Without members this node waits to be added, and knows nothing that could be contradicted.
    if (!before->members.empty() && !may_follow(*before, next.value())) {
      return Violation::impossible_membership;
    }
    before = std::move(next).value();
  }
  return std::nullopt;
}

// ---- The messages ----

struct Core::Impl::Judge {
  const Core::Impl& core;
  NodeId from;
  using Verdict = std::optional<Violation>;

  template <class Request>
  Verdict vote(const Request& m) const {
    if (!core.reachable_term(m.term)) return Violation::term_too_high;
    if (m.last.index > kIndexMax) return Violation::index_too_high;
    return std::nullopt;
  }
  Verdict operator()(const PreVoteRequest& m) const { return vote(m); }
  Verdict operator()(const VoteRequest& m) const { return vote(m); }

  Verdict term(Term term) const {
    if (core.reachable_term(term)) return std::nullopt;
    return Violation::term_too_high;
  }
  Verdict operator()(const PreVoteReply& m) const { return term(m.term); }
  Verdict operator()(const VoteReply& m) const { return term(m.term); }

  Verdict operator()(const AppendRequest& m) const {
    if (const Verdict verdict = core.judge_leader(from, m.term, m.lease)) return verdict;
    if (m.term < core.hard_state_.term) return std::nullopt;
    const Index last = m.entries.empty() ? m.prev.index : m.entries.back().id.index;
    if (last > kIndexMax || m.commit > kIndexMax) return Violation::index_too_high;
    if (core.contradicts_committed(m.prev)) return Violation::committed_replaced;
    for (const Entry& entry : m.entries) {
      if (entry.id.index > core.commit_) break;
      if (core.contradicts_committed(entry.id)) return Violation::committed_replaced;
    }
    const bool fits = m.prev.index < core.log_.base().index || core.log_.matches(m.prev);
    return fits ? core.judge_memberships(m) : std::nullopt;
  }

  // A match is bounded by the log, not by what was sent: a follower whose log begins above the
  // probe answers with the place where it begins.
  Verdict operator()(const AppendReply& m) const {
    if (!core.reachable_term(m.term)) return Violation::term_too_high;
    const Leader* leader = core.as_leader();
    if (leader == nullptr || m.request_term != core.hard_state_.term) return std::nullopt;
    if (m.round > leader->rounds.newest()) return Violation::answer_to_nothing;
    const Index named = m.matched ? m.index : m.rejected_prev;
    if (named > core.log_.last_index()) return Violation::answer_to_nothing;
    return std::nullopt;
  }

  Verdict operator()(const ReadIndexRequest&) const { return std::nullopt; }
  Verdict operator()(const ReadIndexReply&) const { return std::nullopt; }
  Verdict operator()(const TimeoutNow&) const { return std::nullopt; }

  Verdict operator()(const SnapshotChunk& m) const {
    if (const Verdict verdict = core.judge_leader(from, m.term, m.lease)) return verdict;
    if (m.term < core.hard_state_.term) return std::nullopt;
    const Index jump = core.log_.last_index() + kIndexJump;
    if (m.id.last.index > std::min(kIndexMax, jump)) return Violation::index_too_high;
    if (core.contradicts_committed(m.id.last)) return Violation::committed_replaced;
    if (core.below_committed(m.id.last)) return Violation::committed_replaced;
    return std::nullopt;
  }

  Verdict operator()(const SnapshotReply& m) const {
    if (!core.reachable_term(m.term)) return Violation::term_too_high;
    const Leader* leader = core.as_leader();
    if (leader == nullptr || m.request_term != core.hard_state_.term) return std::nullopt;
    if (m.round > leader->rounds.newest()) return Violation::answer_to_nothing;
    return std::nullopt;
  }
};

// Terms never fall along a log, so no log has an entry of a lower term behind a committed one.
bool Core::Impl::below_committed(LogId id) const {
  return id.index > commit_ && id.term < log_.term_at(commit_).value_or(Term());
}

std::optional<Violation> Core::Impl::violation(NodeId from, const Message& message) const {
  return std::visit(Judge{*this, from}, message);
}

// A peer that sends nothing else must not fill the log file of this node.
void Core::Impl::report(NodeId from, Violation what) {
  ++violations_;
  if (now_.promise < next_report_) return;
  next_report_ = now_.promise + kReportPause;
  emit(ProtocolViolation{from, what, violations_});
}

const char* text_of(Violation violation) {
  switch (violation) {
    case Violation::term_too_high: return "a term that no group can have reached";
    case Violation::index_too_high: return "an index that no group can have reached";
    case Violation::lease_too_long: return "a lease of more than an hour, or of none";
    case Violation::second_leader: return "it leads a term that another node has led";
    case Violation::committed_replaced: return "its log contradicts what is committed here";
    case Violation::impossible_membership: return "members that cannot follow those before them";
    case Violation::answer_to_nothing: return "an answer to something that was never sent";
  }
  LEASEHOLD_UNREACHABLE();
}

}  // namespace leasehold::raft
