// Commands that are sent again: because a message was lost, or because nobody can tell what came of
// them and they may be executed once more.
#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace leasehold::replica {
namespace {

using std::chrono::seconds;
using testing::Answer;
using testing::Cluster;
using testing::milliseconds;
using testing::Rig;

const wire::ForwardRequest* forward_in(const Rig::Sent& sent) {
  return std::get_if<wire::ForwardRequest>(&sent.message.payload);
}

/// A leader that stays, and a follower that knows it.
class Resend : public ::testing::Test {
 protected:
  Resend() { cluster.advance(milliseconds(300)); }

  Propose propose(const std::string& command, Answer<ProposeResult>& answer,
                  lease::Duration timeout = seconds(30)) {
    return {Bytes(command), cluster.in(timeout), answer.completion()};
  }
  lease::Duration election_timeout() const { return DriverOptions().core.timing.election_timeout; }
  /// Loses the next `count` forwards, and notes all of them.
  void lose_forwards(std::size_t count) {
    cluster.lose = [this, count](raft::NodeId, const Rig::Sent& sent) {
      const wire::ForwardRequest* forward = forward_in(sent);
      if (forward == nullptr) return false;
      forwards.push_back(*forward);
      return forwards.size() <= count;
    };
  }

  Cluster cluster{3};
  Rig& leader = cluster.await_leader();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  std::vector<wire::ForwardRequest> forwards;
};

TEST_F(Resend, AForwardThatWasLostIsSentAgainUnderItsSequence) {
  lose_forwards(2);
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose("a", answer));
  cluster.advance(election_timeout() - milliseconds(10));
  EXPECT_EQ(forwards.size(), 1U);
  cluster.advance(milliseconds(20));
  EXPECT_EQ(forwards.size(), 2U);
  EXPECT_EQ(answer.calls, 0);
  cluster.advance(election_timeout() + milliseconds(100));
  ASSERT_EQ(forwards.size(), 3U);
  EXPECT_EQ(forwards[2].sequence, forwards[0].sequence);
  EXPECT_EQ(forwards[2].term, forwards[0].term);
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::committed);
  EXPECT_EQ(follower.driver().counters().proposals_resent, 2U);
  EXPECT_EQ(follower.driver().counters().proposals_forwarded, 1U);
  // Once it is answered, nothing is sent any more.
  cluster.advance(seconds(3));
  EXPECT_EQ(forwards.size(), 3U);
  EXPECT_EQ(follower.machine().commands(), (std::vector<std::string>{"a"}));
}

TEST_F(Resend, ACommandWhoseFirstSendWasOnlyLateIsExecutedOnce) {
  lose_forwards(1);
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose("once", answer));
  cluster.advance(seconds(1));
  ASSERT_EQ(answer.calls, 1);
  const PeerMessageReceived late{follower.peer(),
                                 {raft::GroupId(1), wire::Payload(forwards.front())}};
  leader.handle(cluster.now(), late);
  cluster.advance(seconds(1));
  EXPECT_EQ(leader.machine().commands(), (std::vector<std::string>{"once"}));
  EXPECT_EQ(answer.calls, 1);
}

// The answer is slow, not the message lost: nobody hears of the commit.
TEST_F(Resend, WhatTheLeaderHasTakenIsNotTakenAgain) {
  Answer<ProposeResult> answer;
  const raft::NodeId third(6 - leader.id().value() - follower.id().value());
  cluster.cut(third.value());
  // The follower hears heartbeats only.
  cluster.lose = [this](raft::NodeId from, const Rig::Sent& sent) {
    const auto* message = std::get_if<raft::Message>(&sent.message.payload);
    const auto* append = message == nullptr ? nullptr : std::get_if<raft::AppendRequest>(message);
    return from == leader.id() && append != nullptr && !append->entries.empty();
  };
  follower.handle(cluster.now(), propose("slow", answer));
  cluster.advance(milliseconds(800));
  EXPECT_GE(follower.driver().counters().proposals_resent, 2U);
  EXPECT_EQ(leader.driver().counters().forwards_refused,
            follower.driver().counters().proposals_resent);
  cluster.lose = nullptr;
  cluster.heal();
  EXPECT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
  cluster.advance(seconds(1));
  EXPECT_EQ(leader.machine().commands(), (std::vector<std::string>{"slow"}));
}

TEST_F(Resend, ASlowLeaderIsNotBuried) {
  constexpr std::size_t kCommands = 3000;
  lose_forwards(kCommands);
  std::vector<Answer<ProposeResult>> answers(kCommands);
  std::vector<Event> events;
  for (std::size_t i = 0; i < kCommands; ++i) {
    events.push_back(propose(std::to_string(i), answers[i]));
  }
  follower.driver().handle_batch(cluster.now(), events);
  cluster.advance(election_timeout() - milliseconds(10));
  ASSERT_EQ(forwards.size(), kCommands);
  for (std::size_t round = 1; round <= 2; ++round) {
    cluster.advance(election_timeout());
    EXPECT_EQ(forwards.size(), kCommands + round * 1024) << "one bound in one election timeout";
  }
  // The oldest first, and each in its turn.
  std::set<std::uint64_t> again;
  for (std::size_t i = kCommands; i < forwards.size(); ++i) again.insert(forwards[i].sequence);
  EXPECT_EQ(again.size(), 2048U);
  EXPECT_EQ(forwards[kCommands].sequence, forwards[0].sequence);
  cluster.advance(election_timeout());
  for (const auto& answer : answers) ASSERT_EQ(answer.value.status, ProposeStatus::committed);
  cluster.advance(seconds(2));
  EXPECT_EQ(forwards.size(), 2 * kCommands);
}

TEST_F(Resend, TheBoundIsOfATimeNotOfAMoment) {
  constexpr std::size_t kCommands = 3000;
  lose_forwards(100 * kCommands);
  std::vector<Answer<ProposeResult>> answers(kCommands);
  for (std::size_t i = 0; i < kCommands; ++i) {
    follower.handle(cluster.now(), propose(std::to_string(i), answers[i]));
    if (i % 60 == 0) cluster.advance(milliseconds(5));
  }
  const std::size_t before = forwards.size();
  cluster.advance(10 * election_timeout());
  EXPECT_GE(forwards.size(), before + 9 * 1024);
  EXPECT_LE(forwards.size(), before + 11 * 1024);
}

// A node that forwards all the time does not wake up for each command that was answered long ago.
TEST_F(Resend, WhatIsAnsweredIsNoReasonToWakeUp) {
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose("a", answer));
  cluster.settle();
  cluster.advance(milliseconds(20));
  ASSERT_EQ(answer.calls, 1);
  follower.handle(cluster.now(), Tick{});
  EXPECT_EQ(follower.driver().next_deadline(), follower.driver().core().next_deadline());
}

TEST_F(Resend, LargeCommandsCountByTheirBytes) {
  lose_forwards(4);
  std::vector<Answer<ProposeResult>> answers(4);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t bytes = i == 1 ? 3'000'000 : 500'000;
    follower.handle(cluster.now(), propose(std::string(bytes, 'x'), answers[i]));
  }
  cluster.advance(election_timeout() + milliseconds(10));
  EXPECT_EQ(forwards.size(), 5U) << "the second is larger than what is left";
  cluster.advance(election_timeout());
  EXPECT_EQ(forwards.size(), 6U) << "but one goes out in any case";
  cluster.advance(2 * election_timeout());
  EXPECT_EQ(forwards.size(), 6U) << "which uses up the time of three";
  cluster.advance(election_timeout());
  EXPECT_EQ(forwards.size(), 8U);
  cluster.advance(milliseconds(100));
  for (const auto& answer : answers) EXPECT_EQ(answer.value.status, ProposeStatus::committed);
}

TEST_F(Resend, InALaterTermACommandWaitsForItsProof) {
  lose_forwards(1000);
  Answer<ProposeResult> answer;
  follower.handle(cluster.now(), propose("a", answer));
  cluster.advance(milliseconds(10));
  cluster.cut(leader.id().value());
  ASSERT_TRUE(cluster.advance_until([&] {
    return forwards.back().term > forwards.front().term || (follower.leads() && answer.calls > 0);
  }));
  for (const wire::ForwardRequest& forward : forwards) {
    const bool first = forward.sequence == forwards[0].sequence;
    EXPECT_EQ(first, forward.term == forwards[0].term) << "a fresh sequence with each proof";
  }
}

/// A follower that was sent a snapshot in place of what its command is among.
class Repeatable : public ::testing::Test {
 protected:
  static DriverOptions small_limits() {
    DriverOptions options;
    options.log_tail_bytes = 4000;
    options.log_cut_bytes = 4000;
    return options;
  }

  /// The leader takes "hidden"; its origin hears of nothing until a snapshot comes.
  void hide(bool repeatable) {
    cluster.advance(milliseconds(300));
    Propose event{Bytes("hidden"), cluster.in(std::chrono::hours(1)), answer.completion()};
    event.repeatable = repeatable;
    origin.handle(cluster.now(), std::move(event));
    cluster.lose = [this](raft::NodeId from, const Rig::Sent& sent) {
      return from != origin.id() && sent.to == origin.id();
    };
    cluster.settle();
    for (int i = 0; i < 200; ++i) {
      Answer<ProposeResult> written;
      first.handle(cluster.now(), Propose{Bytes(std::string(100, 'x')), cluster.in(seconds(30)),
                                          written.completion()});
      cluster.advance(milliseconds(5));
      ASSERT_EQ(written.value.status, ProposeStatus::committed);
    }
    ASSERT_EQ(answer.calls, 0);
    cluster.lose = nullptr;
  }
  long executions(Rig& rig) {
    const std::vector<std::string>& commands = rig.machine().commands();
    return std::count(commands.begin(), commands.end(), "hidden");
  }

  Cluster cluster{3, small_limits()};
  Rig& first = cluster.await_leader();
  Rig& origin = cluster.node(first.id() == raft::NodeId(1) ? 2 : 1);
  Answer<ProposeResult> answer;
};

TEST_F(Repeatable, WhatASnapshotHidIsSentAgainAndAnswered) {
  hide(true);
  ASSERT_TRUE(cluster.advance_until([&] { return answer.calls > 0; }));
  EXPECT_EQ(answer.value.status, ProposeStatus::committed);
  EXPECT_EQ(origin.driver().counters().snapshots_installed, 1U);
  cluster.advance(seconds(1));
  EXPECT_EQ(executions(first), 2) << "a state machine without a table executes it twice";
  EXPECT_EQ(answer.calls, 1);
}

TEST_F(Repeatable, AnyOtherIsNotSentAgain) {
  hide(false);
  cluster.advance(seconds(2));
  ASSERT_EQ(origin.driver().counters().snapshots_installed, 1U);
  EXPECT_EQ(executions(first), 1);
  EXPECT_EQ(answer.calls, 0) << "it might still come";
}

// It was not executed the second time, and nobody knows about the first.
TEST_F(Repeatable, OnceSentAgainNoAnswerSaysThatItWasNotExecuted) {
  hide(true);
  wire::ForwardRequest second;
  cluster.lose = [&](raft::NodeId, const Rig::Sent& sent) {
    if (forward_in(sent) == nullptr) return false;
    if (origin.driver().counters().snapshots_installed > 0) second = *forward_in(sent);
    return true;
  };
  ASSERT_TRUE(cluster.advance_until([&] { return second.sequence != 0; }));
  origin.handle(
      cluster.now(),
      PeerMessageReceived{first.peer(),
                          {raft::GroupId(1), wire::Payload(wire::ForwardReply{
                                                 second.incarnation, second.sequence,
                                                 wire::ForwardRefusal::overloaded, first.id()})}});
  ASSERT_EQ(answer.calls, 1);
  EXPECT_EQ(answer.value.status, ProposeStatus::unknown);
  EXPECT_FALSE(answer.value.overloaded);
}

}  // namespace
}  // namespace leasehold::replica
