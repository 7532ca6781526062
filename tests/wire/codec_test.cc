#include <leasehold/wire/codec.h>

#include <leasehold/base/random.h>
#include <leasehold/tests/base/hex.h>
#include <leasehold/tests/wire/random_message.h>
#include <leasehold/wire/check.h>
#include <leasehold/wire/crc32c.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

namespace leasehold::wire {
namespace {

using leasehold::testing::hex;
using ::testing::HasSubstr;

constexpr std::size_t kLimit = 1U << 20U;

std::string bytes_of(const SendBuffer& buffer) {
  std::vector<std::string_view> views(10000);
  std::string all;
  const std::size_t count = buffer.front(views.data(), views.size());
  for (std::size_t i = 0; i < count; ++i) all += views[i];
  return all;
}

std::string encoded(const wire::PeerMessage& message, std::uint16_t version = kWireVersionMax) {
  SendBuffer out;
  const Result<std::size_t> size = encode_message(message, kLimit, out, version);
  EXPECT_TRUE(size.ok());
  EXPECT_EQ(size.value(), out.bytes());
  return bytes_of(out);
}

/// The first message of `stream`; an error if it is refused or incomplete.
Result<wire::PeerMessage> decoded(const std::string& stream) {
  FrameReader reader(kLimit);
  reader.feed(stream);
  const Result<std::optional<Frame>> frame = reader.next();
  if (!frame.ok()) return frame.error();
  if (!frame.value()) return Error{ErrorCode::malformed, "incomplete"};
  return decode_message(*frame.value());
}

/// A frame around any two parts, with the right checksums.
std::string sealed(std::string_view protobuf, std::string_view payload,
                   std::uint16_t version = kWireVersionMax) {
  FrameHeader header{version, FrameKind::message, static_cast<std::uint32_t>(protobuf.size()),
                     static_cast<std::uint32_t>(payload.size()), crc32c(payload, crc32c(protobuf))};
  std::string bytes;
  append_header(header, bytes);
  return bytes.append(protobuf).append(payload);
}

TEST(Codec, EveryKindRoundTrips) {
  Random random(11);
  for (std::uint64_t kind = 0; kind < kMessageKinds; ++kind) {
    for (int i = 0; i < 1000; ++i) {
      const wire::PeerMessage message = random_message(random, kind);
      const Result<wire::PeerMessage> back = decoded(encoded(message));
      ASSERT_TRUE(back.ok()) << back.error().message;
      ASSERT_EQ(back.value(), message) << "kind " << kind;
    }
  }
}

TEST(Codec, AnEarlierVersionHasNoBeats) {
  const auto spoken = [](std::uint16_t version, wire::Payload payload) {
    return speaks(version, {raft::GroupId(), std::move(payload)});
  };
  EXPECT_FALSE(spoken(kSettingsVersion - 1, raft::ProcessBeat{}));
  EXPECT_FALSE(spoken(kSettingsVersion - 1, raft::ProcessBeatReply{}));
  EXPECT_TRUE(spoken(kSettingsVersion, raft::ProcessBeat{}));
  EXPECT_TRUE(spoken(kSettingsVersion - 1, raft::Message(raft::AppendRequest{})));
}

TEST(Codec, AnEarlierVersionHasNoNumbersOfReplicas) {
  wire::PeerMessage message{raft::GroupId(7),
                            raft::Message(raft::PreVoteRequest{raft::Term(3), {}}), raft::NodeId(4),
                            raft::NodeId(5)};
  EXPECT_FALSE(speaks(kSettingsVersion - 1, message));
  ASSERT_TRUE(speaks(kSettingsVersion, message));
  const std::string frame = encoded(message);
  EXPECT_EQ(decoded(frame).value(), message);
  // The same bytes under the number of the version before.
  message.from = message.to = raft::kNobody;
  const std::string older = encoded(message, kSettingsVersion - 1);
  EXPECT_TRUE(decoded(older).ok());
  EXPECT_FALSE(decoded(sealed(frame.substr(kFrameHeaderBytes), "", kSettingsVersion - 1)).ok());
}

TEST(Codec, EveryTruncationIsIncomplete) {
  Random random(12);
  for (std::uint64_t kind = 0; kind < kMessageKinds; ++kind) {
    const std::string frame = encoded(random_message(random, kind));
    for (std::size_t size = 0; size < frame.size(); ++size) {
      const Result<wire::PeerMessage> back = decoded(frame.substr(0, size));
      ASSERT_FALSE(back.ok());
      ASSERT_EQ(back.error().message, "incomplete");
    }
  }
}

TEST(Codec, EverySingleBitFlipIsRefused) {
  Random random(13);
  for (std::uint64_t kind = 0; kind < kMessageKinds; ++kind) {
    const std::string frame = encoded(random_message(random, kind));
    for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
      std::string flipped = frame;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      // The bytes that follow must not complete it, whatever length the flipped bit gives.
      ASSERT_FALSE(decoded(flipped + frame).ok()) << "kind " << kind << " bit " << bit;
    }
  }
}

// The checksum does not protect against a hostile sender: change the protobuf part and set the
// right checksum.
TEST(Codec, WhateverIsDecodedSatisfiesTheInvariants) {
  Random random(14);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const wire::PeerMessage message = random_message(random);
    SendBuffer out;
    ASSERT_TRUE(encode_message(message, kLimit, out).ok());
    const std::string frame = bytes_of(out);
    const std::size_t payload = payload_bytes(message);
    std::string protobuf =
        frame.substr(kFrameHeaderBytes, frame.size() - kFrameHeaderBytes - payload);
    for (std::uint64_t changes = 1 + random.below(3); changes > 0 && !protobuf.empty(); --changes) {
      const std::size_t at = random.below(protobuf.size());
      switch (random.below(3)) {
        case 0: protobuf[at] = static_cast<char>(random.below(256)); break;
        case 1: protobuf.erase(at, 1); break;
        default: protobuf.insert(at, 1, static_cast<char>(random.below(256))); break;
      }
    }
    const Result<wire::PeerMessage> back =
        decoded(sealed(protobuf, frame.substr(frame.size() - payload)));
    if (!back.ok()) continue;
    ++accepted;
    ASSERT_TRUE(check_message(back.value()).ok());
    ASSERT_EQ(decoded(encoded(back.value())).value(), back.value());
  }
  EXPECT_GT(accepted, 1000);  // the test reaches what it is about
}

TEST(Codec, RandomProtobufPartsNeverPassUnchecked) {
  Random random(15);
  for (int i = 0; i < 100000; ++i) {
    std::string protobuf(random.below(64), '\0');
    for (char& c : protobuf) c = static_cast<char>(random.below(256));
    const Result<wire::PeerMessage> back = decoded(sealed(protobuf, ""));
    if (back.ok()) {
      ASSERT_TRUE(check_message(back.value()).ok());
    }
  }
}

TEST(Codec, PayloadsAreNeitherCopiedOutNorCopiedIn) {
  const Bytes command(std::string(100000, 'c'));
  const wire::PeerMessage message{
      raft::GroupId(), wire::ForwardRequest{raft::Term(1), raft::Incarnation(1), 1, command}};
  SendBuffer out;
  ASSERT_TRUE(encode_message(message, kLimit, out).ok());
  std::array<std::string_view, 4> views;
  ASSERT_EQ(out.front(views.data(), views.size()), 2U);
  EXPECT_EQ(views[1].data(), command.data());

  const std::string stream = bytes_of(out);
  const std::string first = stream.substr(0, 100);
  const std::string rest = stream.substr(100);
  FrameReader reader(kLimit);
  reader.feed(first);
  ASSERT_FALSE(reader.next().value().has_value());
  reader.feed(rest);
  const Result<std::optional<Frame>> frame = reader.next();
  ASSERT_TRUE(frame.ok() && frame.value());
  const Result<wire::PeerMessage> back = decode_message(*frame.value());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(std::get<wire::ForwardRequest>(back.value().payload).command.data(),
            frame.value()->payload.data());
}

TEST(Codec, AMessageAboveTheLimitIsNotEncoded) {
  const wire::PeerMessage message{
      raft::GroupId(),
      wire::ForwardRequest{raft::Term(1), raft::Incarnation(1), 1, Bytes(std::string(1000, 'c'))}};
  SendBuffer out;
  ASSERT_TRUE(encode_message(message, kLimit, out).ok());
  const std::size_t size = out.bytes();
  SendBuffer other;
  EXPECT_TRUE(encode_message(message, size, other).ok());
  other.clear();
  const Result<std::size_t> refused = encode_message(message, size - 1, other);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::overloaded);
  EXPECT_TRUE(other.empty());
  EXPECT_FALSE(encode_message(message, 900, other).ok());
  EXPECT_TRUE(other.empty());
}

TEST(Codec, UnknownFieldsAndKindsAreRefused) {
  const wire::PeerMessage message{raft::GroupId(),
                                  raft::Message(raft::VoteRequest{raft::Term(1), {}})};
  std::string protobuf = encoded(message).substr(kFrameHeaderBytes);
  ASSERT_TRUE(decoded(sealed(protobuf, "")).ok());

  const std::string extra_outside = protobuf + std::string("\xa0\x06\x01", 3);  // field 100
  EXPECT_THAT(decoded(sealed(extra_outside, "")).error().message, HasSubstr("does not name"));

  const std::string inside = std::string("\x08\x01\xa0\x06\x01", 5);  // term 1, field 100
  const std::string extra_inside = std::string("\x22\x05", 2) + inside;
  EXPECT_THAT(decoded(sealed(extra_inside, "")).error().message, HasSubstr("does not name"));

  const std::string unknown_kind = std::string("\x82\x01\x02\x08\x01", 5);  // field 16
  EXPECT_FALSE(decoded(sealed(unknown_kind, "")).ok());
  EXPECT_THAT(decoded(sealed("", "")).error().message, HasSubstr("no kind of message"));
}

TEST(Codec, PayloadPartsHaveToFit) {
  const wire::PeerMessage vote{raft::GroupId(),
                               raft::Message(raft::VoteRequest{raft::Term(1), {}})};
  const std::string vote_part = encoded(vote).substr(kFrameHeaderBytes);
  EXPECT_THAT(decoded(sealed(vote_part, "x")).error().message, HasSubstr("payload part"));

  raft::AppendRequest append;
  append.term = raft::Term(1);
  append.round = raft::Round(1);
  append.lease = std::chrono::seconds(1);
  append.entries = {raft::Entry{raft::LogId{raft::Term(1), raft::Index(1)},
                                raft::EntryKind::command, Bytes(std::string("ab"))}};
  const std::string frame = encoded(wire::PeerMessage{raft::GroupId(), raft::Message(append)});
  const std::string part = frame.substr(kFrameHeaderBytes, frame.size() - kFrameHeaderBytes - 2);
  EXPECT_TRUE(decoded(sealed(part, "ab")).ok());
  EXPECT_THAT(decoded(sealed(part, "a")).error().message, HasSubstr("do not add up"));
  EXPECT_THAT(decoded(sealed(part, "abc")).error().message, HasSubstr("do not add up"));
}

// Two nodes speak the newest version that both know.
TEST(Codec, ARoundCarriesItsDriftFromVersion4On) {
  raft::AppendRequest append;
  append.term = raft::Term(1);
  append.round = raft::Round(1);
  append.lease = std::chrono::seconds(1);
  append.drift_ppm = 100'000;
  const wire::PeerMessage message{raft::GroupId(), raft::Message(append)};
  const auto drift = [](const std::string& frame) {
    const auto read = decoded(frame).value();
    return std::get<raft::AppendRequest>(std::get<raft::Message>(read.payload)).drift_ppm;
  };
  EXPECT_EQ(drift(encoded(message)), 100'000);
  EXPECT_EQ(drift(encoded(message, 3)), 0);
  const std::string part = encoded(message).substr(kFrameHeaderBytes);
  EXPECT_THAT(decoded(sealed(part, "", 3)).error().message, HasSubstr("field"));
}

// Pinned: older builds send these bytes. A change needs a new wire version.
TEST(Codec, GoldenBytes) {
  using namespace std::chrono_literals;
  const auto golden = [](wire::Payload payload) {
    return hex(encoded(wire::PeerMessage{raft::GroupId(1), std::move(payload)}, 3));
  };
  const raft::LogId last{raft::Term(2), raft::Index(300)};
  raft::AppendRequest append;
  append.term = raft::Term(3);
  append.prev = last;
  append.commit = raft::Index(299);
  append.round = raft::Round(17);
  append.lease = 1s;
  append.drift_ppm = 100'000;  // version 3 has no field for it
  append.entries = {raft::Entry{{raft::Term(3), raft::Index(301)}, raft::EntryKind::empty, Bytes()},
                    raft::Entry{{raft::Term(3), raft::Index(302)},
                                raft::EntryKind::command,
                                Bytes(std::string("hello"))}};
  raft::AppendReply reply;
  reply.request_term = raft::Term(3);
  reply.term = raft::Term(3);
  reply.promised = true;
  reply.round = raft::Round(17);
  reply.index = raft::Index(250);
  reply.hint_term = raft::Term(2);
  reply.rejected_prev = raft::Index(300);
  const raft::Member member{raft::NodeId(1), raft::Uuid{0x1122, 0x3344}, "127.0.0.1:7101"};

  EXPECT_EQ(golden(raft::Message(raft::PreVoteRequest{raft::Term(3), last})),
            "4c485031030003000b00000000000000d718b01bb9563c25"
            "080112070803100218ac02");
  EXPECT_EQ(golden(raft::Message(raft::PreVoteReply{raft::Term(3), raft::Term(2), true, {}})),
            "4c485031030003000a00000000000000ad5c6eae5f251cd9"
            "08011a06080310021801");
  EXPECT_EQ(golden(raft::Message(raft::VoteRequest{raft::Term(3), last})),
            "4c485031030003000b00000000000000b6acac847c710520"
            "080122070803100218ac02");
  EXPECT_EQ(
      golden(raft::Message(raft::VoteReply{raft::Term(3), raft::Term(4), false, raft::NodeId(2)})),
      "4c485031030003000a0000000000000058e4a338735f4dea"
      "08012a06080310042002");
  EXPECT_EQ(golden(raft::Message(append)),
            "4c485031030003002200000005000000ece3c01307562150"
            "0801321e0803100218ac0220ab022811308094ebdc033a020303420201004a02000568656c6c6f");
  EXPECT_EQ(golden(raft::Message(reply)),
            "4c4850310300030014000000000000004e27cdd982a07334"
            "08013a10080310031801201130fa01380240ac02");
  EXPECT_EQ(golden(raft::Message(raft::ReadIndexRequest{raft::Incarnation(5), 77})),
            "4c4850310300030008000000000000006c2a909f4937476a"
            "080142040805104d");
  EXPECT_EQ(
      golden(raft::Message(raft::ReadIndexReply{raft::Incarnation(5), 77, raft::Index(299), {}})),
      "4c485031030003000b00000000000000289afc5052490c3d"
      "08014a070805104d18ab02");
  EXPECT_EQ(golden(wire::ForwardRequest{raft::Term(3), raft::Incarnation(5), 9,
                                        Bytes(std::string("put"))}),
            "4c485031030003000a000000030000002d0f567aa6f102c4"
            "08015206080310051809707574");
  EXPECT_EQ(golden(wire::ForwardReply{raft::Incarnation(5), 9, wire::ForwardRefusal::overloaded,
                                      raft::NodeId(3)}),
            "4c485031030003000c00000000000000d287388b51745556"
            "08015a080805100918012003");
  raft::SnapshotChunk chunk;
  chunk.term = raft::Term(3);
  chunk.round = raft::Round(17);
  chunk.lease = 1s;
  chunk.drift_ppm = 100'000;
  chunk.id = {last, 0x55};
  chunk.membership.members = {member};
  chunk.membership.voters = {member.id};
  chunk.size = 10;
  chunk.offset = 6;
  chunk.data = Bytes(std::string("tail"));
  EXPECT_EQ(golden(raft::Message(chunk)),
            "4c485031030003004e00000004000000f0ae024953e9b3bd"
            "08016a4a08031011188094ebdc03200228ac023155000000000000003a2c01010001000000000000"
            "0022110000000000004433000000000000010e003132372e302e302e313a37313031400a48067461"
            "696c");
  raft::SnapshotReply chunk_reply;
  chunk_reply.request_term = raft::Term(3);
  chunk_reply.term = raft::Term(3);
  chunk_reply.promised = true;
  chunk_reply.round = raft::Round(17);
  chunk_reply.id = {last, 0x55};
  chunk_reply.offset = 6;
  EXPECT_EQ(golden(raft::Message(chunk_reply)),
            "4c485031030003001c00000000000000d5892f8c7580fe2e"
            "080172180803100318012011280230ac023955000000000000004806");
  const raft::TransferToken token{raft::Term(3), raft::NodeId(2), raft::Index(300)};
  EXPECT_EQ(golden(raft::Message(raft::TimeoutNow{token})),
            "4c485031030003000d00000000000000f93d848a3d0ae0d3"
            "08017a090a070803100218ac02");
  const raft::LogId own{raft::Term(3), raft::Index(300)};
  EXPECT_EQ(golden(raft::Message(raft::VoteRequest{raft::Term(4), own, token})),
            "4c48503103000300140000000000000046332c5af09510d5"
            "080122100804100318ac0222070803100218ac02");
  EXPECT_EQ(golden(wire::FormationConfirm{{member}, true}),
            "4c485031030003002c00000000000000dded0c5679d662b8"
            "080162280a240801112211000000000000194433000000000000220e3132372e302e302e313a3731"
            "30311001");
}

}  // namespace
}  // namespace leasehold::wire
