// Proposals that depend on who leads, and changes that depend on the membership that was seen.

#include "change_support.h"

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

std::optional<LogId> propose(Group& group, int id, const ExpectedLeader& expected) {
  return group.core(id).propose(group.now(), {Bytes(std::string("x"))}, expected);
}

TEST(ExpectedLeader, AProposalIsAppendedUnderItAndUnderNoOther) {
  Group group(3);
  const int leader = group.elect();
  Core& core = group.core(leader);
  const Term term = core.term();
  const NodeId id(static_cast<std::uint64_t>(leader));
  const LogId before = core.log().last();
  EXPECT_EQ(propose(group, leader, {term.next(), {}}), std::nullopt);
  EXPECT_EQ(propose(group, leader, {Term(term.value() - 1), {}}), std::nullopt);
  EXPECT_EQ(propose(group, leader, {term, NodeId(id.value() % 3 + 1)}), std::nullopt);
  EXPECT_EQ(core.log().last(), before);
  EXPECT_TRUE(core.takes_proposals()) << "the leadership is another one, and that is all";
  EXPECT_EQ(propose(group, leader, {term, id}), (LogId{term, before.index.next()}));
  EXPECT_EQ(propose(group, leader, {term, {}}), (LogId{term, before.index + 2}));
  EXPECT_EQ(propose(group, leader, {{}, id}), (LogId{term, before.index + 3}));
}

TEST(ExpectedLeader, AnEarlierLeadershipOfTheSameNodeIsAnother) {
  Group group(3);
  const int leader = group.elect();
  const Term seen = group.core(leader).term();
  group.isolate(leader);
  while (group.core(leader).role() == Role::leader) group.run(ms(100));
  group.heal();
  // Only the first leader campaigns.
  while (group.core(leader).role() != Role::leader) {
    group.jump(ms(50));
    group.tick(leader);
    group.settle();
  }
  ASSERT_GT(group.core(leader).term(), seen);
  EXPECT_EQ(propose(group, leader, {seen, NodeId(static_cast<std::uint64_t>(leader))}),
            std::nullopt);
}

// The proposal is the first input after a long pause: the leadership is over before it is judged.
TEST(ExpectedLeader, ALeadershipThatTheTimeHasEndedIsOver) {
  Group group(3);
  const int leader = group.elect();
  const Term term = group.core(leader).term();
  const LogId before = group.core(leader).log().last();
  group.jump(ms(5000));
  EXPECT_EQ(propose(group, leader, {term, {}}), std::nullopt);
  EXPECT_EQ(group.core(leader).log().last(), before);
}

TEST(ExpectedMembership, AChangeIsMadeFromItAndFromNoOther) {
  Group group(3);
  const int leader = group.elect();
  group.add(4);
  Core& core = group.core(leader);
  const MembershipId seen = id_of(core.membership());
  complete(group, with(voters({1, 2, 3}), learner(4)));
  const LogId before = core.log().last();
  const Answer answer = core.change_membership(group.now(), voters({1, 2}), seen);
  ASSERT_EQ(obstacle(answer), ChangeObstacle::membership_changed);
  const ChangeRefused& refused = std::get<ChangeRefused>(answer);
  EXPECT_EQ(refused.in_effect, core.membership());
  EXPECT_FALSE(passes_by_itself(refused.obstacle));
  EXPECT_NE(text_of(refused).find("membership " + text_of(id_of(core.membership())) +
                                  ", with the voters 1, 2, 3;"),
            std::string::npos);
  EXPECT_EQ(core.log().last(), before);
  EXPECT_EQ(
      obstacle(core.change_membership(group.now(), voters({1, 2, 3}), id_of(core.membership()))),
      std::nullopt);
}

TEST(ExpectedMembership, IsJudgedByTheNewestCommittedOrNot) {
  Group group(3);
  const int leader = group.elect();
  group.add(4);
  Core& core = group.core(leader);
  const MembershipId seen = id_of(core.membership());
  group.isolate(leader);
  ASSERT_EQ(obstacle(group.change(leader, with(voters({1, 2, 3}), learner(4)))), std::nullopt);
  EXPECT_EQ(obstacle(core.change_membership(group.now(), voters({1, 2}), seen)),
            ChangeObstacle::membership_changed)
      << "not change_under_way: it does not pass by itself";
}

// The place of its entry is lost with the entry; the content stays.
TEST(ExpectedMembership, HasTheSameIdAtEachNodeAndWhenTheLogIsCut) {
  Group group(3);
  const int leader = group.elect();
  const MembershipId seen = id_of(group.core(leader).membership());
  group.propose(leader, "a");
  group.settle();
  group.run(ms(300));
  for (int id = 1; id <= 3; ++id) {
    group.cut_log(id, group.core(id).commit_index());
    EXPECT_EQ(id_of(group.core(id).membership()), seen) << id;
  }
  group.restart(leader);
  EXPECT_EQ(id_of(group.core(leader).membership()), seen);
}

TEST(ExpectedMembership, IdsDifferByAnythingAndArePinned) {
  Membership one;
  one.members = {{NodeId(1), Uuid{1, 2}, "a:1"}};
  one.voters = {NodeId(1)};
  EXPECT_EQ(text_of(id_of(one)), "21acaef1143573da");
  Membership other = one;
  other.members[0].address = "a:2";
  EXPECT_NE(id_of(other), id_of(one));
  other = one;
  other.settings = GroupSettings{};
  EXPECT_NE(id_of(other), id_of(one));
}

TEST(ExpectedMembership, ItsTextIsReadBack) {
  for (const std::uint64_t value : {0x0ULL, 0x1ULL, 0xfedcba9876543210ULL}) {
    const MembershipId id(value);
    EXPECT_EQ(membership_id_of(text_of(id)), id);
  }
  EXPECT_EQ(membership_id_of("FEDCBA9876543210"), MembershipId(0xfedcba9876543210ULL));
  for (const char* wrong : {"", "g", "12 ", "0x12", "10000000000000000"}) {
    EXPECT_EQ(membership_id_of(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace leasehold::raft::test
