// A command that names the leadership it wants is appended under that one, or never.
#include <leasehold/tests/replica/snapshot_fixture.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica {
namespace {

using testing::Answer;
using testing::Cluster;
using testing::kLong;
using testing::milliseconds;
using testing::Rig;
using testing::SnapshotTest;

using Commands = std::vector<std::string>;

class ExpectedLeaderTest : public ::testing::Test {
 protected:
  ExpectedLeaderTest() : leader_(&cluster_.await_leader()) {
    follower_ = &cluster_.node(leader_->id().value() % 3 + 1);
    cluster_.advance(milliseconds(200));
    term_ = leader_->driver().core().term();
  }
  void propose(Rig& at, const raft::ExpectedLeader& expected) {
    at.handle(cluster_.now(), Propose{Bytes(std::string("x")), cluster_.in(kLong),
                                      answer_.completion(), CallGroup(), false, expected});
  }
  /// It was not executed, and `rig` says under which leadership it is instead.
  void expect_refused(Rig& rig) {
    EXPECT_EQ(answer_.calls, 1);
    EXPECT_EQ(answer_.value.status, ProposeStatus::dropped);
    ASSERT_TRUE(answer_.value.other_leadership);
    EXPECT_LE(*answer_.value.other_leadership, rig.driver().core().term());
    cluster_.heal();
    cluster_.advance(milliseconds(3000));
    for (std::uint64_t id = 1; id <= 3; ++id) {
      EXPECT_EQ(cluster_.node(id).machine().commands(), Commands{}) << id;
    }
  }
  void await_next_leader() {
    ASSERT_TRUE(cluster_.advance_until([this] {
      return follower_->driver().core().term() > term_ &&
             follower_->driver().core().leader() != raft::kNobody;
    }));
  }

  Cluster cluster_{3};
  Rig* leader_;
  Rig* follower_;
  raft::Term term_;
  Answer<ProposeResult> answer_;
};

TEST_F(ExpectedLeaderTest, UnderTheExpectedOneItIsCommittedInThatTerm) {
  for (Rig* at : {leader_, follower_}) {
    answer_ = {};
    propose(*at, {term_, leader_->id()});
    EXPECT_TRUE(cluster_.advance_until([this] { return answer_.calls > 0; }));
    EXPECT_EQ(answer_.value.status, ProposeStatus::committed);
    EXPECT_EQ(answer_.value.id.term, term_);
    EXPECT_EQ(answer_.value.other_leadership, std::nullopt);
  }
}

TEST_F(ExpectedLeaderTest, ALeaderOfAnotherTermRefusesAtOnce) {
  propose(*leader_, {term_.next(), {}});
  EXPECT_EQ(answer_.value.other_leadership, term_);
  EXPECT_EQ(answer_.value.leader, leader_->id());
  expect_refused(*leader_);
}

TEST_F(ExpectedLeaderTest, AnotherLeaderRefusesAtOnce) {
  propose(*leader_, {{}, follower_->id()});
  expect_refused(*leader_);
}

TEST_F(ExpectedLeaderTest, AFollowerSendsNothingToAnotherLeader) {
  follower_->take_sent();
  propose(*follower_, {term_, follower_->id()});
  EXPECT_TRUE(follower_->sent().empty());
  expect_refused(*follower_);
}

TEST_F(ExpectedLeaderTest, ItWaitsForAnUnknownLeaderAndIsRefusedWhenThatIsAnother) {
  cluster_.cut(leader_->id().value());
  const std::uint64_t id = follower_->id().value();
  cluster_.restart(id);
  follower_ = &cluster_.node(id);
  ASSERT_EQ(follower_->driver().core().leader(), raft::kNobody);
  propose(*follower_, {{}, leader_->id()});
  EXPECT_EQ(answer_.calls, 0) << "the expected node may be elected";
  await_next_leader();
  cluster_.advance(milliseconds(200));
  expect_refused(*follower_);
}

// It is on its way to the leader, which is deposed before it arrives.
TEST_F(ExpectedLeaderTest, AForwardThatComesTooLateIsNotSentAgain) {
  propose(*follower_, {term_, {}});
  const std::vector<Rig::Sent> sent = follower_->take_sent();
  ASSERT_EQ(sent.size(), 1U);
  raft::AppendReply higher;
  higher.request_term = term_;
  higher.term = term_ + 5;
  leader_->handle(cluster_.now(), PeerMessageReceived{follower_->peer(),
                                                      {raft::GroupId(1), raft::Message(higher)}});
  ASSERT_FALSE(leader_->leads());
  leader_->handle(cluster_.now(), PeerMessageReceived{follower_->peer(), sent[0].message});
  EXPECT_TRUE(cluster_.advance_until([this] { return answer_.calls > 0; }));
  expect_refused(*follower_);
}

// The leader took it and died with it: an entry of the next leader proves that it is gone.
TEST_F(ExpectedLeaderTest, WhatDiedWithItsLeaderIsRefusedAndNotUnknown) {
  cluster_.cut(leader_->id().value());
  propose(*follower_, {term_, {}});
  await_next_leader();
  EXPECT_TRUE(cluster_.advance_until([this] { return answer_.calls > 0; }));
  EXPECT_EQ(follower_->driver().counters().proposals_forwarded, 1U);
  expect_refused(*follower_);
}

// The leader appended it, and lost its place before a quorum had it.
TEST_F(ExpectedLeaderTest, WhatWasAppendedAndReplacedIsRefused) {
  cluster_.cut(leader_->id().value());
  propose(*leader_, {term_, leader_->id()});
  await_next_leader();
  cluster_.heal();
  EXPECT_TRUE(cluster_.advance_until([this] { return answer_.calls > 0; }));
  expect_refused(*leader_);
}

TEST_F(ExpectedLeaderTest, ItWaitsOutATransferAndIsRefusedAfterIt) {
  leader_->handle(cluster_.now(),
                  TransferLeadership{follower_->id(), cluster_.in(kLong), {}, CallGroup()});
  propose(*leader_, {term_, {}});
  EXPECT_EQ(answer_.calls, 0);
  EXPECT_TRUE(cluster_.advance_until([this] { return answer_.calls > 0; }));
  expect_refused(*leader_);
}

// A snapshot hides what became of the first send, and the second may not be made.
TEST_F(SnapshotTest, AnExpectedLeadershipThatIsOverDoesNotMakeTheUnknownKnown) {
  Rig& first = leader();
  const raft::Term term = first.driver().core().term();
  cluster.advance(milliseconds(300));
  Rig& follower = cluster.node(first.id().value() % 3 + 1);
  Rig& next = cluster.node(follower.id().value() % 3 + 1);
  cluster.cut(follower.id().value());
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(),
                  Propose{Bytes(std::string("x")), cluster.in(kLong), answer.completion(),
                          CallGroup(), true, raft::ExpectedLeader{term, {}}});
  ASSERT_EQ(follower.driver().counters().proposals_forwarded, 1U);
  first.handle(cluster.now(), TransferLeadership{next.id(), cluster.in(kLong), {}, CallGroup()});
  cluster.advance(milliseconds(1000));
  ASSERT_TRUE(next.leads());
  write(next, 200);
  ASSERT_EQ(answer.calls, 0);
  cluster.heal();
  EXPECT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
  EXPECT_EQ(follower.driver().counters().snapshots_installed, 1U);
  EXPECT_EQ(answer.value.status, ProposeStatus::unknown);
}

}  // namespace
}  // namespace leasehold::replica
