// What a leader sends others of its commits, and what a reader under its lease may rely on
// (lease/README.md, rule 52).
#include "change_support.h"
#include "group.h"

#include <gtest/gtest.h>

#include <variant>
#include <vector>

namespace leasehold::raft::test {
namespace {

/// Three nodes, of which one leads and delays the news of commits; the state machine of the leader
/// does not say what it shows.
class SentCommit : public testing::Test {
 protected:
  explicit SentCommit(const std::vector<int>& witnesses = {}) : group_(3, {}, 1, ms(5), witnesses) {
    leader_ = group_.elect();
    follower_ = leader_ % 3 + 1;
    group_.run(ms(1));
    group_.replica(leader_).says_applied = false;
  }

  /// Commits two entries, 2 and 3. The append with the second one may name the first.
  void write_twice() {
    for (int i = 0; i < 2; ++i) {
      group_.propose(leader_, "x");
      group_.settle();
    }
    ASSERT_EQ(group_.core(leader_).commit_index(), Index(3));
  }
  void show(Index index) {
    group_.core(leader_).applied(group_.now(), index);
    group_.drain(leader_);
    group_.settle();
  }
  Index sent() { return group_.replica(leader_).view.sent_commit; }
  Index known(int id) { return group_.core(id).commit_index(); }

  Group group_;
  int leader_ = 0;
  int follower_ = 0;
};

TEST_F(SentCommit, AnAppendNamesNoMoreThanIsShownHere) {
  write_twice();
  EXPECT_EQ(known(follower_), Index(1));
  EXPECT_EQ(sent(), Index(1));
  EXPECT_EQ(group_.replica(leader_).view.commit, Index(3));
}

TEST_F(SentCommit, WhatIsShownIsSentWithinTheDelay) {
  write_twice();
  show(Index(3));
  EXPECT_EQ(known(follower_), Index(1));
  group_.run(ms(6));
  EXPECT_EQ(known(follower_), Index(3));
  EXPECT_EQ(sent(), Index(3));
}

TEST_F(SentCommit, WhatWasCommittedTwoRoundsAgoIsSentThoughItIsNotShown) {
  write_twice();
  const Duration heartbeat = group_.core(leader_).timing().heartbeat;
  group_.run(heartbeat);
  EXPECT_EQ(known(follower_), Index(1));
  group_.run(heartbeat);
  EXPECT_EQ(known(follower_), Index(3));
  EXPECT_EQ(sent(), Index(3));
}

TEST_F(SentCommit, APeerWhoseCallersWaitHearsBeforeItIsShownHere) {
  group_.core(leader_).listens(group_.now(), NodeId(static_cast<std::uint64_t>(follower_)));
  write_twice();
  EXPECT_EQ(known(follower_), Index(3));
  EXPECT_EQ(sent(), Index(3));
}

// A follower asked for a read: its answer waits for what it hears.
TEST_F(SentCommit, APeerThatReadsHearsBeforeItIsShownHere) {
  group_.ask(follower_, 1, ReadMode::lease);
  group_.settle();
  write_twice();
  EXPECT_EQ(known(follower_), Index(3));
  EXPECT_EQ(sent(), Index(3));
}

// It gets no other message: without this one it would go on as a member.
TEST_F(SentCommit, AMemberThatIsRemovedHearsOfItAtOnce) {
  const int stays = follower_ % 3 + 1;
  ASSERT_EQ(obstacle(group_.change(leader_, voters({static_cast<std::uint64_t>(leader_),
                                                    static_cast<std::uint64_t>(stays)}))),
            std::nullopt);
  group_.settle();
  EXPECT_FALSE(group_.core(leader_).membership().joint());
  EXPECT_EQ(known(follower_), group_.core(leader_).commit_index());
  EXPECT_EQ(sent(), group_.core(leader_).commit_index());
}

// What an earlier leader has sent, each follower may show. The new leader sends its first commit at
// once, which covers that; SentToNobody has the case in which it sends nothing.
TEST_F(SentCommit, BeginsWithTheFirstEntryOfTheTerm) {
  group_.core(leader_).listens(group_.now(), NodeId(static_cast<std::uint64_t>(follower_)));
  write_twice();
  ASSERT_EQ(known(follower_), Index(3));
  const int next = follower_ % 3 + 1;
  ASSERT_FALSE(group_.core(leader_)
                   .transfer(group_.now(), NodeId(static_cast<std::uint64_t>(next)))
                   .has_value());
  group_.drain(leader_);
  group_.settle();
  ASSERT_EQ(group_.core(next).role(), Role::leader);
  EXPECT_GT(group_.replica(next).view.end, group_.now().holder);
  EXPECT_EQ(group_.replica(next).view.sent_commit, Index(4));
}

TEST_F(SentCommit, IsPublishedWithTheMessage) {
  write_twice();
  show(Index(3));
  group_.jump(ms(6));
  group_.core(leader_).tick(group_.now());
  Ready ready;
  while (group_.core(leader_).take_ready(ready)) {
    for (const OutgoingMessage& m : ready.messages) {
      const auto* append = std::get_if<AppendRequest>(&m.message);
      if (append == nullptr || append->commit < Index(3)) continue;
      ASSERT_TRUE(ready.lease);
      EXPECT_EQ(ready.lease->sent_commit, Index(3));
      return;
    }
  }
  FAIL() << "nothing was sent";
}

class SentToAWitness : public SentCommit {
 protected:
  SentToAWitness() : SentCommit({3}) {}
};

TEST_F(SentToAWitness, IsNotSeen) {
  ASSERT_NE(leader_, 3);
  write_twice();
  EXPECT_EQ(known(3), Index(2));
  EXPECT_EQ(sent(), Index(1));
}

// A group of one has nobody to send it to.
TEST(SentToNobody, AReaderWaitsForTheFirstEntryOfTheTermAlone) {
  Group group(1, {}, 1, ms(5));
  group.elect();
  group.replica(1).says_applied = false;
  group.propose(1, "x");
  group.settle();
  group.run(ms(500));
  EXPECT_EQ(group.replica(1).view.commit, Index(2));
  EXPECT_EQ(group.replica(1).view.sent_commit, Index(1));
}

// Without a delay everything is sent at once.
TEST(SentAtOnce, FollowsTheCommit) {
  Group group(3);
  const int leader = group.elect();
  group.replica(leader).says_applied = false;
  group.propose(leader, "x");
  group.settle();
  for (int id = 1; id <= 3; ++id) EXPECT_EQ(group.core(id).commit_index(), Index(2)) << id;
  EXPECT_EQ(group.replica(leader).view.sent_commit, Index(2));
}

}  // namespace
}  // namespace leasehold::raft::test
