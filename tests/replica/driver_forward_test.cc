// A driver that follows sends its callers' commands to the leader, and each is executed once at
// most.
#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica {
namespace {

using testing::Answer;
using testing::Cluster;
using testing::milliseconds;
using testing::peer_of;
using testing::propose;
using testing::Rig;

TEST(Driver, FollowerForwardsAndAnswersFromItsOwnApply) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  cluster.advance(milliseconds(200));
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose(cluster, "from afar", answer));
  cluster.advance_until([&] { return answer.calls > 0; });
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::committed);
  EXPECT_EQ(answer.value.result.view(), "done:from afar");
  EXPECT_EQ(follower.driver().counters().proposals_forwarded, 1U);
  EXPECT_EQ(leader.driver().counters().forwards_received, 1U);
  EXPECT_EQ(follower.machine().commands(), (std::vector<std::string>{"from afar"}));
}

// The sender of a forwarded command is who the connection has proven, and not what the message
// says.
TEST(Driver, TheStateMachineKnowsWhoseCommandItIs) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  cluster.advance(milliseconds(200));
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose(cluster, "afar", answer));
  cluster.advance_until([&] { return answer.calls > 0; });
  leader.handle(cluster.now(), propose(cluster, "here", answer));
  cluster.advance_until([&] { return answer.calls > 1; });
  cluster.advance(milliseconds(500));
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_EQ(cluster.node(id).machine().origins(),
              (std::vector<raft::NodeId>{follower.id(), leader.id()}));
  }
}

TEST(Driver, ADuplicatedForwardExecutesOnce) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  cluster.advance(milliseconds(200));
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose(cluster, "once", answer));
  std::vector<Rig::Sent> sent = follower.take_sent();
  ASSERT_EQ(sent.size(), 1U);
  for (int copy = 0; copy < 3; ++copy) {
    leader.handle(cluster.now(), PeerMessageReceived{follower.peer(), sent[0].message});
  }
  cluster.settle();
  cluster.advance(milliseconds(500));
  leader.handle(cluster.now(), PeerMessageReceived{follower.peer(), sent[0].message});
  cluster.settle();
  EXPECT_EQ(leader.machine().commands(), (std::vector<std::string>{"once"}));
  EXPECT_EQ(leader.driver().counters().forwards_refused, 3U);
  EXPECT_EQ(answer.calls, 1);
}

/// Somebody tells the leader of a higher term.
void depose(Cluster& cluster, Rig& leader, raft::NodeId by) {
  raft::AppendReply reply;
  reply.request_term = leader.driver().core().term();
  reply.term = reply.request_term + 5;
  leader.handle(cluster.now(),
                PeerMessageReceived{peer_of(by), {raft::GroupId(1), raft::Message(reply)}});
  ASSERT_FALSE(leader.leads());
}

std::vector<wire::ForwardReply> refusals(const std::vector<Rig::Sent>& sent) {
  std::vector<wire::ForwardReply> found;
  for (const Rig::Sent& message : sent) {
    const auto* reply = std::get_if<wire::ForwardReply>(&message.message.payload);
    if (reply != nullptr) found.push_back(*reply);
  }
  return found;
}

TEST(Driver, AForwardThatComesTooLateIsRefusedAndSentAnewUnderAnotherSequence) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  cluster.advance(milliseconds(200));
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose(cluster, "a", answer));
  std::vector<Rig::Sent> sent = follower.take_sent();
  ASSERT_EQ(sent.size(), 1U);
  depose(cluster, leader, follower.id());
  leader.take_sent();
  leader.handle(cluster.now(), PeerMessageReceived{follower.peer(), sent[0].message});
  const auto replies = refusals(leader.take_sent());
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].reason, wire::ForwardRefusal::not_leader);
  const PeerMessageReceived refusal{leader.peer(), {raft::GroupId(1), wire::Payload(replies[0])}};
  follower.handle(cluster.now(), refusal);
  EXPECT_EQ(answer.calls, 0) << "it was never appended: the follower tries again by itself";
  lease::Now later = cluster.now();
  later.promise = later.promise + milliseconds(100);
  follower.handle(later, Tick{});
  EXPECT_EQ(follower.driver().counters().proposals_forwarded, 2U);
  // A replay of the refusal must not touch the second send.
  follower.handle(later, refusal);
  later.promise = later.promise + milliseconds(100);
  follower.handle(later, Tick{});
  EXPECT_EQ(follower.driver().counters().proposals_forwarded, 2U);
  EXPECT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
  EXPECT_EQ(answer.value.status, ProposeStatus::committed);
  cluster.advance(milliseconds(2000));
  EXPECT_EQ(follower.machine().commands(), (std::vector<std::string>{"a"}));
}

TEST(Driver, ACopyOfATakenForwardIsNotRefusedByALeaderThatStoppedLeading) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  cluster.advance(milliseconds(200));
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose(cluster, "once", answer));
  std::vector<Rig::Sent> sent = follower.take_sent();
  ASSERT_EQ(sent.size(), 1U);
  leader.handle(cluster.now(), PeerMessageReceived{follower.peer(), sent[0].message});
  depose(cluster, leader, follower.id());
  leader.handle(cluster.now(), PeerMessageReceived{follower.peer(), sent[0].message});
  EXPECT_TRUE(refusals(leader.sent()).empty()) << "it may yet be committed";
  // Nor by the process that follows it, which knows nothing.
  cluster.settle();
  const std::uint64_t restarted_id = leader.id().value();
  cluster.restart(restarted_id);  // `leader` ends here
  Rig& restarted = cluster.node(restarted_id);
  restarted.handle(cluster.now(), PeerMessageReceived{follower.peer(), sent[0].message});
  EXPECT_TRUE(refusals(restarted.sent()).empty());
  EXPECT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
  EXPECT_EQ(follower.machine().commands(), (std::vector<std::string>{"once"}));
}

TEST(Driver, ACommandSentToALeaderThatDiedGoesToTheNextOne) {
  Cluster cluster(3);
  Rig& old_leader = cluster.await_leader();
  Rig& follower = cluster.node(old_leader.id() == raft::NodeId(1) ? 2 : 1);
  cluster.advance(milliseconds(200));
  cluster.cut(old_leader.id().value());
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose(cluster, "a", answer));
  ASSERT_EQ(follower.driver().counters().proposals_forwarded, 1U);
  EXPECT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
  EXPECT_EQ(answer.value.status, ProposeStatus::committed);
  EXPECT_EQ(follower.machine().commands(), (std::vector<std::string>{"a"}));
}

TEST(Driver, ACommandThatTheDeadLeaderHadReplicatedIsNotSentAgain) {
  Cluster cluster(3);
  Rig& old_leader = cluster.await_leader();
  Rig& follower = cluster.node(old_leader.id() == raft::NodeId(1) ? 2 : 1);
  cluster.advance(milliseconds(200));
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose(cluster, "a", answer));
  for (const Rig::Sent& sent : follower.take_sent()) {
    old_leader.handle(cluster.now(), PeerMessageReceived{follower.peer(), sent.message});
  }
  // Both peers get the entry; the leader hears of nothing any more.
  for (const Rig::Sent& sent : old_leader.take_sent()) {
    cluster.node(sent.to.value())
        .handle(cluster.now(), PeerMessageReceived{old_leader.peer(), sent.message});
  }
  cluster.cut(old_leader.id().value());
  EXPECT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
  EXPECT_EQ(answer.value.status, ProposeStatus::committed);
  cluster.advance(milliseconds(1000));
  EXPECT_EQ(follower.machine().commands(), (std::vector<std::string>{"a"}));
}

}  // namespace
}  // namespace leasehold::replica
