// Nodes that do not know each other yet, and nodes that were removed.
#include <leasehold/net/tcp_introduction.h>

#include <leasehold/tests/net/tcp_rig.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace leasehold::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr raft::LogId kRemovedAt{raft::Term(3), raft::Index(70)};

std::string address_of(const TestNode& node) {
  return "127.0.0.1:" + std::to_string(node.transport->port());
}

TestNode& start_of(TcpRig& rig, std::uint64_t id, const std::string& cluster = "shop") {
  TcpOptions options = TcpRig::options(id);
  options.cluster = cluster;
  TestNode& node = rig.start(options);
  node.transport->describe(address_of(node), {});
  return node;
}

/// A node that is started for the first time, and asks.
wire::Hello newcomer(std::uint64_t id) {
  wire::Hello hello;
  hello.from = raft::NodeId(id);
  hello.purpose = wire::Purpose::introduction;
  hello.cluster = "shop";
  return hello;
}

Result<wire::Hello> ask(TcpRig& rig, const std::string& address, const wire::Hello& hello) {
  std::optional<Result<wire::Hello>> answer;
  Introduction introduction{address, hello};
  introduce(rig.io, introduction, [&](Result<wire::Hello> got) { answer.emplace(std::move(got)); });
  EXPECT_FALSE(answer.has_value());
  EXPECT_TRUE(rig.run_until([&] { return answer.has_value(); }));
  return *answer;
}

TEST(Introduction, ANewNodeLearnsTheClusterIdFromAMemberOfItsCluster) {
  TcpRig rig;
  TestNode& one = start_of(rig, 1);
  const auto answer = ask(rig, address_of(one), newcomer(4));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer.value().cluster_id, kTestCluster);
  EXPECT_EQ(answer.value().from, raft::NodeId(1));
  EXPECT_EQ(answer.value().to, raft::NodeId(4));
  EXPECT_EQ(answer.value().cluster, "shop");
  EXPECT_THAT(one.transport->peers(), IsEmpty());
}

TEST(Introduction, AnotherNameIsRefused) {
  TcpRig rig;
  TestNode& one = start_of(rig, 1, "bank");
  const auto answer = ask(rig, address_of(one), newcomer(4));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::wrong_cluster);
  EXPECT_THAT(answer.error().message, HasSubstr("node 1 is of cluster 'bank'"));
  EXPECT_EQ(one.rejected(RejectReason::wrong_cluster), 1U);
}

TEST(Introduction, ATakenIdIsRefused) {
  TcpRig rig;
  TestNode& one = start_of(rig, 1);
  const auto answer = ask(rig, address_of(one), newcomer(1));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::in_use);
}

TEST(Introduction, TheNodeMayRefuse) {
  TcpRig rig;
  TestNode& one = start_of(rig, 1);
  one.introduction = [](const wire::Hello&) {
    return wire::Refusal{wire::RefusalCode::refused_by_node, "not now", wire::VersionRange{}};
  };
  const auto answer = ask(rig, address_of(one), newcomer(4));
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, HasSubstr("not now"));
}

TEST(Introduction, ANodeThatDoesNotAnswerIsUnavailable) {
  TcpRig rig;
  const auto answer = ask(rig, "127.0.0.1:1", newcomer(4));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_EQ(ask(rig, "nonsense", newcomer(4)).error().code, ErrorCode::invalid_argument);
}

// How the leader learns the uuid of a node that is to be added.
TEST(Introduction, ATransportAsksWhichNodeAnswersAtAnAddress) {
  TcpRig rig;
  TestNode& one = start_of(rig, 1);
  TestNode& four = start_of(rig, 4);
  std::optional<Result<wire::Hello>> answer;
  one.transport->introduce({raft::NodeId(4), address_of(four)},
                           [&](Result<wire::Hello> got) { answer.emplace(std::move(got)); });
  ASSERT_TRUE(rig.run_until([&] { return answer.has_value(); }));
  ASSERT_TRUE(answer->ok()) << answer->error().message;
  EXPECT_EQ(answer->value().uuid, four.options.uuid);
  answer.reset();
  one.transport->introduce({raft::NodeId(5), address_of(four)},
                           [&](Result<wire::Hello> got) { answer.emplace(std::move(got)); });
  ASSERT_TRUE(rig.run_until([&] { return answer.has_value(); }));
  ASSERT_FALSE(answer->ok());
  EXPECT_THAT(answer->error().message, HasSubstr("this is node 4, not node 5"));
}

TEST(Strangers, OneThatIsLetInIsDialledBackAtTheAddressItGives) {
  TcpRig rig;
  TestNode& one = start_of(rig, 1);
  TestNode& four = start_of(rig, 4);
  rig.introduce(four, one);
  ASSERT_TRUE(rig.run_until([&] {
    return one.transport->connected(raft::NodeId(4)) && four.transport->connected(raft::NodeId(1));
  }));
  EXPECT_THAT(four.transport->peers(), ElementsAre(PeerAddress{raft::NodeId(1), address_of(one)}));
  four.transport->send(raft::NodeId(1), numbered(7));
  ASSERT_TRUE(rig.run_until([&] { return !one.received.empty(); }));
}

TEST(Strangers, LearnFromTheNodeWhyTheyAreRefused) {
  TcpRig rig;
  TestNode& one = start_of(rig, 1);
  TestNode& four = start_of(rig, 4);
  raft::LogId said;
  four.stranger = [&said](const wire::Hello& hello) {
    said = hello.membership;
    return wire::Refusal{wire::RefusalCode::removed, "no member since entry 70",
                         wire::VersionRange{}, kRemovedAt};
  };
  one.transport->describe(address_of(one), {raft::Term(2), raft::Index(5)});
  rig.introduce(four, one);
  ASSERT_TRUE(rig.run_until([&] { return !one.rejections.empty(); }));
  EXPECT_EQ(said, (raft::LogId{raft::Term(2), raft::Index(5)}));
  EXPECT_TRUE(one.rejections.front().by_peer);
  EXPECT_EQ(one.rejections.front().reason, RejectReason::removed);
  EXPECT_EQ(one.rejections.front().membership, kRemovedAt);
  EXPECT_EQ(one.rejections.front().error.code, ErrorCode::removed);
  EXPECT_THAT(four.transport->peers(), IsEmpty());
}

TEST(Strangers, ADismissedPeerLearnsItAtOnce) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TestNode& two = rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  ASSERT_TRUE(rig.run_until([&] { return one.transport->counters().accepts == 1; }));
  one.transport->dismiss_peer(
      raft::NodeId(2), {wire::RefusalCode::removed, "gone", wire::VersionRange{}, kRemovedAt});
  EXPECT_THAT(one.transport->peers(), IsEmpty());
  ASSERT_TRUE(rig.run_until([&] { return !two.rejections.empty(); }));
  EXPECT_EQ(two.rejections.front().reason, RejectReason::removed);
  EXPECT_EQ(two.rejections.front().membership, kRemovedAt);
}

}  // namespace
}  // namespace leasehold::net
