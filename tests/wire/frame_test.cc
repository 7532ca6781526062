#include <leasehold/wire/frame.h>

#include <leasehold/base/random.h>
#include <leasehold/wire/crc32c.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace leasehold::wire {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kLimit = 1U << 20U;

std::string frame_of(std::string_view protobuf, std::string_view payload) {
  FrameHeader header;
  header.version = kWireVersionMax;
  header.kind = FrameKind::message;
  header.protobuf_bytes = static_cast<std::uint32_t>(protobuf.size());
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.body_crc = crc32c(payload, crc32c(protobuf));
  std::string bytes;
  append_header(header, bytes);
  return bytes.append(protobuf).append(payload);
}

/// The header of `frame` with a right checksum after a change.
std::string resealed(std::string frame) {
  const std::uint32_t crc = crc32c(std::string_view(frame).substr(0, 20));
  for (unsigned i = 0; i < 4; ++i) frame[20 + i] = static_cast<char>(crc >> (8 * i));
  return frame;
}

Error refusal_of(const std::string& stream, std::size_t limit = kLimit) {
  FrameReader reader(limit);
  reader.feed(stream);
  const Result<std::optional<Frame>> frame = reader.next();
  EXPECT_FALSE(frame.ok());
  return frame.ok() ? Error{ErrorCode::stopped, ""} : frame.error();
}

TEST(FrameHeader, RoundTrip) {
  const FrameHeader header{kWireVersionMax, FrameKind::message, 0x01020304, 0x05060708, 0x090a0b0c};
  std::string bytes;
  append_header(header, bytes);
  ASSERT_EQ(bytes.size(), kFrameHeaderBytes);
  const Result<FrameHeader> read = decode_header(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), header);
}

TEST(FrameHeader, BytesArePinned) {
  const FrameHeader header{0x0003, FrameKind::message, 0x01020304, 0x05060708, 0x090a0b0c};
  std::string bytes = "<";
  append_header(header, bytes);
  const std::string_view pinned("<LHP1\3\0\3\0\4\3\2\1\10\7\6\5\x0c\x0b\x0a\x09\x95\xba\xc9\xe6",
                                25);
  EXPECT_EQ(bytes, pinned);
}

TEST(FrameHeader, AnotherProtocolIsReported) {
  const Error error = refusal_of("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(error.code, ErrorCode::malformed);
  EXPECT_THAT(error.message, HasSubstr("something else talking"));
}

TEST(FrameHeader, ANewerVersionIsRefusedWithBothNumbers) {
  std::string frame = frame_of("abc", "");
  frame[4] = 9;
  const Error error = refusal_of(resealed(frame));
  EXPECT_EQ(error.code, ErrorCode::unsupported_format);
  EXPECT_THAT(error.message, HasSubstr("version 9"));
  EXPECT_THAT(error.message, HasSubstr("speaks 3 to 4"));
}

TEST(FrameHeader, AVersionThatIsNotSpokenAnyMoreIsRefused) {
  std::string frame = frame_of("abc", "");
  frame[4] = 1;
  EXPECT_EQ(refusal_of(resealed(frame)).code, ErrorCode::unsupported_format);
}

TEST(FrameHeader, KindsBelongToTheirVersion) {
  std::string hello_in_version_one = frame_of("abc", "");
  hello_in_version_one[6] = 1;
  EXPECT_EQ(refusal_of(resealed(hello_in_version_one)).code, ErrorCode::malformed);
  std::string message_in_handshake = frame_of("abc", "");
  message_in_handshake[4] = 0;
  EXPECT_EQ(refusal_of(resealed(message_in_handshake)).code, ErrorCode::malformed);
  std::string reserved = frame_of("abc", "");
  reserved[7] = 1;
  EXPECT_EQ(refusal_of(resealed(reserved)).code, ErrorCode::malformed);
}

TEST(FrameReader, OversizedIsRefusedByItsHeaderAlone) {
  const std::string frame = frame_of("abc", std::string(1000, 'x'));
  const Error error = refusal_of(frame.substr(0, kFrameHeaderBytes), frame.size() - 1);
  EXPECT_EQ(error.code, ErrorCode::overloaded);
  EXPECT_THAT(error.message, HasSubstr("1027 bytes is above the limit of 1026"));
}

TEST(FrameReader, HugeLengthsDoNotOverflow) {
  FrameHeader header{kWireVersionMax, FrameKind::message, 0xffffffff, 0xffffffff, 0};
  std::string bytes;
  append_header(header, bytes);
  EXPECT_EQ(refusal_of(bytes).code, ErrorCode::overloaded);
}

TEST(FrameReader, EveryWayToCutAStreamGivesTheSameFrames) {
  const std::vector<std::string> bodies = {"", "a", std::string(5000, 'b'), "", "last"};
  std::string stream;
  for (const std::string& body : bodies) stream += frame_of(body, body + "!");
  Random random(2);
  for (int run = 0; run < 300; ++run) {
    FrameReader reader(kLimit);
    std::vector<std::string> seen;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t most = random.chance(1, 2) ? 30 : 6000;
      const std::size_t take = std::min<std::size_t>(1 + random.below(most), stream.size() - at);
      const std::string chunk = stream.substr(at, take);
      at += take;
      reader.feed(chunk);
      for (;;) {
        Result<std::optional<Frame>> frame = reader.next();
        ASSERT_TRUE(frame.ok()) << frame.error().message;
        if (!frame.value()) break;
        EXPECT_EQ(frame.value()->payload.view(), std::string(frame.value()->protobuf) + "!");
        seen.emplace_back(frame.value()->protobuf);
      }
    }
    EXPECT_EQ(seen, bodies);
    EXPECT_EQ(reader.held_bytes(), 0U);
  }
}

TEST(FrameReader, EveryTruncationWaitsAndNothingElse) {
  const std::string frame = frame_of("protobuf", "payload");
  for (std::size_t size = 0; size < frame.size(); ++size) {
    FrameReader reader(kLimit);
    const std::string part = frame.substr(0, size);
    reader.feed(part);
    const Result<std::optional<Frame>> next = reader.next();
    ASSERT_TRUE(next.ok());
    EXPECT_FALSE(next.value().has_value());
    EXPECT_EQ(reader.held_bytes(), size);
  }
}

TEST(FrameReader, ALargePayloadSharesTheOneReceivedBuffer) {
  const std::string frame = frame_of("proto", std::string(100000, 'x'));
  FrameReader reader(kLimit);
  const std::string first = frame.substr(0, 50);
  const std::string rest = frame.substr(50);
  reader.feed(first);
  ASSERT_FALSE(reader.next().value().has_value());
  reader.feed(rest);
  const Result<std::optional<Frame>> next = reader.next();
  ASSERT_TRUE(next.ok() && next.value().has_value());
  EXPECT_EQ(next.value()->payload.data(), next.value()->protobuf.data() + 5);
}

TEST(FrameReader, DoesNotKeepTheLastLargeFrame) {
  const std::string frame = frame_of("", std::string(100000, 'x'));
  FrameReader reader(kLimit);
  const std::string first = frame.substr(0, 50);
  const std::string rest = frame.substr(50);
  reader.feed(first);
  ASSERT_FALSE(reader.next().value().has_value());
  reader.feed(rest);
  ASSERT_TRUE(reader.next().value().has_value());
  ASSERT_FALSE(reader.next().value().has_value());
  EXPECT_EQ(reader.held_bytes(), 0U);
}

std::string gathered(const SendBuffer& buffer) {
  std::array<std::string_view, 1000> views;
  std::string all;
  const std::size_t count = buffer.front(views.data(), views.size());
  for (std::size_t i = 0; i < count; ++i) all += views[i];
  return all;
}

TEST(SendBuffer, GivesBackWhatWentInHoweverItIsConsumed) {
  Random random(3);
  for (int run = 0; run < 200; ++run) {
    SendBuffer buffer;
    std::string expected;
    for (int step = 0; step < 60; ++step) {
      const std::size_t size = random.below(random.chance(1, 8) ? 70000 : 3000);
      const std::string bytes(size, static_cast<char>('a' + step % 26));
      switch (random.below(3)) {
        case 0:
          buffer.tail().append(bytes);
          buffer.grow(bytes.size());
          expected += bytes;
          break;
        case 1:
          buffer.append(Bytes(bytes));
          expected += bytes;
          break;
        default: {
          const std::size_t drop = random.below(expected.size() + 1);
          buffer.consume(drop);
          expected.erase(0, drop);
          break;
        }
      }
      ASSERT_EQ(buffer.bytes(), expected.size());
      ASSERT_EQ(gathered(buffer), expected);
    }
  }
}

TEST(SendBuffer, LargePayloadsAreNotCopied) {
  const Bytes payload(std::string(SendBuffer::kCopyBytesMax + 1, 'x'));
  SendBuffer buffer;
  buffer.append(payload);
  std::string_view view;
  ASSERT_EQ(buffer.front(&view, 1), 1U);
  EXPECT_EQ(view.data(), payload.data());
}

}  // namespace
}  // namespace leasehold::wire
