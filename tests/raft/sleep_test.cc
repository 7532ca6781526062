// A group at rest: nobody looks, and its process says when somebody has to.
#include "rest_group.h"

#include <variant>
#include <vector>

namespace leasehold::raft::test {
namespace {

// It does not look either: its process does, for all leaders that rest on the same promises.
TEST_F(Rest, NobodyLooksAndTheViewGoesOn) {
  come_to_rest();
  const LeaseState view = group.replica(leader).view;
  ASSERT_NE(view.lease_class, kNoClass);
  for (int id = 1; id <= 3; ++id) {
    EXPECT_EQ(group.core(id).next_deadline(), PromiseInstant::never()) << id;
  }
  beats(10 * kLease);
  EXPECT_EQ(group.replica(leader).view, view);
  EXPECT_LE(view.end, group.now().holder);
  EXPECT_GT(group.view_end(leader), group.now().holder);
  EXPECT_EQ(group.core(leader).lease_end(), group.view_end(leader));
}

TEST_F(Rest, ItsOwnRoundsFollowWhenTheBeatsAreNotHeard) {
  come_to_rest();
  beats(kLease, {1, 2, 3});
  EXPECT_GT(sent, 0);
  EXPECT_EQ(group.core(leader).lease_class(), kNoClass);
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder) << "by its own rounds";
  come_to_rest();
  EXPECT_EQ(sent_in_ten(), 0);
  EXPECT_NE(group.core(leader).lease_class(), kNoClass);
}

TEST_F(Rest, ALeaderThatNobodyHearsStepsDown) {
  come_to_rest();
  let_through = [](const Envelope&) { return false; };
  beats(3 * kLease, {1, 2, 3});
  EXPECT_NE(group.core(leader).role(), Role::leader);
  EXPECT_EQ(group.replica(leader).view.lease_class, kNoClass);
  EXPECT_LE(group.view_end(leader), group.now().holder);
}

// Its lease has gone on for long since it looked last, and both members let go at once.
TEST_F(Rest, OneThatWakesLateStandsOnTheBeatsBefore) {
  come_to_rest();
  beats(10 * kLease);
  const std::vector<int> others = group.others(leader);
  const HolderInstant end = group.view_end(leader);
  let_through = [](const Envelope&) { return false; };
  Processes& processes = group.processes();
  for (const int other : others) group.restart_process(other);
  processes.begin_beat(leader);
  for (const int other : others) processes.hear(other, processes.beat_to(leader, other));
  const auto first = processes.reply(others[0], leader);
  const auto second = processes.reply(others[1], leader);
  ASSERT_TRUE(first.has_value() && second.has_value());
  group.host(leader).promises().reply(group.now(), group.peer_of(others[0]), first->message);
  processes.acknowledge(leader, *second);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_EQ(group.core(leader).lease_end(), end) << "what was promised before counts";
}

TEST_F(Rest, AMemberThatAnswersAgainEndsTheRest) {
  const int member = group.others(leader)[0];
  demote(member);
  group.isolate(member);
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  beats(4 * kLease, {member});
  ASSERT_NE(group.core(leader).lease_class(), kNoClass);
  group.heal();
  beats(3 * exact().heartbeat);
  EXPECT_EQ(group.core(member).commit_index(), group.core(leader).commit_index());
  EXPECT_EQ(sent_in_ten(), 0);
}

TEST_F(Rest, ALeaderJoinsNoClassBeforeABeatOfItsOwn) {
  come_to_rest();
  const int next = group.others(leader)[0];
  group.beat(next);
  ASSERT_EQ(group.core(leader).transfer(group.now(), id_of(next)), std::nullopt);
  group.drain(leader);
  group.settle();
  const Core& core = group.core(next);
  ASSERT_EQ(core.role(), Role::leader);
  for (int i = 0; i < 5 && !core.at_rest(); ++i) group.run(exact().heartbeat);
  ASSERT_TRUE(core.at_rest());
  EXPECT_EQ(core.lease_class(), kNoClass);
  leader = next;
  beats(2 * kLease);
  EXPECT_NE(core.lease_class(), kNoClass);
}

// Its process is stopped for a while, answers the beats that have waited, and has missed an append.
TEST_F(Rest, AMemberThatAnswersLateEndsTheRest) {
  const int member = group.others(leader)[0];
  demote(member);
  group.isolate(member);
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  std::vector<Processes::Beat> waiting;
  for (Duration at{0}; at < 4 * kLease; at += exact().heartbeat) {
    beats(exact().heartbeat, {member});
    waiting.push_back(group.processes().beat_to(leader, member));
  }
  ASSERT_NE(group.core(leader).lease_class(), kNoClass);
  group.heal();
  for (const Processes::Beat& beat : waiting) {
    group.processes().hear(member, beat);
    if (const auto reply = group.processes().reply(member, leader)) {
      group.processes().acknowledge(leader, *reply);
    }
  }
  beats(3 * exact().heartbeat);
  EXPECT_EQ(group.core(member).commit_index(), group.core(leader).commit_index());
}

// The rounds that its lease rests on are those of the numbers that it follows from now on.
TEST_F(Rest, AChangeOfTheSettingsEndsIt) {
  come_to_rest();
  ASSERT_NE(group.core(leader).lease_class(), kNoClass);
  GroupSettings careful;
  careful.timing = exact();
  careful.timing.margin = std::chrono::milliseconds(200);
  const HolderInstant before = group.view_end(leader);
  ASSERT_TRUE(std::holds_alternative<LogId>(group.change_settings(leader, careful)));
  EXPECT_EQ(group.replica(leader).view.lease_class, kNoClass);
  EXPECT_LE(group.view_end(leader), before - std::chrono::milliseconds(200));
  come_to_rest();
  EXPECT_NE(group.core(leader).lease_class(), kNoClass);
  EXPECT_EQ(sent_in_ten(), 0);
}

TEST_F(Rest, AWriteShowsNoClassBeforeItIsCommitted) {
  come_to_rest();
  group.silence();
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  EXPECT_EQ(group.core(leader).lease_class(), kNoClass);
  EXPECT_EQ(group.replica(leader).view.lease_class, kNoClass);
  EXPECT_GT(group.replica(leader).view.end, group.now().holder);
}

TEST_F(Rest, AFollowerWakesWhenTheSupportOfItsLeaderEnds) {
  come_to_rest();
  group.processes().crash(leader);
  const int other = group.others(leader)[0];
  ASSERT_EQ(group.core(other).next_deadline(), PromiseInstant::never());
  group.run(kLease + 3 * exact().election_timeout);
  const bool first = group.core(other).role() == Role::leader;
  EXPECT_TRUE(first || group.core(group.others(leader)[1]).role() == Role::leader);
}

TEST_F(Rest, AFollowerWakesWhenItsLeadersProcessHasEnded) {
  come_to_rest();
  const Peer gone = group.host(leader).self();
  group.processes().crash(leader);
  for (const int other : group.others(leader)) group.processes().ended(other, gone);
  group.run(kLease / 2);
  const std::vector<int> others = group.others(leader);
  EXPECT_TRUE(group.core(others[0]).role() == Role::leader ||
              group.core(others[1]).role() == Role::leader);
}

// The next process of the leader's host leads nothing; it beats for other groups.
TEST_F(Rest, AFollowerWakesWhenAnotherProcessOfTheHolderBeats) {
  come_to_rest();
  group.restart_process(leader);
  group.isolate(leader);
  for (int i = 0; i < 30; ++i) {
    group.run(exact().heartbeat);
    group.beat(leader);
  }
  const std::vector<int> others = group.others(leader);
  EXPECT_TRUE(group.core(others[0]).role() == Role::leader ||
              group.core(others[1]).role() == Role::leader);
}

}  // namespace
}  // namespace leasehold::raft::test
