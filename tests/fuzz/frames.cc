// Bytes of a peer. The first one chooses whether they are a stream as it comes, or the body of one
// frame with good checks around it. A message that is accepted is one that this node may send, and
// comes back the same.
#include <leasehold/base/assert.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/wire/check.h>
#include <leasehold/wire/codec.h>
#include <leasehold/wire/crc32c.h>
#include <leasehold/wire/hello.h>

#include <algorithm>
#include <string>
#include <vector>

namespace leasehold::fuzz {
namespace {

using namespace wire;

constexpr std::size_t kLimit = 1U << 20U;

std::string bytes_of(const SendBuffer& buffer) {
  // 64 KiB, which would cost more than all else that is done with a message.
  static std::vector<std::string_view> views(4096);
  std::string all;
  const std::size_t count = buffer.front(views.data(), views.size());
  for (std::size_t i = 0; i < count; ++i) all += views[i];
  return all;
}

void see(const Frame& frame);

/// Feeds `stream` in pieces of `piece` bytes, and looks at every frame until an error.
void read_stream(std::string_view stream, std::size_t piece) {
  FrameReader reader(kLimit);
  while (!stream.empty()) {
    const std::string chunk(stream.substr(0, piece));
    stream.remove_prefix(chunk.size());
    reader.feed(chunk);
    for (;;) {
      Result<std::optional<Frame>> frame = reader.next();
      if (!frame.ok()) return;
      if (!frame.value()) break;
      see(*frame.value());
    }
    LEASEHOLD_ASSERT(reader.held_bytes() <= kLimit);
  }
}

void see_message(const Frame& frame) {
  const Result<wire::PeerMessage> message = decode_message(frame);
  if (!message.ok()) {
    LEASEHOLD_ASSERT(message.error().code == ErrorCode::malformed);
    return;
  }
  LEASEHOLD_ASSERT(check_message(message.value()).ok());
  SendBuffer out;
  if (!encode_message(message.value(), kLimit, out).ok()) return;
  const std::string bytes = bytes_of(out);
  FrameReader reader(kLimit);
  reader.feed(bytes);
  const Result<std::optional<Frame>> again = reader.next();
  LEASEHOLD_ASSERT(again.ok() && again.value().has_value());
  const Result<wire::PeerMessage> back = decode_message(*again.value());
  LEASEHOLD_ASSERT(back.ok());
  LEASEHOLD_ASSERT(back.value() == message.value());
}

void see(const Frame& frame) {
  switch (frame.header.kind) {
    case FrameKind::message: return see_message(frame);
    case FrameKind::hello: {
      const Result<Hello> hello = decode_hello(frame);
      LEASEHOLD_ASSERT(!hello.ok() || hello.value().incarnation.value() > 0);
      return;
    }
    case FrameKind::refusal: {
      const Result<Refusal> refusal = decode_refusal(frame);
      LEASEHOLD_ASSERT(!refusal.ok() || refusal.value().reason.size() <= kReasonBytesMax);
      return;
    }
  }
}

/// A frame of `kind` around `protobuf` and `payload`, with the checksums that make it whole.
std::string sealed(FrameKind kind, std::string_view protobuf, std::string_view payload) {
  FrameHeader header;
  header.version = kind == FrameKind::message ? kWireVersionMax : kHandshakeVersion;
  header.kind = kind;
  header.protobuf_bytes = static_cast<std::uint32_t>(protobuf.size());
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.body_crc = crc32c(payload, crc32c(protobuf));
  std::string bytes;
  append_header(header, bytes);
  return bytes.append(protobuf).append(payload);
}

}  // namespace

void take(std::string_view input) {
  if (input.size() < 2) return;
  const auto way = static_cast<unsigned char>(input[0]);
  const auto number = static_cast<unsigned char>(input[1]);
  input.remove_prefix(2);
  switch (way % 4) {
    case 0: return read_stream(input, std::size_t{1} + number);
    case 1: {
      const std::size_t payload = std::min<std::size_t>(number, input.size());
      const std::size_t protobuf = input.size() - payload;
      return read_stream(
          sealed(FrameKind::message, input.substr(0, protobuf), input.substr(protobuf)), 70);
    }
    case 2: return read_stream(sealed(FrameKind::hello, input, ""), kLimit);
    default: return read_stream(sealed(FrameKind::refusal, input, ""), kLimit);
  }
}

}  // namespace leasehold::fuzz
