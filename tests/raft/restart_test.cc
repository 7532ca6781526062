// Crashes and restarts.

#include "group.h"

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

TEST(Restart, ANodeNeverResumesTheLeadershipOfATerm) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(300));
  const Term term = group.core(leader).term();
  group.restart(leader);
  EXPECT_EQ(group.core(leader).role(), Role::follower);
  EXPECT_EQ(group.core(leader).lease_end(), HolderInstant::earliest());
  group.elect();
  group.run(ms(3000));
  for (int id = 1; id <= 3; ++id) EXPECT_GT(group.core(id).term(), term);
}

TEST(Restart, AcknowledgementsOfAnEarlierLifeCountForNothing) {
  Group group(3);
  const int leader = group.elect();
  std::vector<Envelope> replies;
  group.filter = [&replies](const Envelope& e) {
    if (std::holds_alternative<AppendReply>(e.message)) replies.push_back(e);
    return true;
  };
  group.run(ms(2000));
  group.restart(leader);
  for (const Envelope& e : replies) {
    group.step(static_cast<int>(e.from.value()), static_cast<int>(e.to.value()), e.message);
  }
  EXPECT_EQ(group.core(leader).lease_end(), HolderInstant::earliest());
  EXPECT_EQ(group.core(leader).role(), Role::follower);
}

TEST(Restart, CommittedEntriesSurviveACrashOfAllNodes) {
  Group group(3);
  const int leader = group.elect();
  for (int i = 0; i < 20; ++i) group.propose(leader, std::to_string(i));
  group.settle();
  ASSERT_EQ(group.core(leader).commit_index(), Index(21));
  for (int id = 1; id <= 3; ++id) group.crash(id);
  for (int id = 1; id <= 3; ++id) group.restart(id);
  const int next = group.elect();
  group.run(ms(200));
  EXPECT_EQ(group.core(next).commit_index(), Index(22));
  for (int id = 1; id <= 3; ++id) {
    EXPECT_EQ(group.replica(id).disk_log[20].payload.view(), "19");
  }
}

TEST(Restart, AnUnsyncedVoteIsForgottenAndWasNeverSent) {
  Group group(3);
  group.replica(3).auto_sync = false;
  group.step(1, 3, VoteRequest{Term(1), LogId{}});
  EXPECT_TRUE(group.in_flight().empty());
  group.restart(3);
  group.replica(3).auto_sync = true;
  group.step(2, 3, VoteRequest{Term(1), LogId{}});
  EXPECT_TRUE(std::get<VoteReply>(group.in_flight().back().message).granted);
}

}  // namespace
}  // namespace leasehold::raft::test
