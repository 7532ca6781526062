#include <leasehold/net/handshake.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leasehold::net {
namespace {

using raft::NodeId;
using ::testing::HasSubstr;
using wire::RefusalCode;

wire::Hello hello(std::uint64_t from, std::uint64_t to) {
  wire::Hello hello;
  hello.cluster_id = 7;
  hello.from = NodeId(from);
  hello.to = NodeId(to);
  hello.uuid = raft::Uuid{from, from};
  hello.incarnation = raft::Incarnation(5);
  hello.process = from;
  return hello;
}

TEST(ClusterId, DependsOnNameAndPeersButNotOnTheirOrder) {
  const PeerAddress one{NodeId(1), "a:1"};
  const PeerAddress two{NodeId(2), "b:2"};
  EXPECT_EQ(cluster_id("x", {one, two}), cluster_id("x", {two, one}));
  EXPECT_NE(cluster_id("x", {one, two}), cluster_id("y", {one, two}));
  EXPECT_NE(cluster_id("x", {one, two}), cluster_id("x", {one}));
  EXPECT_NE(cluster_id("x", {one}), cluster_id("x", {PeerAddress{NodeId(1), "a:2"}}));
  EXPECT_NE(cluster_id("x", {one}), cluster_id("x", {PeerAddress{NodeId(2), "a:1"}}));
}

// Pinned: it stands in every data directory. The value is FNV-1a of
// "leasehold-cluster-1\n7:default\n1=3:a:1\n".
TEST(ClusterId, Golden) {
  EXPECT_EQ(cluster_id("default", {PeerAddress{NodeId(1), "a:1"}}), 0xdfc7be45ec049ddaU);
}

// A group that was restored from a backup is not the cluster of the backup, nor one that was
// restored from another backup.
TEST(ClusterId, DependsOnTheBackupThatTheGroupWasRestoredFrom) {
  const std::vector<PeerAddress> peers = {PeerAddress{NodeId(1), "a:1"}};
  EXPECT_EQ(cluster_id("default", peers, 0), cluster_id("default", peers));
  // Of "leasehold-cluster-1\n7:default\n1=3:a:1\ngeneration 2:17\n".
  EXPECT_EQ(cluster_id("default", peers, 17), 0xa137b987ad762532U);
  EXPECT_NE(cluster_id("default", peers, 17), cluster_id("default", peers, 18));
}

TEST(Address, ParsesHostsAndPorts) {
  EXPECT_EQ(parse_address("127.0.0.1:7101").value(), (HostPort{"127.0.0.1", 7101}));
  EXPECT_EQ(parse_address("node-1.example:0").value(), (HostPort{"node-1.example", 0}));
  EXPECT_EQ(parse_address("[::1]:65535").value(), (HostPort{"::1", 65535}));
  for (const char* bad : {"", ":", "host", "host:", ":1", "host:65536", "host:-1", "host:1x",
                          "::1:5", "[]:1", "host:000001", "a b:1", "a\n:1", "\xff:1"}) {
    const Result<HostPort> parsed = parse_address(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(parsed.error().message, HasSubstr("write host:port"));
  }
}

TEST(JudgeHello, TwoThatMeantEachOtherMayTalk) {
  EXPECT_FALSE(judge_hello(hello(1, 2), hello(2, 1)));
  EXPECT_FALSE(judge_hello(hello(1, 0), hello(2, 1)));  // accepted
}

TEST(JudgeHello, DisjointVersionsAreRefusedWithBothRanges) {
  wire::Hello theirs = hello(2, 1);
  theirs.versions = wire::VersionRange{5, 9};
  const auto refusal = judge_hello(hello(1, 2), theirs);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, RefusalCode::version);
  EXPECT_THAT(refusal->reason, HasSubstr("3 to 4"));
  EXPECT_THAT(refusal->reason, HasSubstr("5 to 9"));
  theirs.versions = wire::VersionRange{1, 9};
  EXPECT_FALSE(judge_hello(hello(1, 2), theirs));
}

TEST(JudgeHello, Refusals) {
  wire::Hello other_cluster = hello(2, 1);
  other_cluster.cluster_id = 8;
  EXPECT_EQ(judge_hello(hello(1, 0), other_cluster)->code, RefusalCode::wrong_cluster);
  EXPECT_EQ(judge_hello(hello(1, 0), hello(2, 3))->code, RefusalCode::wrong_target);
  EXPECT_EQ(judge_hello(hello(1, 2), hello(3, 1))->code, RefusalCode::wrong_target);

  const auto itself = judge_hello(hello(1, 2), hello(1, 2));
  EXPECT_EQ(itself->code, RefusalCode::same_id);
  EXPECT_THAT(itself->reason, HasSubstr("reached itself"));
  wire::Hello double_id = hello(1, 1);
  double_id.uuid = raft::Uuid{9, 9};
  const auto taken = judge_hello(hello(1, 0), double_id);
  EXPECT_EQ(taken->code, RefusalCode::same_id);
  EXPECT_THAT(taken->reason, HasSubstr("give each node its own id"));
}

TEST(PeerHistory, ANewerStartReplacesAnOlderOneForGood) {
  PeerHistory history;
  wire::Hello peer = hello(2, 1);
  EXPECT_FALSE(history.judge(peer, false));
  history.let_in(peer);
  EXPECT_FALSE(history.judge(peer, true));  // the same process dials again
  peer.incarnation = raft::Incarnation(6);
  peer.process = 77;
  EXPECT_FALSE(history.judge(peer, true));
  history.let_in(peer);
  EXPECT_EQ(history.judge(hello(2, 1), false)->code, RefusalCode::older_incarnation);
}

TEST(PeerHistory, TwoProcessesOfOneStartAreNotBothAccepted) {
  PeerHistory history;
  history.let_in(hello(2, 1));
  wire::Hello copy = hello(2, 1);
  copy.process = 77;
  EXPECT_EQ(history.judge(copy, false)->code, RefusalCode::duplicate_process);
}

TEST(PeerHistory, AnotherDirectoryHasToWaitUntilTheFirstIsGone) {
  PeerHistory history;
  history.let_in(hello(2, 1));
  wire::Hello wiped = hello(2, 1);
  wiped.uuid = raft::Uuid{9, 9};
  wiped.incarnation = raft::Incarnation(1);
  EXPECT_EQ(history.judge(wiped, true)->code, RefusalCode::duplicate_process);
  EXPECT_FALSE(history.judge(wiped, false));
}

TEST(Uuid, Text) {
  EXPECT_EQ(uuid_text(raft::Uuid{0x0123456789abcdefU, 0xfU}), "0123456789abcdef000000000000000f");
}

}  // namespace
}  // namespace leasehold::net
