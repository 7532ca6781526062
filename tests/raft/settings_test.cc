// The settings of the group: which numbers a node follows, and what a change of them does to leases
// and promises (lease/README.md, rules 31 to 35).

#include "change_support.h"

#include <gtest/gtest.h>

#include <utility>

namespace leasehold::raft::test {
namespace {

const lease::Timing kTiming;

GroupSettings settings(lease::Timing timing = {}) {
  GroupSettings settings;
  settings.timing = timing;
  return settings;
}

/// What the tests change.
lease::Timing numbers(std::int64_t lease_ms, std::int64_t drift_ppm = 100'000) {
  lease::Timing timing;
  timing.lease = ms(lease_ms);
  timing.max_clock_drift_ppm = drift_ppm;
  return timing;
}

SettingsObstacle obstacle(const std::variant<LogId, SettingsRefused>& answer) {
  const auto* refused = std::get_if<SettingsRefused>(&answer);
  EXPECT_NE(refused, nullptr);
  return refused != nullptr ? refused->obstacle : SettingsObstacle::not_leader;
}

/// The group agrees on `wanted`, and all nodes have the entry.
void agree(Group& group, int leader, const GroupSettings& wanted) {
  EXPECT_TRUE(std::holds_alternative<LogId>(group.change_settings(leader, wanted)));
  group.settle();
  group.run(ms(250));
}

/// When the newest round of `leader` began.
HolderInstant newest_round(Group& group, int leader) {
  group.jump(group.core(leader).next_deadline() - group.now().promise);
  const HolderInstant began = group.now().holder;
  group.tick(leader);
  group.settle();
  return began;
}

// ---- Whose numbers ----

TEST(Settings, ANodeFollowsItsOwnUntilTheGroupHasSome) {
  Group group(3);
  const int leader = group.elect();
  EXPECT_EQ(group.core(leader).timing(), kTiming);
  agree(group, leader, settings(numbers(2000)));
  for (int id = 1; id <= 3; ++id) EXPECT_EQ(group.core(id).timing(), numbers(2000)) << id;
  const auto changed = events_of<SettingsChanged>(group.replica(leader));
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].settings, settings(numbers(2000)));
}

// A node that is started with no drift and no margin, among others that allow for both: the hole
// that the group's settings close.
TEST(Settings, ALeaderThatTrustsItsClockTooMuchUsesTheGroupsNumbers) {
  lease::Timing reckless = numbers(1000, 0);
  reckless.margin = ms(0);
  Group group(3);
  const int leader = group.elect();
  agree(group, leader, settings());
  group.restart(leader, reckless);
  for (int id = 1; id <= 3; ++id) {
    if (id != leader) group.restart(id);
  }
  // Only the reckless one campaigns.
  while (group.core(leader).role() != Role::leader) {
    group.tick(leader);
    group.settle();
    group.jump(ms(50));
  }
  const HolderInstant began = newest_round(group, leader);
  EXPECT_EQ(group.core(leader).lease_end(), began + kTiming.usable(ms(1000)));
}

TEST(Settings, ALeaderWhoseClockMayDriftMoreUsesLess) {
  Group group(3);
  const int leader = group.elect();
  agree(group, leader, settings(numbers(1000, 10'000)));
  const HolderInstant began = newest_round(group, leader);
  // Its own bound is 10 %, the group's 1 %.
  EXPECT_EQ(group.core(leader).lease_end(), began + kTiming.usable(ms(1000)));
}

TEST(Settings, AVoterWhoseClockMayDriftMorePromisesLonger) {
  Group group(3);
  AppendRequest m;
  m.term = Term(4);
  m.round = Round(1);
  m.lease = ms(1000);
  m.drift_ppm = 100'000;
  group.step(1, 3, m);
  EXPECT_EQ(group.core(3).promise().until(), group.now().promise + ms(1000));
  m.round = Round(2);
  m.drift_ppm = 0;
  group.step(1, 3, m);
  EXPECT_EQ(group.core(3).promise().until(), group.now().promise + ms(1100));
  EXPECT_EQ(group.core(3).hard_state().promise.duration, ms(1100));
  m.round = Round(3);
  m.drift_ppm = 200'000;
  group.step(1, 3, m);
  EXPECT_EQ(group.core(3).promise().until(), group.now().promise + ms(1100));
}

// Its promise was given by a clock within 1 %, and no record says so.
TEST(Settings, ARestartedVoterPromisesByTheClockThatItHasNow) {
  Group group(3, numbers(1000, 10'000));
  const int leader = group.elect();
  newest_round(group, leader);
  const int voter_id = leader % 3 + 1;
  group.restart(voter_id, numbers(1000, 300'000));
  EXPECT_EQ(group.core(voter_id).promise().until(), group.now().promise + ms(1300));
  EXPECT_EQ(group.core(voter_id).hard_state().promise.duration, ms(1000));
}

/// A follower that could not renew a lease in time: its U is 418 ms, and three heartbeats of the
/// group are 600.
int add_loose_clock(Group& group, int leader) {
  lease::Timing tight = numbers(1000, 10'000);
  tight.heartbeat = ms(200);
  agree(group, leader, settings(tight));
  const int follower = leader % 3 + 1;
  group.restart(follower, numbers(1000, 400'000));
  group.settle();
  return follower;
}

TEST(Settings, ANodeThatCouldNotRenewInTimeCampaignsLast) {
  Group group(3);
  const int leader = group.elect();
  const int follower = add_loose_clock(group, leader);
  // The timeouts of others are below twice the election timeout.
  EXPECT_GE(group.core(follower).next_deadline(),
            group.core(follower).promise().until() + 2 * kTiming.election_timeout);
  group.crash(leader);
  group.run(ms(6000));
  EXPECT_NE(group.core(follower).role(), Role::leader);
  const int third = 6 - leader - follower;
  EXPECT_EQ(group.core(third).role(), Role::leader);
  // With the only other node back, which lacks an entry, the group needs this one.
  group.isolate(leader);
  ASSERT_TRUE(group.propose(third, "x"));
  group.run(ms(100));
  group.heal();
  group.crash(third);
  group.restart(leader);
  group.run(ms(6000));
  EXPECT_EQ(group.core(follower).role(), Role::leader);
  const auto answer = group.read(follower, ReadMode::lease);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->index.has_value());
}

TEST(Settings, ANodeThatCouldNotRenewInTimeIsNotHandedTheLeadership) {
  Group group(3);
  const int leader = group.elect();
  const int target = add_loose_clock(group, leader);
  group.run(ms(500));
  ASSERT_FALSE(
      group.core(leader).transfer(group.now(), NodeId(static_cast<std::uint64_t>(target))));
  group.drain(leader);
  group.run(ms(1000));
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_GE(events_of<TokenUnused>(group.replica(target)).size(), 1U);
}

TEST(Settings, ThatTheLeadersOwnClockCouldNotHoldAreRefused) {
  Group group(3);
  const int leader = group.elect();
  lease::Timing tight = numbers(1000, 10'000);
  tight.heartbeat = ms(300);
  ASSERT_TRUE(tight.validate().ok());
  const auto answer = group.change_settings(leader, settings(tight));
  EXPECT_EQ(obstacle(answer), SettingsObstacle::invalid);
  EXPECT_NE(std::get<SettingsRefused>(answer).why.find("larger clock drift"), std::string::npos);
  GroupSettings off = settings(tight);
  off.lease_reads = false;
  EXPECT_TRUE(std::holds_alternative<LogId>(group.change_settings(leader, off)));
}

// ---- A change ----

TEST(Settings, AreRefusedWithAReason) {
  Group group(3);
  EXPECT_EQ(obstacle(group.change_settings(1, settings())), SettingsObstacle::not_leader);
  const int leader = group.elect();
  const int other = leader % 3 + 1;
  const auto refused = group.change_settings(other, settings());
  EXPECT_EQ(obstacle(refused), SettingsObstacle::not_leader);
  EXPECT_EQ(std::get<SettingsRefused>(refused).node, NodeId(static_cast<std::uint64_t>(leader)));
  agree(group, leader, settings());
  EXPECT_EQ(obstacle(group.change_settings(leader, settings())), SettingsObstacle::already_so);
  EXPECT_EQ(obstacle(group.change_settings(leader, settings(numbers(100)))),
            SettingsObstacle::invalid);
  EXPECT_EQ(obstacle(group.change_settings(leader, settings(numbers(10'001)))),
            SettingsObstacle::step_too_long);
  group.isolate(leader);
  EXPECT_TRUE(
      std::holds_alternative<LogId>(group.change_settings(leader, settings(numbers(10'000)))));
  EXPECT_EQ(obstacle(group.change_settings(leader, settings())),
            SettingsObstacle::change_under_way);
  EXPECT_EQ(std::get<ChangeRefused>(group.change(leader, {voter(1), voter(2)})).obstacle,
            ChangeObstacle::change_under_way);
}

// What is not committed may be replaced by the entry of another leader.
TEST(Settings, ThatAreReplacedAreFollowedNoMore) {
  Group group(3);
  const int leader = group.elect();
  agree(group, leader, settings());
  group.isolate(leader);
  group.change_settings(leader, settings(numbers(3000)));
  EXPECT_EQ(group.core(leader).timing(), numbers(3000));
  group.run(ms(3000));
  group.heal();
  group.run(ms(3000));
  for (int id = 1; id <= 3; ++id) EXPECT_EQ(group.core(id).timing(), kTiming) << id;
}

TEST(Settings, OutliveARestartAndACutLog) {
  Group group(3);
  const int leader = group.elect();
  agree(group, leader, settings(numbers(2000)));
  group.propose(leader, "x");
  group.run(ms(250));
  group.cut_log(leader, group.core(leader).commit_index());
  group.crash(leader);
  group.restart(leader);
  EXPECT_EQ(group.core(leader).timing(), numbers(2000));
}

TEST(Settings, StayAcrossAChangeOfMembers) {
  Group group(3);
  const int leader = group.elect();
  agree(group, leader, settings(numbers(2000)));
  WantedMembers two;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (static_cast<int>(id) != leader % 3 + 1) two.push_back(voter(id));
  }
  ASSERT_TRUE(std::holds_alternative<LogId>(group.change(leader, two)));
  group.run(ms(500));
  EXPECT_FALSE(group.core(leader).membership().joint());
  EXPECT_EQ(group.core(leader).membership().voters.size(), 2U);
  EXPECT_EQ(group.core(leader).timing(), numbers(2000));
}

// ---- Leases across a change ----

// When the change is done, an operator may let a clock drift more. No lease of the smaller bound
// may be left then.
TEST(Settings, AMoreCarefulNumberShortensTheLeaseAtOnce) {
  Group group(3);
  const int leader = group.elect();
  agree(group, leader, settings(numbers(1000, 10'000)));
  for (int id = 1; id <= 3; ++id) group.replica(id).options.timing = numbers(1000, 10'000);
  group.restart(leader, numbers(1000, 10'000));
  const int next = group.elect();
  const HolderInstant began = newest_round(group, next);
  EXPECT_GE(group.core(next).lease_end(), began + numbers(1000, 100'000).usable(ms(1000)));
  group.isolate(next);
  group.change_settings(next, settings(numbers(1000, 300'000)));
  // No answer to anything since: what is left rests on rounds that began before the change.
  const lease::Timing careful = numbers(1000, 300'000);
  EXPECT_EQ(group.core(next).lease_end(), began + careful.usable(ms(1000)));
  EXPECT_EQ(group.replica(next).view.end, group.core(next).lease_end());
}

TEST(Settings, ALargerMarginShortensTheLeaseAtOnce) {
  Group group(3);
  const int leader = group.elect();
  agree(group, leader, settings());
  const HolderInstant began = newest_round(group, leader);
  group.isolate(leader);
  lease::Timing careful;
  careful.margin = ms(100);
  group.change_settings(leader, settings(careful));
  EXPECT_EQ(group.core(leader).lease_end(), began + careful.usable(ms(1000)));
}

// A voter whose clock may drift more has not stretched what it promised to the earlier rounds.
TEST(Settings, ALargerMarginBesideASmallerDriftLeavesEarlierRoundsTheirDrift) {
  Group group(3, numbers(1000, 10'000));
  const int leader = group.elect();
  agree(group, leader, settings(numbers(1000, 100'000)));
  const HolderInstant began = newest_round(group, leader);
  group.isolate(leader);
  lease::Timing wanted = numbers(1000, 10'000);
  wanted.margin = ms(100);
  group.change_settings(leader, settings(wanted));
  lease::Timing careful = wanted;
  careful.max_clock_drift_ppm = 100'000;
  EXPECT_EQ(group.core(leader).lease_end(), began + careful.usable(ms(1000)));
}

// A smaller drift is worth nothing for rounds whose messages did not carry it.
TEST(Settings, ASmallerDriftCountsFromTheNextRoundOn) {
  Group group(3, numbers(1000, 10'000));
  const int leader = group.elect();
  agree(group, leader, settings(numbers(1000, 100'000)));
  const HolderInstant began = newest_round(group, leader);
  group.isolate(leader);
  group.change_settings(leader, settings(numbers(1000, 10'000)));
  EXPECT_EQ(group.core(leader).lease_end(), began + numbers(1000, 100'000).usable(ms(1000)));
  group.heal();
  group.run(ms(10));
  const HolderInstant later = newest_round(group, leader);
  EXPECT_EQ(group.core(leader).lease_end(), later + numbers(1000, 10'000).usable(ms(1000)));
}

TEST(Settings, ALongerLeaseCountsOnlyOnceItIsPromised) {
  Group group(3);
  const int leader = group.elect();
  agree(group, leader, settings());
  const HolderInstant began = newest_round(group, leader);
  group.isolate(leader);
  group.change_settings(leader, settings(numbers(3000)));
  EXPECT_EQ(group.core(leader).lease_end(), began + kTiming.usable(ms(1000)));
  group.heal();
  const HolderInstant later = newest_round(group, leader);
  EXPECT_EQ(group.core(leader).lease_end(), later + kTiming.usable(ms(3000)));
  for (int id = 1; id <= 3; ++id) {
    if (id == leader) continue;
    EXPECT_GE(group.core(id).promise().until(), group.now().promise + ms(3000));
    EXPECT_EQ(group.core(id).hard_state().promise.duration, ms(3000));
  }
}

TEST(Settings, AShorterLeaseEndsNoPromiseEarly) {
  Group group(3);
  const int leader = group.elect();
  agree(group, leader, settings(numbers(3000)));
  newest_round(group, leader);
  const int voter_id = leader % 3 + 1;
  const PromiseInstant until = group.core(voter_id).promise().until();
  agree(group, leader, settings(numbers(1000)));
  EXPECT_GE(group.core(voter_id).promise().until(), until);
  EXPECT_EQ(group.core(voter_id).hard_state().promise.duration, ms(3000));
  group.run(ms(3000));
  EXPECT_EQ(group.core(voter_id).hard_state().promise.duration, ms(1000));
}

/// (leader, away): the one that is away misses two steps, so the last D is sixty times the one that
/// it follows.
std::pair<int, int> miss_two_steps(Group& group) {
  const int leader = group.elect();
  const int away = leader % 3 + 1;
  agree(group, leader, settings());
  group.isolate(away);
  agree(group, leader, settings(numbers(10'000)));
  agree(group, leader, settings(numbers(60'000)));
  return {leader, away};
}

TEST(Settings, OfALongerDReachAMemberThatMissedThem) {
  Group group(3);
  const auto [leader, away] = miss_two_steps(group);
  group.heal();
  group.run(ms(3000));
  EXPECT_EQ(group.core(away).timing(), numbers(60'000));
  EXPECT_GE(group.core(away).promise().until(), group.now().promise + ms(59'000));
}

// The steps are cut off as well, and the first snapshot that would bring them is lost.
TEST(Settings, OfALongerDReachAMemberThatNeedsASecondSnapshot) {
  Group group(3);
  group.sends_snapshots = false;
  const auto [leader, away] = miss_two_steps(group);
  group.cut_log(leader, group.core(leader).commit_index());
  group.heal();
  group.run(ms(20'000));
  const std::vector<SnapshotIntent>& intents = group.replica(leader).intents;
  ASSERT_EQ(intents.size(), 1U);
  group.core(leader).snapshot_ended(group.now(), intents[0]);
  group.drain(leader);
  group.run(ms(20'000));
  ASSERT_EQ(intents.size(), 2U);
  group.send_snapshot(leader, intents[1]);
  group.run(ms(20'000));
  EXPECT_EQ(group.core(away).timing(), numbers(60'000));
}

// The others never heard of the shorter D, and theirs is sixty times as long.
TEST(Settings, OfAShorterDThatAreReplacedLockTheirNodeOutOfNothing) {
  Group group(3);
  const int leader = group.elect();
  agree(group, leader, settings(numbers(10'000)));
  agree(group, leader, settings(numbers(60'000)));
  group.isolate(leader);
  ASSERT_TRUE(
      std::holds_alternative<LogId>(group.change_settings(leader, settings(numbers(1000)))));
  group.run(ms(200'000));
  EXPECT_EQ(group.core(leader).timing(), numbers(1000));
  group.heal();
  group.run(ms(3000));
  EXPECT_EQ(group.core(leader).timing(), numbers(60'000));
}

// D becomes shorter, and then all learners vote. Their own D is the shorter one too, and this is
// all that they promise since.
TEST(Settings, ALeaseOfALongerDEndsWithTheHalfThatGaveIt) {
  Group group(1);
  grow(group, 1, 3);
  for (int id = 2; id <= 3; ++id) group.restart(id, numbers(500));
  group.isolate(1);
  group.run(ms(600));
  const HolderInstant began = newest_round(group, 1);
  EXPECT_EQ(group.core(1).lease_end(), began + kTiming.usable(ms(1000)));
  group.heal();
  ASSERT_TRUE(std::holds_alternative<LogId>(group.change_settings(1, settings(numbers(500)))));
  group.settle();
  EXPECT_EQ(group.core(1).lease_end(), began + kTiming.usable(ms(1000))) << "node 1 promised it";
  ASSERT_TRUE(std::holds_alternative<LogId>(group.change(1, voters({1, 2, 3}))));
  group.settle();
  ASSERT_TRUE(settled(group.core(1)));
  EXPECT_EQ(group.core(1).lease_end(), group.now().holder + kTiming.usable(ms(500)));
  EXPECT_EQ(group.replica(1).view.end, group.core(1).lease_end());
  for (int id = 2; id <= 3; ++id) {
    EXPECT_EQ(group.core(id).promise().until(), group.now().promise + ms(500)) << id;
  }
}

TEST(Settings, AShorterLeaseIsNoReasonToStepDown) {
  Group group(3);
  const int leader = group.elect();
  lease::Timing slow = numbers(10'000);
  slow.heartbeat = ms(2500);
  agree(group, leader, settings(slow));
  newest_round(group, leader);
  // What a quorum has acknowledged began longer ago than the new D.
  group.jump(ms(2400));
  ASSERT_TRUE(
      std::holds_alternative<LogId>(group.change_settings(leader, settings(numbers(1000)))));
  group.tick(leader);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  group.settle();
  group.isolate(leader);
  group.run(ms(990));
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  group.run(ms(200));
  EXPECT_NE(group.core(leader).role(), Role::leader) << "a quorum has acknowledged the new D";
}

// Nothing was said of the clocks while there were no leases.
TEST(Settings, ALeaseRestsOnNoRoundFromBeforeThereWereLeases) {
  Group group(3);
  const int leader = group.elect();
  GroupSettings off = settings();
  off.lease_reads = false;
  agree(group, leader, off);
  newest_round(group, leader);
  group.isolate(leader);
  ASSERT_TRUE(std::holds_alternative<LogId>(group.change_settings(leader, settings())));
  EXPECT_LE(group.core(leader).lease_end(), group.now().holder);
  group.heal();
  group.settle();
  const HolderInstant began = newest_round(group, leader);
  EXPECT_EQ(group.core(leader).lease_end(), began + kTiming.usable(ms(1000)));
}

TEST(Settings, WithoutLeaseReadsThereIsNoLeaseAndPromisesStay) {
  Group group(3);
  const int leader = group.elect();
  GroupSettings off = settings();
  off.lease_reads = false;
  agree(group, leader, off);
  EXPECT_EQ(group.core(leader).lease_end(), HolderInstant::earliest());
  EXPECT_EQ(group.replica(leader).view.end, HolderInstant::earliest());
  const auto answer = group.read(leader, ReadMode::lease);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->basis, ReadBasis::quorum);
  const int voter_id = leader % 3 + 1;
  EXPECT_TRUE(group.core(voter_id).promise().live(group.now().promise));
  agree(group, leader, settings());
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder);
}

}  // namespace
}  // namespace leasehold::raft::test
