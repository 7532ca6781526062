#include <leasehold/base/random.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/membership_change.h>

#include <gtest/gtest.h>

namespace leasehold::raft {
namespace {

Membership sample() {
  Membership membership;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    membership.members.push_back({NodeId(i), Uuid{i, 100 + i}, "host" + std::to_string(i) + ":1"});
  }
  membership.voters = {NodeId(2), NodeId(3)};
  membership.outgoing_voters = {NodeId(1), NodeId(2)};
  return membership;
}

TEST(MembershipTest, VotersOfEitherHalfVote) {
  const Membership m = sample();
  EXPECT_TRUE(m.joint());
  EXPECT_TRUE(m.is_voter(NodeId(1)));
  EXPECT_TRUE(m.is_voter(NodeId(3)));
  EXPECT_FALSE(m.is_voter(NodeId(4)));
  EXPECT_EQ(m.find(NodeId(4))->address, "host4:1");
  EXPECT_EQ(m.find(NodeId(5)), nullptr);
}

TEST(MembershipTest, DecodesWhatItEncoded) {
  const Result<Membership> decoded = decode_membership(encode_membership(sample()).view());
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded.value(), sample());
}

TEST(MembershipTest, BytesArePinned) {
  Membership m;
  m.members = {{NodeId(1), Uuid{0x0102030405060708U, 9}, "a:1"},
               {NodeId(0x1112131415161718U), Uuid{3, 4}, "bc:2"}};
  m.voters = {NodeId(1)};
  m.outgoing_voters = m.leaving = {NodeId(0x1112131415161718U)};
  std::string bytes("\1\2\0", 3);
  bytes += std::string("\1\0\0\0\0\0\0\0\10\7\6\5\4\3\2\1\x09\0\0\0\0\0\0\0\1\3\0a:1", 30);
  bytes += "\x18\x17\x16\x15\x14\x13\x12\x11";
  bytes += std::string("\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\6\4\0bc:2", 23);
  EXPECT_EQ(encode_membership(m).view(), bytes);
  EXPECT_EQ(decode_membership(bytes).value(), m);
}

TEST(MembershipTest, EveryTruncationIsRefused) {
  const Bytes bytes = encode_membership(sample());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_membership(bytes.view().substr(0, length)).ok()) << length;
  }
}

TEST(MembershipTest, NamesBothFormatsWhenItRefusesOne) {
  std::string bytes(encode_membership(sample()).view());
  bytes[0] = 9;
  const Result<Membership> decoded = decode_membership(bytes);
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, ErrorCode::unsupported_format);
  EXPECT_NE(decoded.error().message.find("format 9"), std::string::npos);
  EXPECT_NE(decoded.error().message.find("formats 1 to 3"), std::string::npos);
}

TEST(MembershipTest, OnlyOneWithAWitnessIsInFormatTwo) {
  Membership m = sample();
  EXPECT_EQ(encode_membership(m).view()[0], 1);
  m.witnesses = {NodeId(1), NodeId(3)};
  std::string bytes(encode_membership(m).view());
  EXPECT_EQ(bytes[0], 2);
  EXPECT_EQ(decode_membership(bytes).value(), m);
  EXPECT_TRUE(m.is_witness(NodeId(3)));
  EXPECT_FALSE(m.is_witness(NodeId(2)));
  // A build that reads only format 1 would mistake it for a full member.
  bytes[0] = 1;
  EXPECT_FALSE(decode_membership(bytes).ok());
  bytes = std::string(encode_membership(sample()).view());
  bytes[0] = 2;
  EXPECT_FALSE(decode_membership(bytes).ok());
}

TEST(MembershipTest, AtLeastOneVoterIsNotAWitness) {
  Membership m = sample();
  m.witnesses = {NodeId(2), NodeId(3)};
  EXPECT_FALSE(decode_membership(encode_membership(m).view()).ok());
  m.witnesses = {NodeId(1), NodeId(2), NodeId(4)};
  EXPECT_TRUE(decode_membership(encode_membership(m).view()).ok());
}

TEST(MembershipTest, RandomBytesNeverDecodeToABrokenMembership) {
  Random random(3);
  const Bytes bytes = encode_membership(sample());
  for (int i = 0; i < 50000; ++i) {
    std::string damaged(bytes.view());
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    const Result<Membership> decoded = decode_membership(damaged);
    if (!decoded.ok()) continue;
    const Membership& m = decoded.value();
    ASSERT_FALSE(m.voters.empty());
    ASSERT_EQ(decode_membership(encode_membership(m).view()).value(), m);
  }
}

// ---- Settings ----

Membership with_settings() {
  Membership m = sample();
  m.settings = GroupSettings{};
  m.settings->timing.lease = std::chrono::seconds(2);
  m.settings->lease_reads = false;
  return m;
}

TEST(MembershipSettings, AreReadBackAndCutShortNowhere) {
  const Bytes bytes = encode_membership(with_settings());
  EXPECT_EQ(bytes.view()[0], 3);
  EXPECT_EQ(decode_membership(bytes.view()).value(), with_settings());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_membership(bytes.view().substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(decode_membership(std::string(bytes.view()) + "x").ok());
}

// Pinned: they are on disk and on the wire.
TEST(MembershipSettings, HaveTheseBytes) {
  Membership m;
  m.members = {{NodeId(1), Uuid{2, 3}, "a"}};
  m.voters = {NodeId(1)};
  m.settings = GroupSettings{};
  std::string bytes(encode_membership(m).view());
  ASSERT_EQ(bytes.size(), 1U + 2 + 24 + 1 + 2 + 1 + 1 + 48 + 1);
  std::string tail = bytes.substr(31);
  EXPECT_EQ(tail, std::string("\1"
                              "\x00\xca\x9a\x3b\0\0\0\0"  // 1 s
                              "\x00\xe1\xf5\x05\0\0\0\0"  // 100 ms
                              "\xa0\x86\x01\0\0\0\0\0"    // 100,000 ppm
                              "\x80\xf0\xfa\x02\0\0\0\0"  // 50 ms
                              "\x80\x96\x98\0\0\0\0\0"    // 10 ms
                              "\x00\xa3\xe1\x11\0\0\0\0"  // 300 ms
                              "\1",
                              50));
}

TEST(MembershipSettings, AreRefusedWhenTheyBreakAnInequality) {
  const std::string good(encode_membership(with_settings()).view());
  const std::size_t at = good.size() - 50;
  std::string unsafe = good;
  unsafe.replace(at + 1, 8, std::string(8, '\0'));
  const auto decoded = decode_membership(unsafe);
  ASSERT_FALSE(decoded.ok());
  EXPECT_NE(decoded.error().message.find("lease"), std::string::npos);
  std::string flags = good;
  flags.back() = 2;
  EXPECT_FALSE(decode_membership(flags).ok());
  std::string format = good;
  format[at] = 2;
  EXPECT_EQ(decode_membership(format).error().code, ErrorCode::unsupported_format);
}

TEST(MembershipSettings, ChangeByThemselvesAndNeverVanish) {
  Membership plain;
  plain.members = {{NodeId(1), Uuid{1, 1}, "a"}, {NodeId(2), Uuid{2, 2}, "b"}};
  plain.voters = {NodeId(1)};
  Membership some = plain;
  some.settings = GroupSettings{};
  Membership others = some;
  others.settings->lease_reads = false;
  EXPECT_TRUE(may_follow(plain, some));
  EXPECT_TRUE(may_follow(some, others));
  EXPECT_FALSE(may_follow(some, plain));
  Membership both = others;
  both.members[1].address = "c";
  EXPECT_FALSE(may_follow(some, both));
  Membership joint = some;
  joint.outgoing_voters = {NodeId(1)};
  joint.voters = {NodeId(1), NodeId(2)};
  EXPECT_TRUE(may_follow(some, joint));
  Membership left = without_outgoing(joint);
  EXPECT_EQ(left.settings, some.settings);
  left.settings = others.settings;
  EXPECT_FALSE(may_follow(joint, left));
}

}  // namespace
}  // namespace leasehold::raft
