#include <leasehold/base/random.h>
#include <leasehold/replica/command_envelope.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace leasehold::replica {
namespace {

CommandEnvelope example(std::string_view command) {
  return {raft::NodeId(3), raft::Incarnation(0x0102030405060708U), 5, Bytes(command)};
}

TEST(CommandEnvelope, ComesBackAsItWas) {
  for (const std::string& command : {std::string(), std::string("x"), std::string(5000, '\0')}) {
    const Bytes payload = encode_envelope(example(command));
    const auto decoded = decode_envelope(payload);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(decoded.value().origin, raft::NodeId(3));
    EXPECT_EQ(decoded.value().incarnation, raft::Incarnation(0x0102030405060708U));
    EXPECT_EQ(decoded.value().sequence, 5U);
    EXPECT_EQ(decoded.value().command.view(), command);
  }
}

TEST(CommandEnvelope, BytesArePinned) {
  const std::string expected(
      "\x01"
      "\x03\0\0\0\0\0\0\0"
      "\x08\x07\x06\x05\x04\x03\x02\x01"
      "\x05\0\0\0\0\0\0\0"
      "put",
      28);
  EXPECT_EQ(encode_envelope(example("put")).view(), expected);
}

TEST(CommandEnvelope, SharesTheAllocationOfThePayload) {
  const Bytes payload = encode_envelope(example("put"));
  const auto decoded = decode_envelope(payload);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded.value().command.data(), payload.data() + 25);
}

TEST(CommandEnvelope, TruncatedIsMalformed) {
  const Bytes payload = encode_envelope(example("put"));
  for (std::size_t size = 0; size < 25; ++size) {
    const auto decoded = decode_envelope(payload.slice(0, size));
    ASSERT_FALSE(decoded.ok()) << size;
    EXPECT_EQ(decoded.error().code, ErrorCode::malformed);
  }
}

TEST(CommandEnvelope, NewerFormatNamesBothNumbers) {
  std::string bytes(encode_envelope(example("put")).view());
  bytes[0] = 9;
  const auto decoded = decode_envelope(Bytes(bytes));
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, ErrorCode::unsupported_format);
  EXPECT_NE(decoded.error().message.find("format 9"), std::string::npos);
  EXPECT_NE(decoded.error().message.find("format 1"), std::string::npos);
}

TEST(CommandEnvelope, OriginNobodyIsMalformed) {
  CommandEnvelope envelope = example("put");
  envelope.origin = raft::kNobody;
  const auto decoded = decode_envelope(encode_envelope(envelope));
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, ErrorCode::malformed);
}

TEST(CommandEnvelope, RandomBytesAreRefusedOrDecodeToThemselves) {
  Random random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random.below(60), '\0');
    for (char& c : bytes) c = static_cast<char>(random.below(4));
    const auto decoded = decode_envelope(Bytes(bytes));
    if (decoded.ok()) {
      EXPECT_EQ(encode_envelope(decoded.value()).view(), bytes);
    }
  }
}

}  // namespace
}  // namespace leasehold::replica
