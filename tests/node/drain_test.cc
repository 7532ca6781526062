// The end of a node in good order, step by step.
#include <leasehold/node/drain.h>
#include <leasehold/replica/refusal.h>
#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

using replica::testing::Answer;
using replica::testing::Cluster;
using replica::testing::milliseconds;
using replica::testing::Rig;

constexpr lease::Duration kLong = std::chrono::seconds(30);
constexpr lease::Duration kPause = milliseconds(300);

/// A cluster of three, one of whose nodes is drained as a shell would do it.
class DrainTest : public ::testing::Test {
 protected:
  DrainTest() { cluster_.advance(milliseconds(200)); }

  /// One turn of the shell.
  void turn(Rig& rig) {
    std::vector<replica::Event> events;
    drain_.look(cluster_.now(), rig.driver(), reached_, events);
    for (replica::Event& event : events) {
      ++asked_;
      rig.handle(cluster_.now(), std::move(event));
    }
    cluster_.settle();
  }
  /// Runs turns until the drain is answered; false: a minute was not enough.
  bool drained(Rig& rig) {
    for (int step = 0; step < 12'000 && answer_.calls == 0; ++step) {
      turn(rig);
      if (answer_.calls == 0) cluster_.advance(milliseconds(5));
    }
    return answer_.calls == 1;
  }
  void begin(lease::Duration timeout = kLong) {
    drain_.begin(cluster_.in(timeout), answer_.completion());
  }
  std::uint64_t next_of(const Rig& rig) const { return rig.id().value() % 3 + 1; }

  Cluster cluster_{3};
  Rig& leader_ = cluster_.await_leader();
  Drain drain_{kPause};
  Answer<DrainResult> answer_;
  int asked_ = 0;  ///< for a transfer
  std::set<raft::NodeId> away_;
  std::function<bool(raft::NodeId)> reached_ = [this](raft::NodeId id) {
    return away_.count(id) == 0;
  };
};

TEST_F(DrainTest, ALeaderTransfersAndIsDone) {
  begin();
  ASSERT_TRUE(drained(leader_));
  EXPECT_TRUE(answer_.value.complete);
  EXPECT_TRUE(answer_.value.transferred);
  EXPECT_NE(answer_.value.leader, leader_.id());
  EXPECT_NE(answer_.value.leader, raft::kNobody);
  EXPECT_FALSE(leader_.leads());
  EXPECT_EQ(asked_, 1);
}

TEST_F(DrainTest, WhatIsInFlightIsAnsweredFirst) {
  Answer<replica::ProposeResult> command;
  leader_.handle(cluster_.now(), replica::Propose{Bytes(std::string("x")), cluster_.in(kLong),
                                                  command.completion()});
  begin();
  ASSERT_TRUE(drained(leader_));
  EXPECT_TRUE(answer_.value.complete);
  EXPECT_EQ(command.calls, 1);
  EXPECT_EQ(command.value.status, replica::ProposeStatus::committed);
}

TEST_F(DrainTest, AFollowerIsDoneWhenItsCallsAre) {
  Rig& follower = cluster_.node(next_of(leader_));
  Answer<replica::ProposeResult> command;
  cluster_.cut(follower.id().value());
  follower.handle(cluster_.now(), replica::Propose{Bytes(std::string("x")), cluster_.in(kLong),
                                                   command.completion()});
  begin();
  turn(follower);
  EXPECT_EQ(answer_.calls, 0) << "a command waits";
  cluster_.heal();
  ASSERT_TRUE(drained(follower));
  EXPECT_EQ(command.calls, 1);
  EXPECT_TRUE(answer_.value.complete);
  EXPECT_FALSE(answer_.value.transferred);
  EXPECT_EQ(asked_, 0);
}

TEST_F(DrainTest, NewCallsAreRefusedAndPeersAreHeard) {
  Answer<replica::ProposeResult> command;
  Answer<replica::ReadResult> read;
  Answer<replica::ReadResult> justified;
  const auto events = [&] {
    std::vector<replica::Event> some;
    some.emplace_back(
        replica::Propose{Bytes(std::string("x")), cluster_.in(kLong), command.completion()});
    some.emplace_back(replica::Tick{});
    some.emplace_back(replica::Read{raft::ReadMode::lease, cluster_.in(kLong), read.completion()});
    some.emplace_back(
        replica::WaitApplied{raft::Index(1), cluster_.in(kLong), justified.completion()});
    some.emplace_back(replica::PeerMessageReceived{});
    return some;
  };
  std::vector<replica::Event> after = events();
  replica::refuse_calls(after, leader_.id());
  ASSERT_EQ(after.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<replica::Tick>(after[0]));
  EXPECT_TRUE(std::holds_alternative<replica::WaitApplied>(after[1]))
      << "its read was justified before";
  EXPECT_TRUE(std::holds_alternative<replica::PeerMessageReceived>(after[2]));
  ASSERT_EQ(command.calls, 1);
  EXPECT_EQ(command.value.status, replica::ProposeStatus::dropped);
  EXPECT_EQ(command.value.leader, leader_.id());
  ASSERT_EQ(read.calls, 1);
  EXPECT_FALSE(read.value.index.has_value());
  EXPECT_EQ(justified.calls, 0);
}

TEST_F(DrainTest, ANodeThatHasEndedIsNotChosen) {
  const raft::NodeId gone(next_of(leader_));
  cluster_.cut(gone.value());
  away_ = {gone};
  begin();
  ASSERT_TRUE(drained(leader_));
  EXPECT_TRUE(answer_.value.transferred);
  EXPECT_NE(answer_.value.leader, gone);
  EXPECT_EQ(asked_, 1);
}

TEST_F(DrainTest, ATransferThatFailsIsTriedAgainAfterAPause) {
  cluster_.lose = [this](raft::NodeId, const Rig::Sent& sent) {
    const auto* message = std::get_if<raft::Message>(&sent.message.payload);
    return asked_ < 3 && message != nullptr && std::holds_alternative<raft::TimeoutNow>(*message);
  };
  begin();
  const raft::PromiseInstant begun = cluster_.now().promise;
  ASSERT_TRUE(drained(leader_));
  EXPECT_TRUE(answer_.value.transferred);
  EXPECT_EQ(asked_, 3);
  EXPECT_GE(cluster_.now().promise - begun, 2 * kPause);
}

TEST_F(DrainTest, TheLastNodeDoesNotWait) {
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (raft::NodeId(id) == leader_.id()) continue;
    cluster_.cut(id);
    away_.insert(raft::NodeId(id));
  }
  begin();
  turn(leader_);
  ASSERT_EQ(answer_.calls, 1);
  EXPECT_TRUE(answer_.value.complete);
  EXPECT_FALSE(answer_.value.transferred);
  EXPECT_EQ(answer_.value.leader, leader_.id());
  EXPECT_EQ(asked_, 0);
}

TEST_F(DrainTest, AFollowerStaysWhileTheOthersElect) {
  Rig& follower = cluster_.node(next_of(leader_));
  const std::uint64_t third = next_of(follower);
  cluster_.cut(leader_.id().value());
  cluster_.cut(third);
  away_ = {leader_.id()};
  ASSERT_TRUE(
      cluster_.advance_until([&] { return follower.driver().core().leader() == raft::kNobody; }));
  begin();
  turn(follower);
  EXPECT_EQ(answer_.calls, 0) << "its vote is needed";
  cluster_.heal();
  cluster_.cut(leader_.id().value());
  ASSERT_TRUE(drained(follower));
  EXPECT_TRUE(answer_.value.complete);
  EXPECT_EQ(answer_.value.leader, raft::NodeId(third)) << "if it was elected, it transferred";
}

TEST_F(DrainTest, WhenTheTimeIsOverItSaysWhatIsLeft) {
  Rig& follower = cluster_.node(next_of(leader_));
  cluster_.cut(follower.id().value());
  Answer<replica::ProposeResult> command;
  follower.handle(cluster_.now(), replica::Propose{Bytes(std::string("x")), cluster_.in(kLong),
                                                   command.completion()});
  begin(milliseconds(100));
  EXPECT_EQ(drain_.next_deadline(), cluster_.in(milliseconds(100)));
  ASSERT_TRUE(drained(follower));
  EXPECT_FALSE(answer_.value.complete);
  EXPECT_EQ(answer_.value.waiting, 1U);
  EXPECT_EQ(command.calls, 0) << "it may yet be answered, until the node stops";
  EXPECT_EQ(drain_.next_deadline(), raft::PromiseInstant::never());
}

TEST_F(DrainTest, EveryCallerIsAnsweredOnce) {
  begin();
  Answer<DrainResult> second;
  drain_.begin(cluster_.in(milliseconds(1)), second.completion());
  ASSERT_TRUE(drained(leader_));
  EXPECT_EQ(second.calls, 1);
  Answer<DrainResult> late;
  drain_.begin(cluster_.in(kLong), late.completion());
  turn(leader_);
  EXPECT_EQ(late.calls, 1);
  drain_.end(false);
  EXPECT_EQ(answer_.calls + second.calls + late.calls, 3);
}

TEST_F(DrainTest, ANodeThatIsElectedAgainTransfersAgain) {
  begin();
  ASSERT_TRUE(drained(leader_));
  Rig& other = cluster_.node(answer_.value.leader.value());
  Answer<replica::TransferResult> back;
  cluster_.advance(milliseconds(200));
  other.handle(cluster_.now(),
               replica::TransferLeadership{leader_.id(), cluster_.in(kLong), back.completion()});
  cluster_.settle();
  ASSERT_TRUE(leader_.leads());
  turn(leader_);
  cluster_.advance(milliseconds(50));
  EXPECT_FALSE(leader_.leads());
  EXPECT_EQ(answer_.calls, 1);
}

}  // namespace
}  // namespace leasehold::node
