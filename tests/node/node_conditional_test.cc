// Calls of running nodes that depend on what the caller saw: who leads, the members, the age of the
// state; and members of an older build.
#include <leasehold/tests/node/node_fixture.h>
#include <leasehold/tests/node/older_peer.h>

#include <set>
#include <vector>

namespace leasehold::node {
namespace {

using namespace std::chrono_literals;
using raft::ChangeObstacle;
using What = MemberEdit::What;

class NodeConditionalTest : public NodeTest {
 protected:
  replica::ProposeResult propose(std::uint64_t at, raft::ExpectedLeader expected) {
    CallOptions options = kLong;
    options.expected = expected;
    return replica(at).node->propose_and_wait(Bytes(std::string("x")), options);
  }
  MembersResult change(std::uint64_t at, const MemberEdits& edits,
                       std::optional<raft::MembershipId> expected = {}) {
    CallOptions options = kLong;
    options.expected_membership = expected;
    return replica(at).node->change_members_and_wait(edits, options);
  }
  /// Of the peer port that no node of the test uses.
  std::uint16_t spare_port() const {
    return static_cast<std::uint16_t>(
        std::stoul(spare_address_.substr(spare_address_.find(':') + 1)));
  }
};

TEST_F(NodeConditionalTest, ACommandIsForOneLeadership) {
  start_all();
  const std::uint64_t leader = await_leader();
  const NodeStatus seen = replica(leader).status();
  const std::uint64_t other = leader % 3 + 1;
  const replica::ProposeResult done = propose(leader, {seen.term, seen.id});
  ASSERT_EQ(done.status, replica::ProposeStatus::committed);
  EXPECT_EQ(done.id.term, seen.term);
  replica::ProposeResult refused = propose(leader, {seen.term, raft::NodeId(other)});
  EXPECT_EQ(refused.status, replica::ProposeStatus::dropped);
  EXPECT_EQ(refused.other_leadership, seen.term);
  EXPECT_EQ(refused.leader, seen.id);

  CallOptions batch = kLong;
  batch.expected = {seen.term.next(), {}};
  std::promise<replica::ProposeResult> answer;
  std::vector<Proposal> proposals;
  proposals.push_back({Bytes(std::string("x")), [&answer](replica::ProposeResult result) {
                         answer.set_value(std::move(result));
                       }});
  replica(leader).node->propose_batch(std::move(proposals), batch);
  EXPECT_EQ(answer.get_future().get().other_leadership, seen.term);

  auto moved = std::make_shared<std::promise<replica::TransferResult>>();
  replica(leader).node->transfer_leadership(
      raft::NodeId(other), kLong,
      [moved](const replica::TransferResult& result) { moved->set_value(result); });
  ASSERT_EQ(moved->get_future().get().status, replica::GroupCallStatus::done);
  refused = propose(other, {seen.term, {}});
  EXPECT_EQ(refused.status, replica::ProposeStatus::dropped);
  EXPECT_GT(refused.other_leadership, seen.term);
  EXPECT_EQ(replica(leader).machine.list().size(), 1U);
}

TEST_F(NodeConditionalTest, AReadTakesAStateThatIsYoungEnough) {
  start_all();
  const std::uint64_t leader = await_leader();
  Replica& follower = replica(leader % 3 + 1);
  CallOptions options = kLong;
  options.max_age = 1h;
  const auto point = [&] { return follower.node->read_point(raft::ReadMode::lease, options); };
  const auto call = [&] {
    auto answer = std::make_shared<std::promise<replica::ReadResult>>();
    follower.node->read(raft::ReadMode::quorum, options,
                        [answer](const replica::ReadResult& result) { answer->set_value(result); });
    return answer->get_future().get();
  };
  const replica::ReadResult first = point();
  ASSERT_TRUE(first.index);
  EXPECT_FALSE(first.stale);
  for (const replica::ReadResult& later : {point(), call()}) {
    EXPECT_TRUE(later.stale);
    EXPECT_GE(later.index, first.index);
  }
  options.max_age = 1ns;
  EXPECT_FALSE(point().stale);
  EXPECT_FALSE(call().stale);
  options.max_age = 0ns;
  EXPECT_FALSE(point().stale);
  EXPECT_FALSE(call().stale);
  EXPECT_EQ(follower.status().counters.reads_stale, 1U);
}

TEST_F(NodeConditionalTest, OfTwoChangesFromOneMembershipOneIsMade) {
  start_all();
  const std::uint64_t leader = await_leader();
  std::optional<raft::MembershipId> seen;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_TRUE(eventually([&] { return replica(id).status().membership_id.value() != 0; }));
    const raft::MembershipId own = replica(id).status().membership_id;
    EXPECT_EQ(own, seen.value_or(own));
    seen = own;
  }
  const std::uint64_t first = leader % 3 + 1;
  const std::uint64_t second = first % 3 + 1;
  std::vector<std::future<MembersResult>> answers;
  for (const std::uint64_t id : {first, second}) {
    auto answer = std::make_shared<std::promise<MembersResult>>();
    answers.push_back(answer->get_future());
    CallOptions options = kLong;
    options.expected_membership = seen;
    replica(leader).node->change_members(
        {{What::demote, raft::NodeId(id)}}, options,
        [answer](MembersResult result) { answer->set_value(std::move(result)); });
  }
  EXPECT_EQ(answers[0].get().status, replica::GroupCallStatus::done);
  const MembersResult refused = answers[1].get();
  EXPECT_EQ(refused.status, replica::GroupCallStatus::refused);
  EXPECT_EQ(refused.refused.obstacle, ChangeObstacle::membership_changed);
  EXPECT_FALSE(refused.retryable);
  ASSERT_TRUE(refused.refused.in_effect);
  const NodeStatus now = replica(leader).status();
  EXPECT_NE(now.membership_id, *seen);
  EXPECT_EQ(change(leader, {{What::promote, raft::NodeId(first)}}, now.membership_id).status,
            replica::GroupCallStatus::done);
}

// The members change while the node that is to be added is asked for its uuid.
TEST_F(NodeConditionalTest, TheMembershipIsJudgedWhenTheChangeIsMade) {
  start_all();
  const std::uint64_t leader = await_leader();
  const raft::MembershipId seen = replica(leader).status().membership_id;
  OlderPeer asked(raft::NodeId(4), raft::Uuid{4, 4}, spare_port(), wire::VersionRange{},
                  OlderPeer::Manner::waits);
  auto answer = std::make_shared<std::promise<MembersResult>>();
  CallOptions options = kLong;
  options.expected_membership = seen;
  Node& node = *replica(leader).node;
  node.change_members({{What::add, raft::NodeId(4), spare_address_}}, options,
                      [answer](MembersResult result) { answer->set_value(std::move(result)); });
  ASSERT_EQ(change(leader, {{What::demote, raft::NodeId(leader % 3 + 1)}}).status,
            replica::GroupCallStatus::done);
  asked.answer();
  EXPECT_EQ(answer->get_future().get().refused.obstacle, ChangeObstacle::membership_changed);
}

TEST_F(NodeConditionalTest, AnOlderBuildIsNeitherAddedNorPromotedWhereSettingsAre) {
  start_all();
  const std::uint64_t leader = await_leader();
  const wire::VersionRange older{3, wire::kSettingsVersion - 1};
  OlderPeer peer(raft::NodeId(4), raft::Uuid{4, 4}, spare_port(), older);
  MemberEdit add{What::add, raft::NodeId(4), spare_address_};
  const MembersResult refused = change(leader, {add});
  EXPECT_EQ(refused.refused.obstacle, ChangeObstacle::older_build) << refused.reason;
  EXPECT_EQ(refused.refused.member, raft::NodeId(4));
  EXPECT_FALSE(refused.retryable);
  EXPECT_NE(refused.reason.find("upgrade it first"), std::string::npos);
  EXPECT_EQ(replica(leader).status().members.size(), 3U);
  // A caller who knows its uuid asks nobody. Then its connection shows it.
  add.uuid = raft::Uuid{4, 4};
  ASSERT_EQ(change(leader, {add}).status, replica::GroupCallStatus::done);
  EXPECT_TRUE(eventually([&] { return replica(leader).status().members.at(3).connected; }));
  const MembersResult stays = change(leader, {{What::promote, raft::NodeId(4)}});
  EXPECT_EQ(stays.refused.obstacle, ChangeObstacle::older_build) << stays.reason;
}

}  // namespace
}  // namespace leasehold::node
