// A message becomes a frame: a protobuf form, and behind it the payloads, which are not copied.
#include <leasehold/wire/codec.h>

#include <leasehold/base/assert.h>
#include <leasehold/wire/check.h>
#include <leasehold/wire/crc32c.h>
#include <leasehold/wire/form.h>
#include <leasehold/wire/raft.pb.h>

#include <fmt/format.h>

#include <google/protobuf/arena.h>

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

/// Whether the payload part of the frame belongs to this kind.
bool has_payload_part(const wire::Payload& payload) {
  if (std::holds_alternative<wire::ForwardRequest>(payload)) return true;
  const auto* m = std::get_if<raft::Message>(&payload);
  return m != nullptr && (std::holds_alternative<raft::AppendRequest>(*m) ||
                          std::holds_alternative<raft::SnapshotChunk>(*m));
}

}  // namespace

bool speaks(std::uint16_t version, const wire::PeerMessage& message) {
  if (version >= kSettingsVersion) return true;
  return !of_process(message.payload) && message.from == raft::kNobody;
}

std::size_t payload_bytes(const wire::PeerMessage& message) {
  std::size_t bytes = 0;
  for_each_payload(message, [&bytes](const Bytes& payload) { bytes += payload.size(); });
  return bytes;
}

Result<std::size_t> encode_message(const wire::PeerMessage& message, std::size_t frame_bytes_max,
                                   SendBuffer& out, std::uint16_t version) {
  LEASEHOLD_ASSERT(check_message(message).ok());
  LEASEHOLD_ASSERT(version >= kWireVersionMin && version <= kWireVersionMax);
  LEASEHOLD_ASSERT(speaks(version, message));
  LEASEHOLD_ASSERT(frame_bytes_max <= std::numeric_limits<std::int32_t>::max());
  const std::size_t payload = payload_bytes(message);
  std::size_t protobuf = 0;
  StackArena arena;
  pb::Message* form = nullptr;
  if (payload < frame_bytes_max) {
    form = arena.message();
    form->set_group(message.group.value());
    form->set_from_replica(message.from.value());
    form->set_to_replica(message.to.value());
    write_form(message.payload, version, *form);
    protobuf = form->ByteSizeLong();
  }
  const std::size_t frame = kFrameHeaderBytes + protobuf + payload;
  if (form == nullptr || frame > frame_bytes_max) {
    return Error{ErrorCode::overloaded,
                 fmt::format("a message of {} bytes is above the frame limit of {}", frame,
                             frame_bytes_max)};
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
  header.version = version;
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
  // Made where it is returned: g++ 12 warns that a moved variant is uninitialised.
  Result<wire::PeerMessage> decoded = wire::PeerMessage{};
  wire::PeerMessage& message = decoded.value();
  message.group = raft::GroupId(form->group());
  message.from = raft::NodeId(form->from_replica());
  message.to = raft::NodeId(form->to_replica());
  Result<void> read = read_form(*form, frame.payload, frame.header.version, message.payload);
  if (!read.ok()) return read.error();
  if (!frame.payload.empty() && !has_payload_part(message.payload)) {
    return malformed("a payload part behind a message that has none");
  }
  if (Result<void> checked = check_message(message); !checked.ok()) return checked.error();
  return decoded;
}

}  // namespace leasehold::wire
