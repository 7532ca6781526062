// Reads the protobuf form of each message, and refuses fields that this build does not know.
#include <leasehold/raft/settings_form.h>
#include <leasehold/wire/check.h>
#include <leasehold/wire/form.h>
#include <leasehold/wire/frame.h>
#include <leasehold/wire/raft.pb.h>

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <limits>
#include <utility>

namespace leasehold::wire {
namespace {

/// Whether `form` itself (not what is nested in it) has only fields that raft.proto names.
bool known_fields_only(const google::protobuf::Message& form) {
  return form.GetReflection()->GetUnknownFields(form).empty();
}

/// Whether `m` is of a kind, or has a field, that came with kSettingsVersion.
bool of_settings_version(const pb::Message& m) {
  const pb::AppendRequest& append = m.append_request();
  return m.has_process_beat() || m.has_process_beat_reply() || append.drift_ppm() != 0 ||
         append.has_bind() || m.append_reply().has_bound() || m.snapshot_chunk().drift_ppm() != 0 ||
         !m.formation_confirm().settings().empty() || m.from_replica() != 0 || m.to_replica() != 0;
}

raft::LogId log_id(std::uint64_t term, std::uint64_t index) {
  return raft::LogId{raft::Term(term), raft::Index(index)};
}

Result<raft::TransferToken> transfer_token(const pb::TransferToken& m) {
  if (!known_fields_only(m)) return malformed("a token has an unknown field");
  return raft::TransferToken{raft::Term(m.term()), raft::NodeId(m.target()),
                             raft::Index(m.last_index())};
}

Result<lease::Epoch> epoch(const pb::Epoch& m) {
  if (!known_fields_only(m)) return malformed("an epoch has an unknown field");
  return lease::Epoch{raft::Incarnation(m.incarnation()), m.counter()};
}

/// Reads what an append says of the promise between the processes.
Result<void> read_bind(const pb::AppendRequest& m, std::optional<raft::BindRequest>& to) {
  if (!m.has_bind()) return {};
  if (!known_fields_only(m.bind())) return malformed("a bind has an unknown field");
  const Result<lease::Epoch> at = epoch(m.bind().epoch());
  if (!at.ok()) return at.error();
  to = raft::BindRequest{lease::Beat(m.bind().beat()), at.value()};
  return {};
}

raft::PreVoteRequest pre_vote_request(const pb::PreVoteRequest& m) {
  return {raft::Term(m.term()), log_id(m.last_term(), m.last_index())};
}

Result<raft::VoteRequest> vote_request(const pb::VoteRequest& m) {
  raft::VoteRequest request;
  request.term = raft::Term(m.term());
  request.last = log_id(m.last_term(), m.last_index());
  if (!m.has_token()) return request;
  const Result<raft::TransferToken> token = transfer_token(m.token());
  if (!token.ok()) return token.error();
  request.token = token.value();
  return request;
}

Result<raft::TimeoutNow> timeout_now(const pb::TimeoutNow& m) {
  if (!m.has_token()) return malformed("a transfer without a token");
  const Result<raft::TransferToken> token = transfer_token(m.token());
  if (!token.ok()) return token.error();
  return raft::TimeoutNow{token.value()};
}

template <class Reply>
Reply vote_reply(const auto& m) {
  return Reply{raft::Term(m.request_term()), raft::Term(m.term()), m.granted(),
               raft::NodeId(m.leader())};
}

Result<raft::AppendRequest> append_request(const pb::AppendRequest& m, const Bytes& payload) {
  const int count = m.entry_terms_size();
  if (m.entry_kinds_size() != count || m.entry_bytes_size() != count) {
    return malformed("an append's entry lists differ in length");
  }
  if (static_cast<std::size_t>(count) > kEntriesMax) return malformed("too many entries");
  std::uint64_t bytes = 0;
  for (const std::uint32_t size : m.entry_bytes()) bytes += size;
  if (bytes != payload.size()) {
    return malformed("the entries' lengths do not add up to the payload part");
  }
  raft::AppendRequest request;
  request.term = raft::Term(m.term());
  request.prev = log_id(m.prev_term(), m.prev_index());
  request.commit = raft::Index(m.commit());
  request.round = raft::Round(m.round());
  request.lease = lease::Duration(m.lease_ns());
  request.drift_ppm = m.drift_ppm();
  if (Result<void> bind = read_bind(m, request.bind); !bind.ok()) return bind.error();
  request.entries.reserve(static_cast<std::size_t>(count));
  raft::Index index = request.prev.index;
  std::size_t offset = 0;
  for (int i = 0; i < count; ++i) {
    index = index.next();
    if (m.entry_kinds(i) > std::numeric_limits<std::uint8_t>::max()) {
      return malformed("an entry is of an unknown kind");
    }
    raft::Entry& entry = request.entries.emplace_back();
    entry.id = raft::LogId{raft::Term(m.entry_terms(i)), index};
    entry.kind = static_cast<raft::EntryKind>(m.entry_kinds(i));
    entry.payload = payload.slice(offset, m.entry_bytes(i));
    offset += m.entry_bytes(i);
  }
  return request;
}

Result<raft::AppendReply> append_reply(const pb::AppendReply& m) {
  raft::AppendReply reply;
  reply.request_term = raft::Term(m.request_term());
  reply.term = raft::Term(m.term());
  reply.promised = m.promised();
  reply.round = raft::Round(m.round());
  reply.matched = m.matched();
  reply.index = raft::Index(m.index());
  reply.hint_term = raft::Term(m.hint_term());
  reply.rejected_prev = raft::Index(m.rejected_prev());
  if (m.has_bound()) {
    const Result<lease::Epoch> bound = epoch(m.bound());
    if (!bound.ok()) return bound.error();
    reply.bound = bound.value();
  }
  return reply;
}

raft::ReadIndexRequest read_index_request(const pb::ReadIndexRequest& m) {
  return {raft::Incarnation(m.incarnation()), m.id(), m.quorum()};
}

raft::ReadIndexReply read_index_reply(const pb::ReadIndexReply& m) {
  raft::ReadIndexReply reply;
  reply.incarnation = raft::Incarnation(m.incarnation());
  reply.id = m.id();
  if (m.has_index()) reply.index = raft::Index(m.index());
  reply.leader = raft::NodeId(m.leader());
  return reply;
}

Result<raft::SnapshotChunk> snapshot_chunk(const pb::SnapshotChunk& m, const Bytes& payload) {
  Result<raft::Membership> membership = raft::decode_membership(m.membership());
  if (!membership.ok()) return malformed("the membership of a snapshot does not decode");
  raft::SnapshotChunk chunk;
  chunk.term = raft::Term(m.term());
  chunk.round = raft::Round(m.round());
  chunk.lease = lease::Duration(m.lease_ns());
  chunk.drift_ppm = m.drift_ppm();
  chunk.id = raft::SnapshotId{log_id(m.last_term(), m.last_index()), m.tag()};
  chunk.membership = std::move(membership).value();
  chunk.size = m.size();
  chunk.offset = m.offset();
  chunk.data = payload;
  return chunk;
}

raft::SnapshotReply snapshot_reply(const pb::SnapshotReply& m) {
  raft::SnapshotReply reply;
  reply.request_term = raft::Term(m.request_term());
  reply.term = raft::Term(m.term());
  reply.promised = m.promised();
  reply.round = raft::Round(m.round());
  reply.id = raft::SnapshotId{log_id(m.last_term(), m.last_index()), m.tag()};
  reply.refused = m.refused();
  reply.offset = m.offset();
  return reply;
}

Result<wire::ForwardReply> forward_reply(const pb::ForwardReply& m) {
  if (m.reason() > std::numeric_limits<std::uint8_t>::max()) {
    return malformed("the reason of a refusal is not known");
  }
  return wire::ForwardReply{raft::Incarnation(m.incarnation()), m.sequence(),
                            static_cast<wire::ForwardRefusal>(m.reason()),
                            raft::NodeId(m.leader())};
}

Result<wire::FormationConfirm> formation_confirm(const pb::FormationConfirm& m) {
  wire::FormationConfirm confirm;
  if (!m.settings().empty()) {
    LittleReader reader(m.settings());
    const Result<raft::GroupSettings> settings = raft::decode_settings(reader);
    if (!settings.ok()) return settings.error();
    if (!reader.at_end()) return malformed("bytes behind the settings of a group");
    confirm.settings = settings.value();
  }
  if (static_cast<std::size_t>(m.members_size()) > kMembersMax)
    return malformed("too many members");
  for (const pb::Member& member : m.members()) {
    if (!known_fields_only(member)) return malformed("a member has an unknown field");
    confirm.members.push_back(raft::Member{raft::NodeId(member.id()),
                                           raft::Uuid{member.uuid_high(), member.uuid_low()},
                                           member.address()});
  }
  confirm.formed = m.formed();
  return confirm;
}

Result<raft::ProcessBeat> process_beat(const pb::ProcessBeat& m) {
  if (static_cast<std::size_t>(m.released_size()) > raft::kReleasedGroupsMax) {
    return malformed("a beat releases too many groups");
  }
  raft::ProcessBeat beat;
  beat.beat = lease::Beat(m.beat());
  beat.lease = lease::Duration(m.lease_ns());
  beat.drift_ppm = m.drift_ppm();
  for (const pb::ReleasedGroup& released : m.released()) {
    if (!known_fields_only(released)) return malformed("a release has an unknown field");
    beat.released.push_back({raft::GroupId(released.group()), raft::Term(released.term()),
                             lease::Beat(released.since())});
  }
  return beat;
}

Result<raft::ProcessBeatReply> process_beat_reply(const pb::ProcessBeatReply& m) {
  const Result<lease::Epoch> at = epoch(m.epoch());
  if (!at.ok()) return at.error();
  return raft::ProcessBeatReply{raft::Incarnation(m.incarnation()), lease::Beat(m.beat()),
                                at.value()};
}

/// Moves the value into `to`, if there is one.
template <class T>
Result<void> take(Result<T> from, wire::Payload& to) {
  if (!from.ok()) return from.error();
  to = std::move(from).value();
  return {};
}

template <class T>
Result<void> take_message(Result<T> from, Payload& to) {
  if (!from.ok()) return from.error();
  to = raft::Message(std::move(from).value());
  return {};
}

}  // namespace

Result<void> read_form(const pb::Message& m, const Bytes& payload, std::uint16_t version,
                       wire::Payload& to) {
  using Case = pb::Message::PayloadCase;
  const auto unknown = [] { return malformed("a field that this wire version does not name"); };
  if (!known_fields_only(m)) return unknown();
  if (version < kSettingsVersion && of_settings_version(m)) return unknown();
  switch (m.payload_case()) {
    case Case::kPreVoteRequest:
      if (!known_fields_only(m.pre_vote_request())) return unknown();
      to = raft::Message(pre_vote_request(m.pre_vote_request()));
      return {};
    case Case::kPreVoteReply:
      if (!known_fields_only(m.pre_vote_reply())) return unknown();
      to = raft::Message(vote_reply<raft::PreVoteReply>(m.pre_vote_reply()));
      return {};
    case Case::kVoteRequest:
      if (!known_fields_only(m.vote_request())) return unknown();
      return take_message(vote_request(m.vote_request()), to);
    case Case::kVoteReply:
      if (!known_fields_only(m.vote_reply())) return unknown();
      to = raft::Message(vote_reply<raft::VoteReply>(m.vote_reply()));
      return {};
    case Case::kAppendRequest:
      if (!known_fields_only(m.append_request())) return unknown();
      return take_message(append_request(m.append_request(), payload), to);
    case Case::kAppendReply:
      if (!known_fields_only(m.append_reply())) return unknown();
      return take_message(append_reply(m.append_reply()), to);
    case Case::kReadIndexRequest:
      if (!known_fields_only(m.read_index_request())) return unknown();
      to = raft::Message(read_index_request(m.read_index_request()));
      return {};
    case Case::kReadIndexReply:
      if (!known_fields_only(m.read_index_reply())) return unknown();
      to = raft::Message(read_index_reply(m.read_index_reply()));
      return {};
    case Case::kForwardRequest: {
      const pb::ForwardRequest& request = m.forward_request();
      if (!known_fields_only(request)) return unknown();
      to =
          wire::ForwardRequest{raft::Term(request.term()), raft::Incarnation(request.incarnation()),
                               request.sequence(), payload};
      return {};
    }
    case Case::kForwardReply:
      if (!known_fields_only(m.forward_reply())) return unknown();
      return take(forward_reply(m.forward_reply()), to);
    case Case::kFormationConfirm:
      if (!known_fields_only(m.formation_confirm())) return unknown();
      return take(formation_confirm(m.formation_confirm()), to);
    case Case::kSnapshotChunk:
      if (!known_fields_only(m.snapshot_chunk())) return unknown();
      return take_message(snapshot_chunk(m.snapshot_chunk(), payload), to);
    case Case::kSnapshotReply:
      if (!known_fields_only(m.snapshot_reply())) return unknown();
      to = raft::Message(snapshot_reply(m.snapshot_reply()));
      return {};
    case Case::kTimeoutNow:
      if (!known_fields_only(m.timeout_now())) return unknown();
      return take_message(timeout_now(m.timeout_now()), to);
    case Case::kProcessBeat:
      if (!known_fields_only(m.process_beat())) return unknown();
      return take(process_beat(m.process_beat()), to);
    case Case::kProcessBeatReply:
      if (!known_fields_only(m.process_beat_reply())) return unknown();
      return take(process_beat_reply(m.process_beat_reply()), to);
    case Case::PAYLOAD_NOT_SET: break;
  }
  return malformed("no kind of message that this wire version names");
}

}  // namespace leasehold::wire
