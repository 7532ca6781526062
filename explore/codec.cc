#include <leasehold/base/assert.h>
#include <leasehold/explore/codec.h>
#include <leasehold/wire/codec.h>

#include <optional>
#include <string_view>
#include <utility>

namespace leasehold::explore {
namespace {

constexpr std::size_t kFrameBytesMax = std::size_t{1} << 20U;

raft::Message carried(const raft::Message& message) {
  wire::PeerMessage outer;
  outer.group = raft::GroupId(1);
  outer.payload = message;
  wire::SendBuffer out;
  const Result<std::size_t> encoded = wire::encode_message(outer, kFrameBytesMax, out);
  LEASEHOLD_ASSERT(encoded.ok());
  // All payloads here are short, so the frame is one piece of copied bytes.
  std::string_view bytes;
  const std::size_t pieces = out.front(&bytes, 1);
  LEASEHOLD_ASSERT(pieces == 1 && bytes.size() == out.bytes());
  wire::FrameReader reader(kFrameBytesMax);
  reader.feed(bytes);
  const Result<std::optional<wire::Frame>> frame = reader.next();
  LEASEHOLD_ASSERT(frame.ok() && frame.value());
  Result<wire::PeerMessage> back = wire::decode_message(*frame.value());
  LEASEHOLD_ASSERT(back.ok());
  return std::move(std::get<raft::Message>(back.value().payload));
}

}  // namespace

Carrier through_codec() {
  return carried;
}

}  // namespace leasehold::explore
