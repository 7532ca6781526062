// Groups that share promises, while their members change, lag or keep no state.
#include "rest_group.h"

#include <gtest/gtest.h>

#include <utility>
#include <variant>
#include <vector>

namespace leasehold::raft::test {
namespace {

NodeId id_of(int id) {
  return NodeId(static_cast<std::uint64_t>(id));
}

void go_on(SharedGroup& group, int leader, Duration span, const std::vector<int>& without = {}) {
  for (Duration at{0}; at < span; at += exact().heartbeat) {
    group.run(exact().heartbeat);
    group.beat(leader, without);
  }
}

WantedMembers voters_but(int size, int gone) {
  WantedMembers wanted;
  for (int id = 1; id <= size; ++id) {
    if (id != gone) wanted.push_back(voter(static_cast<std::uint64_t>(id)));
  }
  return wanted;
}

bool made(const Answer& answer) {
  return std::holds_alternative<LogId>(answer);
}

/// Of three members `again` was removed.
struct WithoutOne {
  WithoutOne() {
    EXPECT_TRUE(made(group.change(leader, voters_but(3, again))));
    go_on(group, leader, 4 * kLease);
  }
  SharedGroup group;
  int leader = group.bound_leader();
  int again = group.others(leader)[0];
  int other = group.others(leader)[1];
};

// What it had promised as a member before says nothing of the member that it is now, although its
// process has acknowledged every beat.
TEST(SharedMembers, OneThatIsAddedAgainCountsOnceItHasBound) {
  WithoutOne start;
  SharedGroup& group = start.group;
  const int leader = start.leader;
  const int again = start.again;
  ASSERT_FALSE(group.core(leader).progress().contains(id_of(again)));

  // The group does not reach it; the beats of its process do.
  group.filter = [&](const Envelope& e) { return e.to != id_of(again) && e.from != id_of(again); };
  const auto number = static_cast<std::uint64_t>(again);
  ASSERT_TRUE(made(group.change(leader, with(voters_but(3, again), learner(number)))));
  go_on(group, leader, ms(500));
  EXPECT_FALSE(group.core(leader).progress().at(id_of(again)).bound);
  EXPECT_FALSE(group.core(leader).at_rest());

  group.filter = [](const Envelope&) { return true; };
  go_on(group, leader, 2 * kLease);
  EXPECT_TRUE(group.core(leader).progress().at(id_of(again)).bound);
  ASSERT_TRUE(made(group.change(leader, voters({1, 2, 3}))));
  go_on(group, leader, 2 * kLease);
  // Now the lease may rest on it alone.
  group.silence();
  group.beats(leader, 3 * kLease, {start.other});
  EXPECT_EQ(group.core(leader).lease_end(), group.now().holder + kLease);
}

// It votes, has the whole log, and its process acknowledges every beat.
TEST(SharedMembers, OneThatWasAddedAgainAndNeverBoundMakesNoLease) {
  WithoutOne start;
  SharedGroup& group = start.group;
  const int leader = start.leader;
  const int again = start.again;
  // None of its answers says that it is bound.
  std::vector<AppendReply> unbound;
  group.filter = [&](const Envelope& e) {
    const auto* reply = std::get_if<AppendReply>(&e.message);
    if (reply == nullptr || e.from != id_of(again) || !reply->bound) return true;
    unbound.push_back(*reply);
    unbound.back().bound.reset();
    return false;
  };
  const auto go_on_unbound = [&](Duration span) {
    for (Duration at{0}; at < span; at += exact().heartbeat) {
      go_on(group, leader, exact().heartbeat);
      while (!unbound.empty()) {
        for (const AppendReply& reply : std::exchange(unbound, {}))
          group.step(again, leader, reply);
        group.settle();
      }
    }
  };
  const auto number = static_cast<std::uint64_t>(again);
  ASSERT_TRUE(made(group.change(leader, with(voters_but(3, again), learner(number)))));
  go_on_unbound(2 * kLease);
  ASSERT_TRUE(made(group.change(leader, voters({1, 2, 3}))));
  go_on_unbound(2 * kLease);
  ASSERT_TRUE(group.core(leader).membership().is_voter(id_of(again)));
  EXPECT_FALSE(group.core(leader).progress().at(id_of(again)).bound);
  group.silence();
  group.beats(leader, 3 * kLease, {start.other});
  EXPECT_LE(group.core(leader).lease_end(), group.now().holder);
}

// Its promise is bound by the first heartbeat that it answers, whatever it lacks: the lease may
// rest on it, and the group does not rest before it has everything.
TEST(SharedMembers, OneThatNeedsASnapshotIsBoundAndKeepsTheGroupAwake) {
  SharedGroup group;
  group.sends_snapshots = false;
  const int leader = group.bound_leader();
  const int behind = group.others(leader)[0];
  const int other = group.others(leader)[1];
  group.isolate(behind);
  for (int i = 0; i < 5; ++i) group.propose(leader, "value");
  group.settle();
  go_on(group, leader, 4 * kLease, {behind});  // its promise is over
  group.cut_log(leader, group.core(leader).commit_index());
  group.heal();
  go_on(group, leader, kLease);
  const Progress& progress = group.core(leader).progress().at(id_of(behind));
  ASSERT_EQ(progress.state, ProgressState::snapshot);
  EXPECT_TRUE(progress.bound);
  EXPECT_FALSE(group.core(leader).at_rest());
  group.cut(leader, other);
  go_on(group, leader, 4 * kLease, {other});
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder);

  group.heal();
  group.sends_snapshots = true;
  group.send_snapshot(leader, group.replica(leader).intents.back());
  go_on(group, leader, 4 * kLease);
  EXPECT_EQ(group.replica(behind).machine, group.replica(leader).machine);
  EXPECT_TRUE(group.core(leader).at_rest());
}

TEST(SharedMembers, AWitnessIsBoundAsAnyVoter) {
  SharedGroup group(3, exact(), 1, {3});
  const int leader = group.bound_leader();
  ASSERT_NE(leader, 3);
  go_on(group, leader, kLease);
  EXPECT_TRUE(group.core(leader).at_rest());
  group.silence();
  group.beats(leader, 3 * kLease, {3 - leader});
  EXPECT_EQ(group.core(leader).lease_end(), group.now().holder + kLease);
  // Its vote would end that, and is refused.
  EXPECT_FALSE(group.votes(3, 3 - leader, 9));
}

// It leads to transfer, and what acknowledges its beats is no lease of a group.
TEST(SharedMembers, AWitnessThatLeadsHoldsNoLeaseByBeats) {
  SharedGroup group(3, exact(), 1, {3});
  const int leader = group.bound_leader();
  group.propose(leader, "value");
  group.settle();
  const int other = 3 - leader;
  // Only the witness has the newest entry.
  group.isolate(other);
  group.propose(leader, "newest");
  group.settle();
  group.crash(leader);
  group.heal();
  group.filter = [&](const Envelope& e) {
    return e.to != id_of(other) || !std::holds_alternative<AppendRequest>(e.message);
  };
  group.jump(4 * kLease);
  for (int i = 0; i < 40 && group.core(3).role() != Role::leader; ++i) {
    group.jump(ms(100));
    group.tick(3);
    group.settle();
  }
  ASSERT_EQ(group.core(3).role(), Role::leader);
  for (int i = 0; i < 10; ++i) {
    group.jump(exact().heartbeat);
    group.beat(3);
    group.tick(3);
    EXPECT_EQ(group.core(3).lease_end(), HolderInstant::earliest());
    EXPECT_EQ(group.core(3).lease_class(), kNoClass);
  }
}

}  // namespace
}  // namespace leasehold::raft::test
