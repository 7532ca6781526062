#include <leasehold/wire/codec.h>

#include <leasehold/base/assert.h>
#include <leasehold/wire/check.h>
#include <leasehold/wire/crc32c.h>
#include <leasehold/wire/raft.pb.h>

#include <google/protobuf/arena.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <variant>

namespace leasehold::wire {

namespace {

/// One protobuf message per frame is made in here; only an append of many entries needs more than
/// this and then allocates.
class StackArena {
 public:
  pb::Message* message() { return google::protobuf::Arena::CreateMessage<pb::Message>(&arena_); }

 private:
  static google::protobuf::ArenaOptions options(char* block, std::size_t size) {
    google::protobuf::ArenaOptions options;
    options.initial_block = block;
    options.initial_block_size = size;
    return options;
  }
  alignas(16) std::array<char, 2048> block_;
  google::protobuf::Arena arena_{options(block_.data(), block_.size())};
};

Error malformed(std::string what) {
  return Error{ErrorCode::malformed, "malformed message: " + std::move(what)};
}

/// Whether `form` itself (not what is nested in it) has only fields that raft.proto names.
bool known_fields_only(const google::protobuf::Message& form) {
  return form.GetReflection()->GetUnknownFields(form).empty();
}

/// Writes one message into its protobuf form.
struct ToProtobuf {
  pb::Message& out;

  template <class Request>
  static void vote_request(const Request& m, auto* to) {
    to->set_term(m.term.value());
    to->set_last_term(m.last.term.value());
    to->set_last_index(m.last.index.value());
  }
  template <class Reply>
  static void vote_reply(const Reply& m, auto* to) {
    to->set_request_term(m.request_term.value());
    to->set_term(m.term.value());
    to->set_granted(m.granted);
    to->set_leader(m.leader.value());
  }

  void operator()(const raft::PreVoteRequest& m) {
    vote_request(m, out.mutable_pre_vote_request());
  }
  void operator()(const raft::PreVoteReply& m) { vote_reply(m, out.mutable_pre_vote_reply()); }
  static void token(const raft::TransferToken& token, pb::TransferToken* to) {
    to->set_term(token.term.value());
    to->set_target(token.target.value());
    to->set_last_index(token.last.value());
  }
  void operator()(const raft::VoteRequest& m) {
    vote_request(m, out.mutable_vote_request());
    if (m.token) token(*m.token, out.mutable_vote_request()->mutable_token());
  }
  void operator()(const raft::TimeoutNow& m) {
    token(m.token, out.mutable_timeout_now()->mutable_token());
  }
  void operator()(const raft::VoteReply& m) { vote_reply(m, out.mutable_vote_reply()); }

  void operator()(const raft::AppendRequest& m) {
    auto* to = out.mutable_append_request();
    to->set_term(m.term.value());
    to->set_prev_term(m.prev.term.value());
    to->set_prev_index(m.prev.index.value());
    to->set_commit(m.commit.value());
    to->set_round(m.round.value());
    to->set_lease_ns(m.lease.count());
    const int count = static_cast<int>(m.entries.size());
    if (count == 0) return;
    to->mutable_entry_terms()->Reserve(count);
    to->mutable_entry_kinds()->Reserve(count);
    to->mutable_entry_bytes()->Reserve(count);
    for (const raft::Entry& entry : m.entries) {
      to->add_entry_terms(entry.id.term.value());
      to->add_entry_kinds(static_cast<std::uint32_t>(entry.kind));
      to->add_entry_bytes(static_cast<std::uint32_t>(entry.payload.size()));
    }
  }
  void operator()(const raft::AppendReply& m) {
    auto* to = out.mutable_append_reply();
    to->set_request_term(m.request_term.value());
    to->set_term(m.term.value());
    to->set_promised(m.promised);
    to->set_round(m.round.value());
    to->set_matched(m.matched);
    to->set_index(m.index.value());
    to->set_hint_term(m.hint_term.value());
    to->set_rejected_prev(m.rejected_prev.value());
  }
  void operator()(const raft::ReadIndexRequest& m) {
    auto* to = out.mutable_read_index_request();
    to->set_incarnation(m.incarnation.value());
    to->set_id(m.id);
    to->set_quorum(m.quorum);
  }
  void operator()(const raft::ReadIndexReply& m) {
    auto* to = out.mutable_read_index_reply();
    to->set_incarnation(m.incarnation.value());
    to->set_id(m.id);
    if (m.index) to->set_index(m.index->value());
    to->set_leader(m.leader.value());
  }
  void operator()(const wire::ForwardRequest& m) {
    auto* to = out.mutable_forward_request();
    to->set_term(m.term.value());
    to->set_incarnation(m.incarnation.value());
    to->set_sequence(m.sequence);
  }
  void operator()(const wire::ForwardReply& m) {
    auto* to = out.mutable_forward_reply();
    to->set_incarnation(m.incarnation.value());
    to->set_sequence(m.sequence);
    to->set_reason(static_cast<std::uint32_t>(m.reason));
    to->set_leader(m.leader.value());
  }
  void operator()(const wire::FormationConfirm& m) {
    auto* to = out.mutable_formation_confirm();
    to->set_formed(m.formed);
    for (const raft::Member& member : m.members) {
      auto* to_member = to->add_members();
      to_member->set_id(member.id.value());
      to_member->set_uuid_high(member.uuid.high);
      to_member->set_uuid_low(member.uuid.low);
      to_member->set_address(member.address);
    }
  }
  void operator()(const raft::SnapshotChunk& m) {
    auto* to = out.mutable_snapshot_chunk();
    to->set_term(m.term.value());
    to->set_round(m.round.value());
    to->set_lease_ns(m.lease.count());
    to->set_last_term(m.id.last.term.value());
    to->set_last_index(m.id.last.index.value());
    to->set_tag(m.id.tag);
    const Bytes membership = raft::encode_membership(m.membership);
    to->set_membership(membership.view().data(), membership.size());
    to->set_size(m.size);
    to->set_offset(m.offset);
  }
  void operator()(const raft::SnapshotReply& m) {
    auto* to = out.mutable_snapshot_reply();
    to->set_request_term(m.request_term.value());
    to->set_term(m.term.value());
    to->set_promised(m.promised);
    to->set_round(m.round.value());
    to->set_last_term(m.id.last.term.value());
    to->set_last_index(m.id.last.index.value());
    to->set_tag(m.id.tag);
    to->set_refused(m.refused);
    to->set_offset(m.offset);
  }
  void operator()(const raft::Message& m) { std::visit(*this, m); }
};

/// Calls `see` with each payload of `message`, in the order in which they stand in the frame.
template <class See>
void for_each_payload(const wire::PeerMessage& message, See&& see) {
  if (const auto* m = std::get_if<raft::Message>(&message.payload)) {
    if (const auto* append = std::get_if<raft::AppendRequest>(m)) {
      for (const raft::Entry& entry : append->entries) see(entry.payload);
    } else if (const auto* chunk = std::get_if<raft::SnapshotChunk>(m)) {
      see(chunk->data);
    }
  } else if (const auto* forward = std::get_if<wire::ForwardRequest>(&message.payload)) {
    see(forward->command);
  }
}

raft::LogId log_id(std::uint64_t term, std::uint64_t index) {
  return raft::LogId{raft::Term(term), raft::Index(index)};
}

Result<raft::TransferToken> transfer_token(const pb::TransferToken& m) {
  if (!known_fields_only(m)) return malformed("a token has an unknown field");
  return raft::TransferToken{raft::Term(m.term()), raft::NodeId(m.target()),
                             raft::Index(m.last_index())};
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
  if (!m.has_token()) return malformed("a hand-over without a token");
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

raft::AppendReply append_reply(const pb::AppendReply& m) {
  raft::AppendReply reply;
  reply.request_term = raft::Term(m.request_term());
  reply.term = raft::Term(m.term());
  reply.promised = m.promised();
  reply.round = raft::Round(m.round());
  reply.matched = m.matched();
  reply.index = raft::Index(m.index());
  reply.hint_term = raft::Term(m.hint_term());
  reply.rejected_prev = raft::Index(m.rejected_prev());
  return reply;
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

/// Moves the value into `to`. Whether there was one; otherwise `error` says why not.
template <class T>
Result<void> take(Result<T> from, wire::Payload& to) {
  if (!from.ok()) return from.error();
  to = std::move(from).value();
  return {};
}

Result<void> read_payload(const pb::Message& m, const Bytes& payload, wire::Payload& to) {
  using Case = pb::Message::PayloadCase;
  const auto unknown = [] { return malformed("a field that this wire version does not name"); };
  switch (m.payload_case()) {
    case Case::kPreVoteRequest:
      if (!known_fields_only(m.pre_vote_request())) return unknown();
      to = raft::Message(pre_vote_request(m.pre_vote_request()));
      return {};
    case Case::kPreVoteReply:
      if (!known_fields_only(m.pre_vote_reply())) return unknown();
      to = raft::Message(vote_reply<raft::PreVoteReply>(m.pre_vote_reply()));
      return {};
    case Case::kVoteRequest: {
      if (!known_fields_only(m.vote_request())) return unknown();
      const Result<raft::VoteRequest> request = vote_request(m.vote_request());
      if (!request.ok()) return request.error();
      to = raft::Message(request.value());
      return {};
    }
    case Case::kVoteReply:
      if (!known_fields_only(m.vote_reply())) return unknown();
      to = raft::Message(vote_reply<raft::VoteReply>(m.vote_reply()));
      return {};
    case Case::kAppendRequest: {
      if (!known_fields_only(m.append_request())) return unknown();
      Result<raft::AppendRequest> request = append_request(m.append_request(), payload);
      if (!request.ok()) return request.error();
      to = raft::Message(std::move(request).value());
      return {};
    }
    case Case::kAppendReply:
      if (!known_fields_only(m.append_reply())) return unknown();
      to = raft::Message(append_reply(m.append_reply()));
      return {};
    case Case::kReadIndexRequest:
      if (!known_fields_only(m.read_index_request())) return unknown();
      to = raft::Message(
          raft::ReadIndexRequest{raft::Incarnation(m.read_index_request().incarnation()),
                                 m.read_index_request().id(), m.read_index_request().quorum()});
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
    case Case::kSnapshotChunk: {
      if (!known_fields_only(m.snapshot_chunk())) return unknown();
      Result<raft::SnapshotChunk> chunk = snapshot_chunk(m.snapshot_chunk(), payload);
      if (!chunk.ok()) return chunk.error();
      to = raft::Message(std::move(chunk).value());
      return {};
    }
    case Case::kSnapshotReply:
      if (!known_fields_only(m.snapshot_reply())) return unknown();
      to = raft::Message(snapshot_reply(m.snapshot_reply()));
      return {};
    case Case::kTimeoutNow: {
      if (!known_fields_only(m.timeout_now())) return unknown();
      const Result<raft::TimeoutNow> now = timeout_now(m.timeout_now());
      if (!now.ok()) return now.error();
      to = raft::Message(now.value());
      return {};
    }
    case Case::PAYLOAD_NOT_SET: break;
  }
  return malformed("no kind of message that this wire version names");
}

/// Whether the payload part of the frame belongs to this kind.
bool has_payload_part(const wire::Payload& payload) {
  if (std::holds_alternative<wire::ForwardRequest>(payload)) return true;
  const auto* m = std::get_if<raft::Message>(&payload);
  return m != nullptr && (std::holds_alternative<raft::AppendRequest>(*m) ||
                          std::holds_alternative<raft::SnapshotChunk>(*m));
}

}  // namespace

std::size_t payload_bytes(const wire::PeerMessage& message) {
  std::size_t bytes = 0;
  for_each_payload(message, [&bytes](const Bytes& payload) { bytes += payload.size(); });
  return bytes;
}

Result<std::size_t> encode_message(const wire::PeerMessage& message, std::size_t frame_bytes_max,
                                   SendBuffer& out) {
  LEASEHOLD_ASSERT(check_message(message).ok());
  LEASEHOLD_ASSERT(frame_bytes_max <= std::numeric_limits<std::int32_t>::max());
  const std::size_t payload = payload_bytes(message);
  std::size_t protobuf = 0;
  StackArena arena;
  pb::Message* form = nullptr;
  if (payload < frame_bytes_max) {
    form = arena.message();
    form->set_group(message.group.value());
    std::visit(ToProtobuf{*form}, message.payload);
    protobuf = form->ByteSizeLong();
  }
  const std::size_t frame = kFrameHeaderBytes + protobuf + payload;
  if (form == nullptr || frame > frame_bytes_max) {
    return Error{ErrorCode::overloaded, "a message of " + std::to_string(frame) +
                                            " bytes is above the frame limit of " +
                                            std::to_string(frame_bytes_max)};
  }

  // Header and protobuf part go to one run of copied bytes; the header is written when the checksum
  // is known.
  std::array<char, 512> small;
  std::string large;
  char* body = small.data();
  if (protobuf > small.size()) {
    large.resize(protobuf);
    body = large.data();
  }
  form->SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(body));
  const std::string_view body_view(body, protobuf);
  FrameHeader header;
  header.version = kWireVersionMax;
  header.kind = FrameKind::message;
  header.protobuf_bytes = static_cast<std::uint32_t>(protobuf);
  header.payload_bytes = static_cast<std::uint32_t>(payload);
  header.body_crc = crc32c(body_view);
  for_each_payload(message, [&header](const Bytes& part) {
    header.body_crc = crc32c(part.view(), header.body_crc);
  });
  std::string& tail = out.tail();
  append_header(header, tail);
  tail.append(body_view);
  out.grow(kFrameHeaderBytes + protobuf);
  for_each_payload(message, [&out](const Bytes& part) { out.append(part); });
  return frame;
}

Result<wire::PeerMessage> decode_message(const Frame& frame) {
  LEASEHOLD_ASSERT(frame.header.kind == FrameKind::message);
  StackArena arena;
  pb::Message* form = arena.message();
  if (frame.protobuf.size() > std::numeric_limits<std::int32_t>::max() ||
      !form->ParseFromArray(frame.protobuf.data(), static_cast<int>(frame.protobuf.size()))) {
    return malformed("the protobuf part does not parse");
  }
  if (!known_fields_only(*form)) {
    return malformed("a field that this wire version does not name");
  }
  // Made where it is returned: g++ 12 takes a moved variant for uninitialised.
  Result<wire::PeerMessage> decoded = wire::PeerMessage{};
  wire::PeerMessage& message = decoded.value();
  message.group = raft::GroupId(form->group());
  if (Result<void> read = read_payload(*form, frame.payload, message.payload); !read.ok()) {
    return read.error();
  }
  if (!frame.payload.empty() && !has_payload_part(message.payload)) {
    return malformed("a payload part behind a message that has none");
  }
  if (Result<void> checked = check_message(message); !checked.ok()) return checked.error();
  return decoded;
}

}  // namespace leasehold::wire
