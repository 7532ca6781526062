#include <leasehold/tests/wire/random_message.h>

#include <leasehold/base/assert.h>
#include <leasehold/wire/check.h>

#include <chrono>
#include <string>
#include <utility>

namespace leasehold::wire {

namespace {

using raft::Incarnation;
using raft::Index;
using raft::LogId;
using raft::NodeId;
using raft::Term;

/// In [low, 2^62], every magnitude equally likely.
std::uint64_t position(Random& random, std::uint64_t low = 0) {
  const std::uint64_t bits = random.below(63);
  const std::uint64_t value = low + random.below((std::uint64_t{1} << bits) + 1);
  return value > kPositionMax ? kPositionMax : value;
}

bool flip(Random& random) {
  return random.chance(1, 2);
}

std::string text(Random& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random.below(256));
  return bytes;
}

Bytes payload(Random& random) {
  switch (random.below(4)) {
    case 0: return Bytes();
    case 1: return Bytes(text(random, random.below(3000)));
    default: return Bytes(text(random, random.below(40)));
  }
}

/// Of a term in [1, below), or the empty log's.
LogId log_id(Random& random, std::uint64_t below) {
  if (below <= 1 || random.chance(1, 4)) return LogId{};
  const Term term(1 + random.below(below - 1));
  return LogId{term, Index(position(random, 1))};
}

raft::Member member(Random& random, std::uint64_t id) {
  raft::Member member;
  member.id = NodeId(id);
  member.uuid.high = random.next();
  member.uuid.low = random.next() | 1;
  member.address = "node" + std::to_string(id) + ":" + std::to_string(random.below(65536));
  return member;
}

raft::Entry entry(Random& random, LogId id) {
  raft::Entry entry;
  entry.id = id;
  switch (random.below(8)) {
    case 0: entry.kind = raft::EntryKind::empty; break;
    case 1: {
      entry.kind = raft::EntryKind::membership;
      raft::Membership membership;
      const std::uint64_t first = 1 + random.below(5);
      membership.members.push_back(member(random, first));
      membership.members.push_back(member(random, first + 3));
      membership.voters.push_back(NodeId(first));
      entry.payload = encode_membership(membership);
      break;
    }
    default: entry.payload = payload(random); break;
  }
  return entry;
}

lease::Epoch epoch(Random& random) {
  return {Incarnation(position(random, 1)), position(random)};
}

raft::AppendRequest append_request(Random& random) {
  raft::AppendRequest m;
  m.term = Term(position(random, 1));
  m.prev = log_id(random, m.term.value() == kPositionMax ? kPositionMax : m.term.value() + 1);
  if (m.prev.index.value() > kPositionMax - 100) m.prev.index = Index(kPositionMax - 100);
  m.commit = Index(position(random));
  m.round = raft::Round(position(random, 1));
  m.lease = lease::Duration(
      static_cast<std::int64_t>(1 + random.below(std::uint64_t{3600} * 1000 * 1000 * 1000)));
  m.drift_ppm = static_cast<std::int64_t>(random.below(500'001));
  if (flip(random)) m.bind = raft::BindRequest{lease::Beat(position(random, 1)), epoch(random)};
  LogId last = m.prev;
  for (std::uint64_t count = flip(random) ? 0 : random.below(12); count > 0; --count) {
    last.index = last.index.next();
    if (last.term.value() == 0) last.term = Term(1);
    if (last.term < m.term && flip(random)) last.term = last.term.next();
    m.entries.push_back(entry(random, last));
  }
  return m;
}

template <class Request>
Request vote_request(Random& random) {
  Request m;
  m.term = Term(position(random, 1));
  m.last = log_id(random, m.term.value());
  return m;
}

raft::TransferToken token(Random& random) {
  return {Term(position(random, 1)), NodeId(1 + random.below(4)), Index(position(random, 1))};
}

raft::VoteRequest vote_request_with_token(Random& random) {
  raft::VoteRequest m;
  const std::uint64_t term = 2 + random.below(1000);
  m.term = Term(term);
  m.last = LogId{Term(1 + random.below(term - 1)), Index(1 + random.below(1000))};
  m.token = raft::TransferToken{m.term.prev(), NodeId(1 + random.below(4)), m.last.index};
  return m;
}

template <class Reply>
Reply vote_reply(Random& random) {
  Reply m;
  m.request_term = Term(position(random, 1));
  m.term = Term(position(random));
  m.granted = flip(random);
  m.leader = NodeId(flip(random) ? 0 : random.next());
  return m;
}

raft::AppendReply append_reply(Random& random) {
  raft::AppendReply m;
  m.request_term = Term(position(random, 1));
  m.term = Term(position(random));
  m.promised = flip(random);
  m.round = raft::Round(position(random));
  m.matched = flip(random);
  m.index = Index(position(random));
  m.hint_term = Term(position(random));
  m.rejected_prev = Index(position(random));
  if (flip(random)) m.bound = epoch(random);
  return m;
}

raft::SnapshotId snapshot_id(Random& random, std::uint64_t term_max) {
  raft::SnapshotId id;
  id.last.term = Term(1 + random.below(term_max));
  id.last.index = Index(position(random, 1));
  id.tag = random.next();
  return id;
}

raft::SnapshotChunk snapshot_chunk(Random& random) {
  raft::SnapshotChunk m;
  m.term = Term(position(random, 1));
  m.round = raft::Round(position(random, 1));
  m.lease = lease::Duration(
      static_cast<std::int64_t>(1 + random.below(std::uint64_t{3600} * 1000 * 1000 * 1000)));
  m.drift_ppm = static_cast<std::int64_t>(random.below(500'001));
  m.id = snapshot_id(random, m.term.value());
  const std::uint64_t first = 1 + random.below(5);
  m.membership.members.push_back(member(random, first));
  m.membership.voters.push_back(NodeId(first));
  m.data = Bytes(std::string(1 + random.below(3000), 'd'));
  m.offset = flip(random) ? 0 : random.below(1000);
  m.size = m.offset + m.data.size() + (flip(random) ? 0 : random.below(1000));
  return m;
}

raft::ProcessBeat process_beat(Random& random) {
  raft::ProcessBeat m;
  m.beat = lease::Beat(position(random, 1));
  m.lease = lease::Duration(
      static_cast<std::int64_t>(1 + random.below(std::uint64_t{3600} * 1000 * 1000 * 1000)));
  m.drift_ppm = static_cast<std::int64_t>(random.below(500'001));
  const std::uint64_t released = random.below(4);
  for (std::uint64_t count = 1; count <= released; ++count) {
    m.released.push_back({raft::GroupId(100 * count + random.below(100)), Term(position(random, 1)),
                          lease::Beat(1 + random.below(m.beat.value()))});
  }
  return m;
}

raft::SnapshotReply snapshot_reply(Random& random) {
  raft::SnapshotReply m;
  m.request_term = Term(position(random, 1));
  m.term = Term(position(random));
  m.promised = flip(random);
  m.round = raft::Round(position(random));
  m.id = snapshot_id(random, kPositionMax);
  m.refused = flip(random);
  m.offset = random.next();
  return m;
}

wire::Payload random_payload(Random& random, std::uint64_t kind) {
  switch (kind) {
    case 0: return raft::Message(vote_request<raft::PreVoteRequest>(random));
    case 1: return raft::Message(vote_reply<raft::PreVoteReply>(random));
    case 2:
      if (flip(random)) return raft::Message(vote_request_with_token(random));
      return raft::Message(vote_request<raft::VoteRequest>(random));
    case 3: return raft::Message(vote_reply<raft::VoteReply>(random));
    case 4: return raft::Message(append_request(random));
    case 5: return raft::Message(append_reply(random));
    case 6: {
      raft::ReadIndexRequest m;
      m.incarnation = Incarnation(position(random, 1));
      m.id = random.next();
      m.quorum = flip(random);
      return raft::Message(m);
    }
    case 7: {
      raft::ReadIndexReply m;
      m.incarnation = Incarnation(position(random, 1));
      m.id = random.next();
      if (flip(random)) m.index = Index(position(random));
      m.leader = NodeId(random.below(4));
      return raft::Message(m);
    }
    case 8: {
      wire::ForwardRequest m;
      m.term = Term(position(random, 1));
      m.incarnation = Incarnation(position(random, 1));
      m.sequence = random.next();
      m.command = payload(random);
      return m;
    }
    case 9: {
      wire::ForwardReply m;
      m.incarnation = Incarnation(position(random, 1));
      m.sequence = random.next();
      m.reason = flip(random) ? wire::ForwardRefusal::not_leader : wire::ForwardRefusal::overloaded;
      m.leader = NodeId(random.below(4));
      return m;
    }
    case 10: {
      wire::FormationConfirm m;
      std::uint64_t id = 0;
      for (std::uint64_t count = 1 + random.below(5); count > 0; --count) {
        id += 1 + random.below(9);
        m.members.push_back(member(random, id));
      }
      m.formed = flip(random);
      return m;
    }
    case 11: return raft::Message(snapshot_chunk(random));
    case 12: return raft::Message(snapshot_reply(random));
    case 13: return raft::Message(raft::TimeoutNow{token(random)});
    case 14: return process_beat(random);
    case 15:
      return raft::ProcessBeatReply{Incarnation(position(random, 1)),
                                    lease::Beat(position(random, 1)), epoch(random)};
    default: LEASEHOLD_UNREACHABLE();
  }
}

}  // namespace

wire::PeerMessage random_message(Random& random, std::uint64_t kind) {
  wire::PeerMessage message;
  message.group = raft::GroupId(random.below(3));
  message.payload = random_payload(random, kind);
  if (kind >= 14) message.group = raft::GroupId();  // beats are of no group
  return message;
}

wire::PeerMessage random_message(Random& random) {
  const std::uint64_t kind = random.below(kMessageKinds);
  return random_message(random, kind);
}

}  // namespace leasehold::wire
