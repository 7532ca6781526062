// Slots that go to a group elsewhere: frozen ones are nobody's until a node with both groups leads.
#include <leasehold/server/slots_away.h>
#include <leasehold/tests/server/fake_node.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;

/// Node 1 leads group 2, which is at nodes 1 to 4; node 3 has its second replica. Group 3 is at the
/// nodes 3 to 5.
class SlotsAway : public ::testing::Test {
 protected:
  SlotsAway() {
    status_.id = raft::NodeId(1);
    status_.role = raft::Role::leader;
    for (const std::uint64_t replica : {1U, 2U, 10003U, 4U}) {
      node::MemberStatus member;
      member.id = raft::NodeId(replica);
      member.connected = true;
      member.match = raft::Index(100 + replica);
      status_.members.push_back(member);
    }
  }
  std::string why(bool frozen) { return cannot_move_here(node_, &place_, {2, 3, frozen}); }
  /// To which replica the leadership goes; kNobody: to none.
  raft::NodeId given_to() {
    why(true);
    EXPECT_EQ(node_.statuses(), 1U);
    if (node_.statuses() == 0) return raft::kNobody;
    node_.end_status(status_);
    if (node_.transfers() == 0) return raft::kNobody;
    const raft::NodeId to = node_.next_transfer();
    node_.end_transfer({replica::GroupCallStatus::done, std::nullopt, to});
    return to;
  }

  FakeNode node_;
  GroupPlace place_{false, {raft::NodeId(3), raft::NodeId(4), raft::NodeId(5)}};
  node::NodeStatus status_;
};

TEST_F(SlotsAway, WhereBothGroupsAreNothingIsInTheWay) {
  EXPECT_EQ(cannot_move_here(node_, nullptr, {2, 1, true}), "");
  place_.set_here(true);
  EXPECT_EQ(why(true), "");
  EXPECT_EQ(node_.statuses(), 0U);
}

TEST_F(SlotsAway, WhatIsCopiedWaitsForTheOperator) {
  EXPECT_THAT(why(false), HasSubstr("transfer the leadership to a node that has both, or add a "
                                    "replica of group 3 here"));
  EXPECT_EQ(node_.statuses(), 0U);
}

TEST_F(SlotsAway, TheLeadershipGoesWhereFrozenSlotsCanMove) {
  EXPECT_THAT(why(true), HasSubstr("the leadership goes to a node that has both"));
  ASSERT_EQ(node_.statuses(), 1U);
  node_.end_status({});  // it does not lead any more
  EXPECT_EQ(node_.transfers(), 0U);
  EXPECT_EQ(given_to(), raft::NodeId(10003)) << "it has most of the log";
}

TEST_F(SlotsAway, OnlyAVoterThatIsReachedCanLead) {
  node::MemberStatus& third = status_.members[2];
  const auto with = [&](const auto& change) {
    const node::MemberStatus before = third;
    change(third);
    const raft::NodeId to = given_to();
    third = before;
    return to;
  };
  EXPECT_EQ(with([](auto& member) { member.connected = false; }), raft::NodeId(4));
  EXPECT_EQ(with([](auto& member) { member.voter = false; }), raft::NodeId(4));
  EXPECT_EQ(with([](auto& member) { member.witness = true; }), raft::NodeId(4));
  EXPECT_EQ(with([](auto& member) { member.leaving = true; }), raft::NodeId(4));
  status_.commit = raft::Index(10'000);
  EXPECT_EQ(with([](auto& member) { member.match = raft::Index(9'000); }), raft::NodeId(10003));
  EXPECT_EQ(with([](auto& member) { member.match = raft::Index(8'999); }), raft::kNobody)
      << "the group would take no writes for long";
  status_.commit = raft::Index(0);
  status_.members.resize(2);
  EXPECT_EQ(given_to(), raft::kNobody);
}

}  // namespace
}  // namespace leasehold::server
