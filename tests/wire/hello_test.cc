#include <leasehold/wire/hello.h>

#include <leasehold/base/random.h>
#include <leasehold/wire/crc32c.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

namespace leasehold::wire {
namespace {

std::string bytes_of(const SendBuffer& buffer) {
  std::array<std::string_view, 8> views;
  std::string all;
  const std::size_t count = buffer.front(views.data(), views.size());
  for (std::size_t i = 0; i < count; ++i) all += views[i];
  return all;
}

Hello good_hello() {
  Hello hello;
  hello.versions = VersionRange{1, 4};
  hello.cluster_id = 0x1122334455667788U;
  hello.from = raft::NodeId(1);
  hello.to = raft::NodeId(2);
  hello.uuid = raft::Uuid{3, 4};
  hello.incarnation = raft::Incarnation(5);
  hello.process = 6;
  return hello;
}

Result<Hello> through_the_wire(const Hello& hello) {
  SendBuffer out;
  encode_hello(hello, out);
  const std::string stream = bytes_of(out);
  FrameReader reader(kHandshakeFrameBytesMax);
  reader.feed(stream);
  const Result<std::optional<Frame>> frame = reader.next();
  EXPECT_TRUE(frame.ok() && frame.value());
  EXPECT_EQ(frame.value()->header.version, kHandshakeVersion);
  EXPECT_EQ(frame.value()->header.kind, FrameKind::hello);
  return decode_hello(*frame.value());
}

Result<Refusal> through_the_wire(const Refusal& refusal) {
  SendBuffer out;
  encode_refusal(refusal, out);
  const std::string stream = bytes_of(out);
  FrameReader reader(kHandshakeFrameBytesMax);
  reader.feed(stream);
  const Result<std::optional<Frame>> frame = reader.next();
  EXPECT_TRUE(frame.ok() && frame.value());
  EXPECT_EQ(frame.value()->header.kind, FrameKind::refusal);
  return decode_refusal(*frame.value());
}

Frame hello_frame(std::string_view protobuf) {
  Frame frame;
  frame.header.kind = FrameKind::hello;
  frame.protobuf = protobuf;
  return frame;
}

TEST(Hello, RoundTrip) {
  const Result<Hello> back = through_the_wire(good_hello());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value(), good_hello());
}

TEST(Hello, SaysWhatTheConnectionIsFor) {
  EXPECT_EQ(through_the_wire(good_hello()).value().purpose, Purpose::messages);
  Hello hello = good_hello();
  hello.purpose = Purpose::snapshots;
  EXPECT_EQ(through_the_wire(hello).value(), hello);
  hello.purpose = static_cast<Purpose>(3);
  const Result<Hello> unknown = through_the_wire(hello);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::malformed);
}

TEST(Hello, EveryZeroIsRefused) {
  const auto refused = [](const std::function<void(Hello&)>& change) {
    Hello hello = good_hello();
    change(hello);
    return !through_the_wire(hello).ok();
  };
  EXPECT_TRUE(refused([](Hello& h) { h.versions = VersionRange{0, 1}; }));
  EXPECT_TRUE(refused([](Hello& h) { h.versions = VersionRange{3, 2}; }));
  EXPECT_TRUE(refused([](Hello& h) { h.cluster_id = 0; }));
  EXPECT_TRUE(refused([](Hello& h) { h.from = raft::NodeId(); }));
  EXPECT_TRUE(refused([](Hello& h) { h.to = raft::NodeId(); }));
  EXPECT_TRUE(refused([](Hello& h) { h.uuid = raft::Uuid{}; }));
  EXPECT_TRUE(refused([](Hello& h) { h.incarnation = raft::Incarnation(); }));
  EXPECT_TRUE(refused([](Hello& h) { h.incarnation = raft::Incarnation(~std::uint64_t{0}); }));
  EXPECT_FALSE(refused([](Hello& h) { h.process = 0; }));
}

// A new node knows only its number; the node that answers it says more.
TEST(Hello, AnIntroductionMayLackWhatIsNotKnown) {
  Hello hello = good_hello();
  hello.purpose = Purpose::introduction;
  hello.cluster_id = 0;
  hello.to = raft::NodeId();
  hello.uuid = raft::Uuid{};
  hello.incarnation = raft::Incarnation();
  hello.cluster = "shop";
  hello.address = "10.0.0.4:7101";
  hello.membership = {raft::Term(3), raft::Index(70)};
  EXPECT_EQ(through_the_wire(hello).value(), hello);
  hello.from = raft::NodeId();
  EXPECT_FALSE(through_the_wire(hello).ok());
}

TEST(Hello, AnAddressIsBoundedAndPrintable) {
  Hello hello = good_hello();
  hello.address = std::string(kHelloAddressBytesMax, 'a');
  EXPECT_TRUE(through_the_wire(hello).ok());
  hello.address += 'a';
  EXPECT_FALSE(through_the_wire(hello).ok());
  hello.address = "a\nb:1";
  EXPECT_FALSE(through_the_wire(hello).ok());
  hello.address.clear();
  hello.cluster = std::string(kClusterNameBytesMax + 1, 'a');
  EXPECT_FALSE(through_the_wire(hello).ok());
  hello.cluster.clear();
  hello.membership.index = raft::Index(~std::uint64_t{0});
  EXPECT_FALSE(through_the_wire(hello).ok());
}

// A later build may say more; this one reads what it knows.
TEST(Hello, SaysWhatIsNeededToKnowOfItsEnd) {
  Hello hello = good_hello();
  EXPECT_EQ(peer_of(hello).process, raft::Process{});  // without a place nothing compares
  hello.place = 7;
  hello.end_commitment = std::string(kCommitmentBytes, 'h');
  const Result<Hello> received = through_the_wire(hello);
  ASSERT_TRUE(received.ok()) << received.error().message;
  EXPECT_EQ(received.value(), hello);
  EXPECT_EQ(peer_of(hello).process, (raft::Process{hello.incarnation, 7}));
  for (const std::size_t bytes : {std::size_t{1}, kCommitmentBytes - 1, kCommitmentBytes + 1}) {
    hello.end_commitment = std::string(bytes, 'h');
    EXPECT_FALSE(through_the_wire(hello).ok()) << bytes;
  }
}

TEST(Hello, UnknownFieldsAreIgnored) {
  SendBuffer out;
  encode_hello(good_hello(), out);
  std::string protobuf = bytes_of(out).substr(kFrameHeaderBytes);
  protobuf += std::string("\xa0\x06\x01", 3);
  const Result<Hello> back = decode_hello(hello_frame(protobuf));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value(), good_hello());
}

TEST(Hello, RandomBytesNeverPassUnchecked) {
  Random random(21);
  for (int i = 0; i < 50000; ++i) {
    std::string protobuf(random.below(80), '\0');
    for (char& c : protobuf) c = static_cast<char>(random.below(256));
    const Result<Hello> hello = decode_hello(hello_frame(protobuf));
    if (hello.ok()) {
      EXPECT_NE(hello.value().from, raft::kNobody);
    }
  }
}

TEST(Refusal, RoundTrip) {
  const Refusal refusal{RefusalCode::removed, "no member since entry 70", VersionRange{1, 2},
                        raft::LogId{raft::Term(3), raft::Index(70)}};
  const Result<Refusal> back = through_the_wire(refusal);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value(), refusal);
}

// The reason ends up in logs and on terminals.
TEST(Refusal, ReasonsAreCutAndMadePrintable) {
  Refusal refusal{RefusalCode::version, "a\n\x1b[31mb\xff", VersionRange{}};
  EXPECT_EQ(through_the_wire(refusal).value().reason, "a??[31mb?");
  refusal.reason = std::string(100000, 'x');
  EXPECT_EQ(through_the_wire(refusal).value().reason, std::string(kReasonBytesMax, 'x'));
}

TEST(Refusal, AnUnknownCodeCountsAsRefusedByTheNode) {
  const Refusal refusal{static_cast<RefusalCode>(77), "new", VersionRange{}};
  EXPECT_EQ(through_the_wire(refusal).value().code, RefusalCode::refused_by_node);
}

}  // namespace
}  // namespace leasehold::wire
