// What `leasehold pool` makes of what the nodes say: the planner's steps as commands, and the first
// group, which is everywhere.
#include <leasehold/cli/pool_run.h>
#include <leasehold/cli/pool_view.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

raft::NodeId node(std::uint64_t number) {
  return raft::NodeId(number);
}

constexpr raft::GroupId kHome{1};
constexpr raft::GroupId kOther{2};

/// Four nodes: group 1 at all of them, led by node 1, and group 2 at nodes 1 to 3, led by node 2.
class PoolTest : public ::testing::Test {
 protected:
  PoolTest() {
    view_.replicas = 3;
    for (std::uint64_t id = 1; id <= 4; ++id) add_node(id);
    put(kHome, {1, 2, 3, 4}, 1);
    put(kOther, {1, 2, 3}, 2);
  }

  void add_node(std::uint64_t id) {
    PoolNode& one = view_.nodes[node(id)];
    one = {node(id), "s" + std::to_string(id), "p" + std::to_string(id), {}};
    for (const raft::GroupId group : {kHome, kOther})
      one.seats[group] = {node(id), false, true, {}};
  }
  void put(raft::GroupId id, const std::vector<std::uint64_t>& members, std::uint64_t leader) {
    PoolGroup& group = view_.groups[id];
    group = {};
    group.id = id;
    group.leader = node(leader);
    group.leader_server = "s" + std::to_string(leader);
    group.settled = true;
    for (const std::uint64_t one : members) {
      group.members.push_back({node(one), node(one % 10000), true, 0});
    }
  }
  NextSteps steps() const {
    const auto plan = plan_of(view_, options_, {});
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    return plan.value();
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const PoolStep& step : steps().steps) all.push_back(step.text);
    return all;
  }

  PoolView view_;
  PoolOptions options_;
};

// Another run may have changed the members since this one looked.
TEST_F(PoolTest, AChangeOfMembersIsOfThoseThatWereSeen) {
  options_.wishes.draining = {node(2)};
  put(kOther, {1, 2, 3}, 1);
  view_.groups[kOther].membership = "00000000000000ff";
  const NextSteps next = steps();
  ASSERT_EQ(next.steps.size(), 1U);
  EXPECT_THAT(next.steps[0].command,
              ElementsAre("LEASEHOLD", "MEMBER", "EXPECT", "00000000000000ff", "ADD", "4=p4"));
}

TEST_F(PoolTest, ALearnerOfTheFirstGroupThatIsAwayIsNotPromoted) {
  view_.groups[kHome].members[3].voter = false;
  EXPECT_THAT(texts(), ElementsAre("group 1: promote node 4"));
  view_.nodes.erase(node(4));
  EXPECT_THAT(texts(), IsEmpty());
}

TEST_F(PoolTest, APoolAsItShouldBeGetsNoStep) {
  EXPECT_THAT(steps().steps, IsEmpty());
  EXPECT_FALSE(steps().waits);
}

TEST_F(PoolTest, ANodeThatDrainsLeavesAllGroupsButTheFirst) {
  options_.wishes.draining = {node(2)};
  options_.drained = node(2);
  EXPECT_THAT(texts(), ElementsAre(HasSubstr("group 2: transfer the leadership to node")));
  put(kOther, {1, 2, 3}, 1);
  const NextSteps next = steps();
  ASSERT_EQ(next.steps.size(), 1U);
  EXPECT_EQ(next.steps[0].text, "group 2: add node 4 (drain)");
  EXPECT_THAT(next.steps[0].command, ElementsAre("LEASEHOLD", "MEMBER", "ADD", "4=p4"));
  EXPECT_EQ(next.steps[0].added, node(4));
  put(kOther, {1, 2, 3, 4}, 1);
  EXPECT_THAT(texts(), ElementsAre("group 2: remove node 2 (finish)"));
  put(kOther, {1, 3, 4}, 1);
  EXPECT_THAT(texts(), IsEmpty()) << "it keeps its replica of group 1";
}

TEST_F(PoolTest, ANodeThatDrainsDoesNotLeadTheFirstGroup) {
  options_.wishes.draining = {node(1)};
  const NextSteps next = steps();
  ASSERT_FALSE(next.steps.empty());
  EXPECT_EQ(next.steps[0].text, "group 1: transfer the leadership to node 2 (drain)");
  EXPECT_THAT(next.steps[0].command, ElementsAre("LEASEHOLD", "TRANSFER", "2"));
}

TEST_F(PoolTest, AReplicaThatComesBackHasTheNumberOfItsSeat) {
  options_.wishes.draining = {node(3)};
  view_.nodes[node(4)].seats[kOther].replica = node(20004);
  const NextSteps next = steps();
  ASSERT_EQ(next.steps.size(), 1U);
  EXPECT_THAT(next.steps[0].command, ElementsAre("LEASEHOLD", "MEMBER", "ADD", "20004=p4"));
}

TEST_F(PoolTest, ANodeThatStillDeletesItsReplicaIsWaitedFor) {
  options_.wishes.draining = {node(3)};
  view_.nodes[node(4)].seats[kOther].addable = false;
  EXPECT_THAT(steps().steps, IsEmpty());
  EXPECT_TRUE(steps().waits);
}

// When it hears of it, its node deletes it.
TEST_F(PoolTest, AReplicaThatHasNotHeardOfItsRemovalIsWaitedFor) {
  options_.wishes.draining = {node(3)};
  view_.nodes[node(4)].seats[kOther] = {node(4), true, false, {}};
  Strays strays;
  const auto seen = Strays::Clock::time_point() + std::chrono::hours(1);
  for (const auto passed : {std::chrono::seconds(0), Strays::kTime - std::chrono::seconds(1)}) {
    strays.note(view_, seen + passed);
    EXPECT_THAT(texts(), IsEmpty());
    EXPECT_TRUE(steps().waits);
  }
  strays.note(view_, seen + Strays::kTime);
  const NextSteps next = steps();
  ASSERT_EQ(next.steps.size(), 1U);
  EXPECT_THAT(next.steps[0].command, ElementsAre("LEASEHOLD", "MEMBER", "ADD", "4=p4"));
  EXPECT_THAT(next.reasons, ElementsAre(HasSubstr("replica 4 at node 4 was removed")));
}

TEST_F(PoolTest, AStrayThatHasHeardOfItsRemovalBeginsAgain) {
  const auto seen = Strays::Clock::time_point() + std::chrono::hours(1);
  PoolSeat& seat = view_.nodes[node(4)].seats[kOther];
  Strays strays;
  for (int i = 0; i < 2; ++i) {
    seat = {node(4), true, false, {}};
    strays.note(view_, seen + i * Strays::kTime);
    EXPECT_FALSE(seat.addable);
    seat.here = false;
    strays.note(view_, seen + i * Strays::kTime);
  }
}

TEST_F(PoolTest, ALearnerThatItsNodeHasDeletedIsRemovedFirst) {
  put(kOther, {1, 2, 3, 4}, 2);
  view_.groups[kOther].members[3].voter = false;
  view_.nodes[node(4)].seats[kOther].replica = node(10004);
  options_.wishes.draining = {node(3)};
  const NextSteps next = steps();
  ASSERT_EQ(next.steps.size(), 1U);
  EXPECT_EQ(next.steps[0].text, "group 2: remove replica 4, which node 4 has deleted (finish)");
  EXPECT_THAT(next.steps[0].command, ElementsAre("LEASEHOLD", "MEMBER", "REMOVE", "4"));
}

TEST_F(PoolTest, ALearnerOfTheFirstGroupThatItsNodeHasDeletedIsRemovedAndNotPromoted) {
  view_.groups[kHome].members[3].voter = false;
  EXPECT_THAT(texts(), ElementsAre("group 1: promote node 4"));
  view_.nodes[node(4)].seats[kHome].replica = node(10004);
  EXPECT_THAT(texts(), ElementsAre("group 1: remove replica 4, which node 4 has deleted (finish)"));
}

TEST_F(PoolTest, ALearnerIsWaitedForAndThenPromoted) {
  put(kOther, {1, 2, 3, 4}, 2);
  PoolMember& learner = view_.groups[kOther].members[3];
  learner.voter = false;
  learner.behind = 5000;
  EXPECT_THAT(texts(), IsEmpty());
  EXPECT_TRUE(steps().waits);
  EXPECT_EQ(view_.behind(), 5000U);
  learner.behind = 10;
  EXPECT_THAT(texts(), ElementsAre("group 2: promote node 4 (finish)"));
}

TEST_F(PoolTest, WhatDoesNotAnswerKeepsItsReplicasUnlessItIsGone) {
  view_.nodes.erase(node(3));
  EXPECT_THAT(texts(), IsEmpty());
  options_.wishes.gone = {node(3)};
  EXPECT_THAT(texts(), ElementsAre("group 2: add node 4 (repair)"));
}

TEST_F(PoolTest, ANewNodeIsAddedToTheFirstGroupAndVotesWhileFewDo) {
  put(kHome, {1, 2, 3}, 1);
  EXPECT_THAT(texts(), ElementsAre("group 1: add node 4"));
  put(kHome, {1, 2, 3, 4}, 1);
  view_.groups[kHome].members[3].voter = false;
  EXPECT_THAT(texts(), ElementsAre("group 1: promote node 4"));
  for (std::uint64_t id = 5; id <= 6; ++id) add_node(id);
  put(kHome, {1, 2, 3, 5, 6, 4}, 1);
  view_.groups[kHome].members[5].voter = false;
  EXPECT_THAT(texts(), ::testing::Not(::testing::Contains(HasSubstr("group 1:"))))
      << "five vote already";
}

TEST_F(PoolTest, AGroupThatIsBeingChangedGetsNoStep) {
  options_.wishes.draining = {node(2)};
  view_.groups[kOther].settled = false;
  EXPECT_THAT(texts(), IsEmpty());
  EXPECT_TRUE(steps().waits);
}

TEST_F(PoolTest, ALeaderThatIsLeavingIsNone) {
  view_.groups[kOther].members[1].voter = false;
  EXPECT_TRUE(plan_of(view_, options_, {}).ok());
}

TEST_F(PoolTest, WhatIsNotKnownIsAskedFor) {
  view_.replicas = 0;
  EXPECT_THAT(plan_of(view_, options_, {}).error().message, HasSubstr("give --replicas N"));
  options_.wishes.replicas = 4;
  EXPECT_THAT(texts(), ElementsAre("group 2: add node 4 (repair)"));
  options_.drained = node(9);
  EXPECT_THAT(plan_of(view_, options_, {}).error().message, HasSubstr("name all nodes"));
}

TEST_F(PoolTest, TheLeadersNodeIsTheFirstOneThatOthersKnow) {
  EXPECT_THAT(view_.groups[kOther].nodes(), ElementsAre(node(2), node(1), node(3)));
}

}  // namespace
}  // namespace leasehold::cli
