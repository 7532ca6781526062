// A command is in one list at most while it waits, and in none once it has ended, however it ends.
#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::replica::testing {
namespace {

using std::chrono::seconds;

constexpr CallGroup kSession{7};

/// All; held, queued, forwarded, uncommitted.
using Places = std::vector<std::size_t>;

const Places kNothing{0, 0, 0, 0, 0};
const Places kHeld{1, 1, 0, 0, 0};
const Places kForwarded{1, 0, 0, 1, 0};
const Places kAppended{1, 0, 0, 0, 1};
/// In the table only: what became of it will be seen in the log.
const Places kUnlisted{1, 0, 0, 0, 0};

Places places(Rig& rig) {
  const ProposalPlaces now = rig.driver().proposals();
  return {now.all, now.held, now.queued, now.forwarded, now.uncommitted};
}

class ProposalPlacesTest : public ::testing::Test {
 protected:
  explicit ProposalPlacesTest(const DriverOptions& options = {}) : cluster(3, options) {
    cluster.advance(milliseconds(300));
  }

  void propose(Rig& rig, lease::Duration timeout = seconds(30), std::size_t bytes = 1) {
    rig.handle(cluster.now(), Propose{Bytes(std::string(bytes, 'x')), cluster.in(timeout),
                                      answer.completion(), kSession});
  }
  /// The answer is there, and the command is in no list of any node.
  void expect_ended(ProposeStatus status) {
    EXPECT_EQ(answer.calls, 1);
    EXPECT_EQ(answer.value.status, status);
    for (std::uint64_t id = 1; id <= 3; ++id) {
      EXPECT_EQ(places(cluster.node(id)), kNothing) << "node " << id;
      EXPECT_TRUE(cluster.node(id).callers().table().empty()) << "node " << id;
    }
  }
  void expect_ended_after_a_while(ProposeStatus status) {
    EXPECT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
    cluster.advance(seconds(1));
    expect_ended(status);
  }
  /// Neither heard nor hearing, until its own leader is forgotten.
  void isolate(Rig& rig) {
    cluster.cut(rig.id().value());
    cluster.advance(seconds(2));
  }
  wire::ForwardReply refusal(wire::ForwardRefusal reason) {
    for (const Rig::Sent& sent : follower.take_sent()) {
      if (const auto* forward = std::get_if<wire::ForwardRequest>(&sent.message.payload)) {
        return {forward->incarnation, forward->sequence, reason, raft::kNobody};
      }
    }
    ADD_FAILURE() << "nothing was forwarded";
    return {};
  }
  void refuse(wire::ForwardRefusal reason) {
    follower.handle(
        cluster.now(),
        PeerMessageReceived{leader.peer(), {raft::GroupId(1), wire::Payload(refusal(reason))}});
  }

  Cluster cluster;
  Rig& leader = cluster.await_leader();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  Answer<ProposeResult> answer;
};

TEST_F(ProposalPlacesTest, Committed) {
  propose(leader);
  EXPECT_EQ(places(leader), kAppended) << "queued within a turn only";
  cluster.settle();
  expect_ended(ProposeStatus::committed);
}

TEST_F(ProposalPlacesTest, ForwardedAndCommitted) {
  propose(follower);
  EXPECT_EQ(places(follower), kForwarded);
  expect_ended_after_a_while(ProposeStatus::committed);
}

TEST_F(ProposalPlacesTest, AReadThroughTheLog) {
  Answer<ReadResult> read;
  leader.handle(cluster.now(),
                Read{raft::ReadMode::log, cluster.in(seconds(30)), read.completion()});
  follower.handle(cluster.now(),
                  Read{raft::ReadMode::log, cluster.in(seconds(30)), read.completion()});
  EXPECT_EQ(places(leader), kAppended);
  EXPECT_EQ(places(follower), kForwarded);
  EXPECT_TRUE(cluster.advance_until([&] { return read.calls == 2; }));
  EXPECT_EQ(places(leader), kNothing);
  EXPECT_EQ(places(follower), kNothing);
}

TEST_F(ProposalPlacesTest, HeldUntilItsDeadline) {
  isolate(follower);
  propose(follower, milliseconds(100));
  EXPECT_EQ(places(follower), kHeld);
  cluster.advance(milliseconds(100));
  expect_ended(ProposeStatus::dropped);
}

TEST_F(ProposalPlacesTest, HeldThenForwarded) {
  isolate(follower);
  propose(follower);
  EXPECT_EQ(places(follower), kHeld);
  cluster.heal();
  bool forwarded = false;
  cluster.lose = [&](raft::NodeId from, const Rig::Sent&) {
    if (from == follower.id()) forwarded |= places(follower) == kForwarded;
    return false;
  };
  expect_ended_after_a_while(ProposeStatus::committed);
  EXPECT_TRUE(forwarded || follower.leads());
}

TEST_F(ProposalPlacesTest, ForwardedUntilItsDeadline) {
  cluster.lose = [](raft::NodeId, const Rig::Sent& sent) {
    return std::holds_alternative<wire::ForwardRequest>(sent.message.payload);
  };
  propose(follower, milliseconds(1000));
  for (int i = 0; i < 9; ++i) {
    cluster.advance(milliseconds(100));
    EXPECT_EQ(places(follower), kForwarded) << "one entry, however often it is sent";
  }
  EXPECT_GE(follower.driver().counters().proposals_resent, 2U);
  cluster.advance(milliseconds(100));
  expect_ended(ProposeStatus::unknown);
}

TEST_F(ProposalPlacesTest, AppendedUntilItsDeadline) {
  cluster.cut(leader.id().value());
  propose(leader, milliseconds(100));
  EXPECT_EQ(places(leader), kAppended);
  cluster.advance(milliseconds(100));
  EXPECT_EQ(places(leader), (Places{0, 0, 0, 0, 1})) << "the entry is in the log all the same";
  cluster.advance(seconds(2));
  EXPECT_FALSE(leader.leads());
  expect_ended(ProposeStatus::unknown);
}

TEST_F(ProposalPlacesTest, CancelledWhereverItIs) {
  propose(follower);
  EXPECT_EQ(places(follower), kForwarded);
  follower.handle(cluster.now(), Cancel{kSession});
  cluster.settle();
  expect_ended(ProposeStatus::unknown);

  answer = {};
  propose(leader);
  leader.handle(cluster.now(), Cancel{kSession});
  EXPECT_EQ(places(leader), (Places{0, 0, 0, 0, 1}));
  cluster.settle();
  expect_ended(ProposeStatus::unknown);

  answer = {};
  isolate(follower);
  propose(follower);
  EXPECT_EQ(places(follower), kHeld);
  follower.handle(cluster.now(), Cancel{kSession});
  expect_ended(ProposeStatus::dropped);
}

TEST_F(ProposalPlacesTest, StoppedWhereverItIs) {
  propose(follower);
  propose(leader);
  const raft::NodeId third(6 - leader.id().value() - follower.id().value());
  isolate(cluster.node(third.value()));
  Answer<ProposeResult> held;
  cluster.node(third.value())
      .handle(cluster.now(), Propose{Bytes("x"), cluster.in(seconds(30)), held.completion()});
  EXPECT_EQ(places(cluster.node(third.value())), kHeld);
  propose(follower);
  propose(leader);
  EXPECT_EQ(places(follower), kForwarded);
  EXPECT_EQ(places(leader), kAppended);
  answer = {};
  for (std::uint64_t id = 1; id <= 3; ++id) cluster.node(id).handle(cluster.now(), Stop{});
  EXPECT_EQ(answer.calls, 2);
  answer.calls = 1;
  expect_ended(ProposeStatus::unknown);
  EXPECT_EQ(held.value.status, ProposeStatus::dropped);
}

TEST_F(ProposalPlacesTest, RefusedByTheLeader) {
  for (const auto reason : {wire::ForwardRefusal::overloaded, wire::ForwardRefusal::disk_full}) {
    answer = {};
    propose(follower);
    refuse(reason);
    expect_ended(ProposeStatus::dropped);
  }
}

TEST_F(ProposalPlacesTest, RefusedByALeaderNoMoreAndSentAgain) {
  propose(follower);
  refuse(wire::ForwardRefusal::not_leader);
  EXPECT_EQ(places(follower), kHeld);
  expect_ended_after_a_while(ProposeStatus::committed);
}

TEST_F(ProposalPlacesTest, RefusedAtOnce) {
  leader.handle(cluster.now(), StorageSpace{true});
  propose(leader);
  expect_ended(ProposeStatus::dropped);
  leader.handle(cluster.now(), StorageSpace{false});
  answer = {};
  propose(leader, seconds(0));
  expect_ended(ProposeStatus::dropped);
  answer = {};
  propose(follower, seconds(30), DriverOptions().command_bytes_max + 1);
  expect_ended(ProposeStatus::dropped);
}

// While the leadership moves, the core takes no commands.
TEST_F(ProposalPlacesTest, HeldWhileTheLeadershipMoves) {
  Answer<TransferResult> moved;
  leader.handle(cluster.now(),
                TransferLeadership{follower.id(), cluster.in(seconds(30)), moved.completion()});
  propose(leader);
  EXPECT_EQ(places(leader), kHeld);
  expect_ended_after_a_while(ProposeStatus::committed);
  EXPECT_EQ(moved.calls, 1);
}

TEST_F(ProposalPlacesTest, AppendedByALeaderThatLostItsPlace) {
  cluster.cut(leader.id().value());
  propose(leader);
  EXPECT_EQ(places(leader), kAppended);
  cluster.advance(seconds(2));
  ASSERT_FALSE(leader.leads());
  EXPECT_EQ(places(leader), kUnlisted);
  cluster.heal();
  expect_ended_after_a_while(ProposeStatus::committed);
}

TEST_F(ProposalPlacesTest, ForwardedToALeaderThatDied) {
  cluster.cut(leader.id().value());
  propose(follower);
  EXPECT_EQ(places(follower), kForwarded);
  bool unlisted = false;
  cluster.lose = [&](raft::NodeId, const Rig::Sent&) {
    unlisted |= places(follower) == kUnlisted;
    return false;
  };
  ASSERT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
  EXPECT_TRUE(unlisted) << "in a later term it is not sent again until it is proven lost";
  cluster.heal();
  expect_ended_after_a_while(ProposeStatus::committed);
}

/// Every bound is reached by one command.
class Bounded : public ProposalPlacesTest {
 protected:
  static DriverOptions options() {
    DriverOptions options;
    options.proposals_max = 1;
    options.uncommitted_bytes_max = 1;
    return options;
  }
  Bounded() : ProposalPlacesTest(options()) {}
};

TEST_F(Bounded, Overloaded) {
  Answer<ProposeResult> first;
  leader.handle(cluster.now(),
                Propose{Bytes("first"), cluster.in(seconds(30)), first.completion()});
  propose(leader);
  EXPECT_EQ(answer.calls, 1);
  EXPECT_EQ(places(leader), kAppended) << "the first only";
  Answer<ProposeResult> forwarded;
  follower.handle(cluster.now(),
                  Propose{Bytes("forwarded"), cluster.in(seconds(30)), forwarded.completion()});
  EXPECT_EQ(places(follower), kForwarded);
  for (const Rig::Sent& sent : follower.take_sent()) {
    leader.handle(cluster.now(), PeerMessageReceived{follower.peer(), sent.message});
  }
  EXPECT_EQ(places(leader), kAppended) << "what was refused is not queued";
  cluster.settle();
  EXPECT_TRUE(forwarded.value.overloaded);
  expect_ended(ProposeStatus::dropped);
}

}  // namespace
}  // namespace leasehold::replica::testing
