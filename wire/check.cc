#include <leasehold/wire/check.h>

#include <leasehold/raft/membership.h>

#include <fmt/format.h>

#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>

namespace leasehold::wire {

namespace {

using raft::LogId;

/// nullptr: the invariants hold; otherwise the one that does not.
using Verdict = const char*;
constexpr Verdict kHolds = nullptr;

constexpr Verdict kI1 = "I1: a number is out of range";
constexpr Verdict kI2 = "I2: a term or an incarnation is zero";
constexpr Verdict kI3 = "I3: half of a log id is zero";
constexpr Verdict kI4 = "I4: the candidate's last entry is not of an earlier term";

constexpr lease::Duration kLeaseMax = std::chrono::hours(1);
constexpr std::int64_t kDriftPpmMax = 500'000;

bool in_range(std::initializer_list<std::uint64_t> positions) {
  for (const std::uint64_t position : positions) {
    if (position > kPositionMax) return false;
  }
  return true;
}

bool whole(const LogId& id) {
  return (id.term.value() == 0) == (id.index.value() == 0);
}

/// PreVoteRequest and VoteRequest.
template <class Request>
Verdict check_vote_request(const Request& m) {
  if (!in_range({m.term.value(), m.last.term.value(), m.last.index.value()})) return kI1;
  if (m.term.value() == 0) return kI2;
  if (!whole(m.last)) return kI3;
  if (m.last.term >= m.term) return kI4;
  return kHolds;
}

/// TimeoutNow, and a VoteRequest that has one.
Verdict check_token(const raft::TransferToken& token) {
  if (!in_range({token.term.value(), token.last.value()})) return kI1;
  if (token.term.value() == 0) return kI2;
  if (token.target == raft::kNobody) return "I12: a token for nobody";
  // A leader that issues one has at least the first entry of its own term.
  if (token.last.value() == 0) return "I12: a token for an empty log";
  return kHolds;
}

/// PreVoteReply and VoteReply.
template <class Reply>
Verdict check_vote_reply(const Reply& m) {
  if (!in_range({m.request_term.value(), m.term.value()})) return kI1;
  if (m.request_term.value() == 0) return kI2;
  return kHolds;
}

/// AppendRequest, SnapshotChunk and ProcessBeat.
template <class Request>
Verdict check_lease(const Request& m) {
  if (m.lease <= lease::Duration(0) || m.lease > kLeaseMax) {
    return "I7: the lease is not within (0, 1 hour]";
  }
  if (m.drift_ppm < 0 || m.drift_ppm > kDriftPpmMax) {
    return "I7: the drift is not within 0 and 500000 ppm";
  }
  return kHolds;
}

/// AppendRequest and SnapshotChunk.
template <class Request>
Verdict check_round(const Request& m) {
  return m.round.value() == 0 ? "I7: no round" : check_lease(m);
}

Verdict check_epoch(const lease::Epoch& epoch) {
  if (!in_range({epoch.incarnation.value(), epoch.counter})) return kI1;
  return epoch.incarnation.value() == 0 ? "I13: an epoch of no process" : kHolds;
}

Verdict check_bind(const raft::BindRequest& bind) {
  if (!in_range({bind.beat.value()})) return kI1;
  return bind.beat.value() == 0 ? "I13: a bind to no beat" : check_epoch(bind.epoch);
}

Verdict check_entries(const raft::AppendRequest& m) {
  if (m.entries.size() > kEntriesMax) return "I8: too many entries";
  LogId before = m.prev;
  for (const raft::Entry& entry : m.entries) {
    if (entry.id.index != before.index.next()) return "I6: the entries' indices have a gap";
    if (entry.id.term < before.term) return "I5: the entries' terms go back";
    if (entry.id.term.value() == 0) return "I5: an entry's term is zero";
    switch (entry.kind) {
      case raft::EntryKind::command: break;
      case raft::EntryKind::empty:
        if (!entry.payload.empty()) return "I8: an empty entry has a payload";
        break;
      case raft::EntryKind::membership:
        if (!raft::decode_membership(entry.payload.view()).ok()) {
          return "I8: a membership entry does not decode";
        }
        break;
      default: return "I8: an entry is of an unknown kind";
    }
    before = entry.id;
  }
  if (before.index.value() > kPositionMax) return kI1;
  if (before.term > m.term) return "I5: an entry's term is above the message's";
  return kHolds;
}

struct Check {
  Verdict operator()(const raft::PreVoteRequest& m) const { return check_vote_request(m); }
  Verdict operator()(const raft::PreVoteReply& m) const { return check_vote_reply(m); }
  Verdict operator()(const raft::VoteRequest& m) const {
    if (const Verdict verdict = check_vote_request(m)) return verdict;
    if (!m.token) return kHolds;
    if (const Verdict verdict = check_token(*m.token)) return verdict;
    const bool fits = m.token->term.next() == m.term && m.token->last == m.last.index;
    return fits ? kHolds : "I12: a token of another campaign";
  }
  Verdict operator()(const raft::TimeoutNow& m) const { return check_token(m.token); }
  Verdict operator()(const raft::VoteReply& m) const { return check_vote_reply(m); }

  Verdict operator()(const raft::AppendRequest& m) const {
    if (!in_range({m.term.value(), m.prev.term.value(), m.prev.index.value(), m.commit.value(),
                   m.round.value()})) {
      return kI1;
    }
    if (m.term.value() == 0) return kI2;
    if (!whole(m.prev)) return kI3;
    if (const Verdict verdict = check_round(m)) return verdict;
    if (m.bind) {
      if (const Verdict verdict = check_bind(*m.bind)) return verdict;
    }
    return check_entries(m);
  }

  Verdict operator()(const raft::AppendReply& m) const {
    if (!in_range({m.request_term.value(), m.term.value(), m.round.value(), m.index.value(),
                   m.hint_term.value(), m.rejected_prev.value()})) {
      return kI1;
    }
    if (m.request_term.value() == 0) return kI2;
    return m.bound ? check_epoch(*m.bound) : kHolds;
  }

  Verdict operator()(const raft::ReadIndexRequest& m) const { return incarnation(m.incarnation); }

  Verdict operator()(const raft::ReadIndexReply& m) const {
    if (m.index && !in_range({m.index->value()})) return kI1;
    return incarnation(m.incarnation);
  }

  Verdict operator()(const wire::ForwardRequest& m) const {
    if (!in_range({m.term.value()})) return kI1;
    return m.term.value() == 0 ? kI2 : incarnation(m.incarnation);
  }

  Verdict operator()(const wire::ForwardReply& m) const {
    switch (m.reason) {
      case wire::ForwardRefusal::not_leader:
      case wire::ForwardRefusal::overloaded:
      case wire::ForwardRefusal::disk_full: return incarnation(m.incarnation);
    }
    return "I9: the reason of a refusal is not known";
  }

  Verdict operator()(const wire::FormationConfirm& m) const {
    if (m.settings && !m.settings->timing.validate().ok()) return "I10: settings that are unsafe";
    if (m.members.size() > kMembersMax) return "I10: the number of members";
    raft::NodeId before = raft::kNobody;
    for (const raft::Member& member : m.members) {
      if (member.id <= before) return "I10: the members do not ascend by id";
      if (member.uuid == raft::Uuid{}) return "I10: a member's uuid is zero";
      if (member.address.empty() || member.address.size() > kAddressBytesMax) {
        return "I10: the length of a member's address";
      }
      for (const char c : member.address) {
        if (c <= ' ' || c > '~') return "I10: a character of a member's address";
      }
      before = member.id;
    }
    return kHolds;
  }

  Verdict operator()(const raft::SnapshotChunk& m) const {
    if (!in_range(
            {m.term.value(), m.round.value(), m.id.last.term.value(), m.id.last.index.value()})) {
      return kI1;
    }
    if (m.term.value() == 0) return kI2;
    if (const Verdict verdict = check_round(m)) return verdict;
    if (m.id.last.index.value() == 0 || !whole(m.id.last)) return "I11: the empty log's snapshot";
    if (m.id.last.term > m.term) return "I11: the snapshot's term is above the message's";
    // An empty snapshot without bytes: it tells a witness where its log begins.
    if (m.data.empty() != (m.size == 0)) return "I11: no bytes";
    if (m.size == 0 && m.id.tag != 0) return "I11: a snapshot of no bytes has a name";
    if (m.offset > m.size || m.data.size() > m.size - m.offset) {
      return "I11: bytes behind the snapshot's end";
    }
    if (!raft::decode_membership(raft::encode_membership(m.membership).view()).ok()) {
      return "I11: the membership is not one";
    }
    return kHolds;
  }

  Verdict operator()(const raft::SnapshotReply& m) const {
    if (!in_range({m.request_term.value(), m.term.value(), m.round.value(), m.id.last.term.value(),
                   m.id.last.index.value()})) {
      return kI1;
    }
    return m.request_term.value() == 0 ? kI2 : kHolds;
  }

  Verdict operator()(const raft::ProcessBeat& m) const {
    if (!in_range({m.beat.value()})) return kI1;
    if (m.beat.value() == 0) return "I14: no beat";
    if (const Verdict verdict = check_lease(m)) return verdict;
    if (m.released.size() > raft::kReleasedGroupsMax) return "I14: too many releases";
    std::optional<raft::GroupId> before;
    for (const raft::ReleasedGroup& released : m.released) {
      if (before && released.group <= *before) return "I14: the releases do not ascend by group";
      before = released.group;
      if (!in_range({released.term.value()})) return kI1;
      if (released.term.value() == 0) return kI2;
      if (released.since.value() == 0 || released.since > m.beat) {
        return "I14: a release of another beat";
      }
    }
    return kHolds;
  }

  Verdict operator()(const raft::ProcessBeatReply& m) const {
    if (!in_range({m.beat.value()})) return kI1;
    if (m.beat.value() == 0) return "I14: no beat";
    if (const Verdict verdict = check_epoch(m.epoch)) return verdict;
    return incarnation(m.incarnation);
  }

  Verdict operator()(const raft::Message& m) const { return std::visit(*this, m); }

  static Verdict incarnation(raft::Incarnation value) {
    if (!in_range({value.value()})) return kI1;
    return value.value() == 0 ? kI2 : kHolds;
  }
};

}  // namespace

Result<void> check_message(const wire::PeerMessage& message) {
  Verdict verdict = std::visit(Check{}, message.payload);
  if (verdict == kHolds && of_process(message.payload) && message.group != raft::GroupId(0)) {
    verdict = "I14: a beat of a group";
  }
  if (verdict == kHolds && (message.from == raft::kNobody) != (message.to == raft::kNobody)) {
    verdict = "I15: half of the replicas' numbers";
  }
  if (verdict == kHolds && of_process(message.payload) && message.from != raft::kNobody) {
    verdict = "I15: a beat of a replica";
  }
  const auto* confirm = std::get_if<wire::FormationConfirm>(&message.payload);
  if (verdict == kHolds && confirm != nullptr && confirm->members.empty() &&
      message.from == raft::kNobody) {
    verdict = "I10: the number of members";
  }
  if (verdict == kHolds) return {};
  return Error{ErrorCode::malformed,
               fmt::format("malformed message: invariant {} (see wire/check.h)", verdict)};
}

}  // namespace leasehold::wire
