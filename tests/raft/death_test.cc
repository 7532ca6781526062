// What follows from knowing that a process has ended (lease/README.md, rules 37 to 40).

#include "change_support.h"
#include "group.h"
#include "shared_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace leasehold::raft::test {
namespace {

AppendRequest heartbeat(std::uint64_t term, std::uint64_t round) {
  AppendRequest m;
  m.term = Term(term);
  m.round = Round(round);
  m.lease = ms(1000);
  return m;
}

Peer process(int id, std::uint64_t incarnation, std::uint64_t place = 0) {
  const auto number = static_cast<std::uint64_t>(id);
  return {NodeId(number), Uuid{number, number}, {Incarnation(incarnation), place}};
}

/// Whether node 3 votes for node 2 now; it is asked in a term of its own each time.
bool votes(Group& group, std::uint64_t term) {
  group.step(2, 3, VoteRequest{Term(term), LogId{}});
  return std::get<VoteReply>(group.in_flight().back().message).granted;
}

// ---- The promise ----

TEST(Death, EndsThePromiseAtOnce) {
  Group group(3);
  group.step(process(1, 4), 3, heartbeat(4, 1));
  ASSERT_FALSE(votes(group, 5));
  group.core(3).ended(group.now(), process(1, 4));
  group.drain(3);
  EXPECT_FALSE(group.core(3).promise().live(group.now().promise));
  EXPECT_EQ(group.core(3).leader(), kNobody);
  EXPECT_EQ(events_of<HolderEnded>(group.replica(3)),
            (std::vector{HolderEnded{process(1, 4), Term(4)}}));
  EXPECT_TRUE(votes(group, 5));
}

TEST(Death, IsProvedByAnyMessageOfALaterProcess) {
  Group group(3);
  group.step(process(1, 4), 3, heartbeat(4, 1));
  ASSERT_FALSE(votes(group, 5));
  group.step(process(1, 5), 3, AppendReply{});
  EXPECT_TRUE(votes(group, 5));
}

TEST(Death, OfAnEarlierProcessProvesNothing) {
  Group group(3);
  group.step(process(1, 4), 3, heartbeat(4, 1));
  group.core(3).ended(group.now(), process(1, 3));
  group.drain(3);
  EXPECT_FALSE(votes(group, 5));
  EXPECT_EQ(group.core(3).leader(), NodeId(1));
}

// A late notice, or a copy of one, is of a process that nobody has a promise of any more.
TEST(Death, OfAnEarlierLeaderEndsNoPromiseToTheNextProcess) {
  Group group(3);
  group.step(process(1, 4), 3, heartbeat(4, 1));
  group.step(process(1, 5), 3, heartbeat(6, 1));
  for (int copy = 0; copy < 2; ++copy) {
    group.core(3).ended(group.now(), process(1, 4));
    group.drain(3);
  }
  EXPECT_FALSE(votes(group, 7));
  EXPECT_EQ(group.core(3).leader(), NodeId(1));
}

TEST(Death, OfAnotherNodeOrDirectoryProvesNothing) {
  Group group(5);
  group.step(process(1, 4), 3, heartbeat(4, 1));
  Peer other = process(1, 9);
  other.uuid = Uuid{77, 77};
  for (const Peer& peer : {process(4, 9), other}) {
    group.core(3).ended(group.now(), peer);
    group.drain(3);
    EXPECT_FALSE(votes(group, 5));
  }
}

// A copy of the directory has the same uuid, and incarnations of its own.
TEST(Death, OfACopyOfTheDirectoryProvesNothing) {
  Group group(3);
  group.step(process(1, 4, 10), 3, heartbeat(4, 1));
  group.core(3).ended(group.now(), process(1, 9, 11));
  group.drain(3);
  EXPECT_FALSE(votes(group, 5));
  group.step(process(1, 12, 11), 3, AppendReply{});
  EXPECT_FALSE(votes(group, 5));
  // Nor does the copy itself pass as the holder; the original does, in a higher term.
  const auto asks = [&group](const Peer& candidate, std::uint64_t term) {
    group.step(candidate, 3, PreVoteRequest{Term(term), LogId{}});
    const bool would = std::get<PreVoteReply>(group.in_flight().back().message).granted;
    group.step(candidate, 3, VoteRequest{Term(term), LogId{}});
    return would && std::get<VoteReply>(group.in_flight().back().message).granted;
  };
  EXPECT_FALSE(asks(process(1, 12, 11), 5));
  Peer wiped = process(1, 12, 10);
  wiped.uuid = Uuid{77, 77};
  EXPECT_FALSE(asks(wiped, 5));
  // A living process always says the same of itself.
  EXPECT_FALSE(asks(Peer{NodeId(1), Uuid{1, 1}, {}}, 5));
  EXPECT_EQ(group.core(3).term(), Term(4));
  group.core(3).ended(group.now(), process(1, 4, 10));
  group.drain(3);
  EXPECT_TRUE(votes(group, 5));
}

TEST(Death, OfAProcessWhoseIncarnationIsNotKnownIsNeverProved) {
  Group group(3);
  group.step(Peer{NodeId(1), Uuid{1, 1}}, 3, heartbeat(4, 1));
  group.core(3).ended(group.now(), process(1, 9));
  group.drain(3);
  EXPECT_FALSE(votes(group, 5));
}

// The disk has the number of the holder, not its process. That number may have led the term after
// the process that ended.
TEST(Death, ProvesNothingToAVoterThatWasRestarted) {
  Group group(3);
  group.step(process(1, 4), 3, heartbeat(4, 1));
  group.restart(3);
  group.core(3).ended(group.now(), process(1, 4));
  group.drain(3);
  EXPECT_FALSE(votes(group, 5));
  group.jump(ms(1211));
  EXPECT_TRUE(votes(group, 5));
}

// The vote makes the end durable; until then a restart waits for the whole promise, as always.
TEST(Death, IsDurableWithTheNextVote) {
  Group group(3);
  group.step(process(1, 4), 3, heartbeat(4, 1));
  group.core(3).ended(group.now(), process(1, 4));
  group.drain(3);
  EXPECT_EQ(group.replica(3).disk_hard_state.promise.holder, NodeId(1));
  ASSERT_TRUE(votes(group, 5));
  EXPECT_EQ(group.replica(3).disk_hard_state.promise, StoredPromise{});
  group.restart(3);
  EXPECT_TRUE(votes(group, 6));
}

// Its promise is also the sign that a leader has spoken to it.
TEST(Death, LeavesANodeThatWaitsToBeAddedItsPromise) {
  Group group(3);
  group.add(4);
  group.step(process(1, 4), 4, heartbeat(4, 1));
  group.core(4).ended(group.now(), process(1, 4));
  group.drain(4);
  EXPECT_EQ(group.core(4).hard_state().promise.holder, NodeId(1));
  EXPECT_EQ(group.core(4).leader(), kNobody);
  group.jump(ms(1101));
  group.step(2, 4, VoteRequest{Term(5), LogId{}});
  EXPECT_TRUE(std::get<VoteReply>(group.in_flight().back().message).granted);
}

TEST(Death, OfThisNodeItselfIsNoNews) {
  Group group(3);
  const int leader = group.elect();
  group.notice(leader, leader);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
}

TEST(Death, OfAFollowerMovesNoLeader) {
  Group group(3);
  const int leader = group.elect();
  const HolderInstant end = group.core(leader).lease_end();
  group.notice(leader % 3 + 1, leader);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_EQ(group.core(leader).lease_end(), end);
}

// ---- What the dead sent ----

TEST(Death, SilencesWhatTheProcessHadSent) {
  Group group(3);
  group.step(process(1, 4), 3, heartbeat(4, 1));
  group.core(3).ended(group.now(), process(1, 4));
  group.step(process(1, 4), 3, heartbeat(4, 2));
  EXPECT_EQ(group.core(3).leader(), kNobody);
  EXPECT_TRUE(votes(group, 5));
  // The next process is heard.
  group.step(process(1, 5), 3, heartbeat(6, 1));
  EXPECT_EQ(group.core(3).leader(), NodeId(1));
  // A message of the one before it, which came by another connection, is not.
  group.step(process(1, 4), 3, heartbeat(7, 1));
  EXPECT_EQ(group.core(3).term(), Term(6));
}

TEST(Death, RefusesTheReadsThatWaitForTheLeader) {
  Group group(3);
  const int leader = group.elect();
  const int follower = leader % 3 + 1;
  group.crash(leader);
  group.ask(follower, 7, ReadMode::lease);
  group.settle();
  ASSERT_TRUE(group.replica(follower).reads.empty());
  group.notice(leader, follower);
  ASSERT_EQ(group.replica(follower).reads.size(), 1U);
  EXPECT_FALSE(group.replica(follower).reads.front().index);
}

// What is kept about those that have ended stays small, whatever numbers are named.
TEST(Death, IsRememberedOfMembersOnly) {
  Group group(3);
  const int leader = group.elect();
  const int follower = leader % 3 + 1;
  for (int id = 10; id < 2000; ++id) {
    group.core(follower).ended(group.now(), process(id, 1));
  }
  group.drain(follower);
  group.notice(leader, follower);
  EXPECT_EQ(group.core(follower).leader(), kNobody);
}

// ---- The next election ----

/// Kills the leader; all others learn of it at once.
int kill(Group& group) {
  const int leader = group.elect();
  group.settle();
  group.crash(leader);
  for (int id = 1; id <= static_cast<int>(group.membership().members.size()); ++id) {
    if (id != leader) group.notice(leader, id);
  }
  return leader;
}

TEST(Death, IsFollowedByAnElectionInWhichNoTimePasses) {
  Group group(3);
  const int dead = kill(group);
  const PromiseInstant before = group.now().promise;
  for (int id = 1; id <= 3; ++id) {
    if (id != dead && group.core(id).next_deadline() <= before) group.tick(id);
  }
  group.settle();
  const int next = group.elect();
  EXPECT_NE(next, dead);
  EXPECT_EQ(group.now().promise, before);
  EXPECT_NE(group.core(next).lease_end(), HolderInstant::earliest());
  EXPECT_EQ(events_of<RoleChanged>(group.replica(next)).at(2).reason,
            RoleChangeReason::pre_vote_won);
}

// In each group of five the four ask one after the other, by their number.
TEST(Death, LetsTheOthersAskOneAfterTheOther) {
  Group group(5);
  const int dead = kill(group);
  const Duration turn = ms(25);  // half a round trip
  Duration expected{0};
  for (int id = 1; id <= 5; ++id) {
    if (id == dead) continue;
    EXPECT_EQ(group.core(id).next_deadline() - group.now().promise, expected) << id;
    expected += turn;
  }
}

/// `group` becomes the group of this number. The leader that it elects then is dead.
int kill_leader_of(SharedGroup& group, GroupId number) {
  for (int id = 1; id <= 3; ++id) {
    group.replica(id).options.group = number;
    group.restart(id);
  }
  group.jump(ms(3000));
  const int dead = group.bound_leader();
  group.crash(dead);
  return dead;
}

// Of many groups that had the same leader. Else one voter does all the work.
TEST(Death, LetsEachVoterAskFirstInAShareOfTheGroups) {
  std::map<int, int> first;
  for (std::uint64_t number = 1; number <= 60; ++number) {
    SharedGroup group;
    const int dead = kill_leader_of(group, GroupId(number));
    std::vector<Duration> pauses;
    for (const int id : group.others(dead)) {
      group.notice(dead, id);
      const Core& core = group.core(id);
      pauses.push_back(core.awaits_place() ? Duration(0)
                                           : core.next_deadline() - group.now().promise);
      if (pauses.back() == Duration(0)) ++first[id];
    }
    std::sort(pauses.begin(), pauses.end());
    EXPECT_EQ(pauses, (std::vector<Duration>{Duration(0), ms(25)})) << number;
  }
  ASSERT_EQ(first.size(), 3U);  // the leaders are not the same, either
  for (const auto& [id, groups] : first) EXPECT_GE(groups, 10) << id;
}

// Their process falls silent, and both survivors wait. By chance they would often ask together.
TEST(Silence, LetsTheVotersOfManyGroupsAskApart) {
  for (std::uint64_t number = 1; number <= 60; ++number) {
    SharedGroup group(3, exact(), number);
    const int dead = kill_leader_of(group, GroupId(number));
    group.jump(ms(1000));
    // A half of [ET, 2 ET) each, drawn when they first heard the one that led.
    std::set<std::int64_t> halves;
    for (const int id : group.others(dead)) {
      const Core& core = group.core(id);
      const Duration wait = core.next_deadline() - core.promise_until();
      EXPECT_GE(wait, ms(300)) << number;
      EXPECT_LE(wait, ms(600)) << number;
      halves.insert((wait - ms(300)) / ms(150));
    }
    EXPECT_EQ(halves.size(), 2U) << number;
  }
}

// The one that has asked too early cannot ask again at once.
TEST(Death, LetsTheOneThatRefusedTheFirstAskAtOnce) {
  Group group(3);
  const int dead = group.elect();
  group.settle();
  group.crash(dead);
  const int first = dead == 1 ? 2 : 1;
  const int second = 6 - dead - first;
  group.notice(dead, first);
  group.tick(first);
  group.settle();
  ASSERT_EQ(group.core(first).leader(), kNobody);
  ASSERT_GT(group.core(first).next_deadline(), group.now().promise);
  const PromiseInstant before = group.now().promise;
  group.notice(dead, second);
  EXPECT_EQ(group.core(second).next_deadline(), before);
  group.tick(second);
  group.settle();
  EXPECT_EQ(group.core(second).role(), Role::leader);
  EXPECT_EQ(group.now().promise, before);
}

// What was refused before a leader was heard is of another election.
TEST(Death, KeepsTheOrderWhenALeaderWasHeardSince) {
  Group group(3);
  const int dead = group.elect();
  group.settle();
  const int first = dead == 1 ? 2 : 1;
  const int second = 6 - dead - first;
  group.step(first, second, PreVoteRequest{Term(9), LogId{}});
  group.run(ms(500));
  ASSERT_EQ(group.core(second).leader(), group.core(dead).id());
  group.crash(dead);
  group.notice(dead, second);
  EXPECT_EQ(group.core(second).next_deadline() - group.now().promise, ms(25));
}

// Both have asked at the same moment, and each has voted for itself.
TEST(Death, IsFollowedByAnotherElectionSoonIfTheVoteWasSplit) {
  Group group(3);
  const int dead = kill(group);
  const int first = dead == 1 ? 2 : 1;
  const int second = 6 - dead - first;
  // The pre-votes cross, and so do the votes.
  group.jump(ms(25));
  for (const int id : {first, second}) group.core(id).tick(group.now());
  for (const int id : {first, second}) group.drain(id);
  group.settle();
  ASSERT_EQ(group.core(first).hard_state().voted_for, group.core(first).id());
  ASSERT_EQ(group.core(second).hard_state().voted_for, group.core(second).id());
  const PromiseInstant split = group.now().promise;
  const PromiseInstant again = group.core(first).next_deadline();
  EXPECT_LE(again - split, ms(75));  // three turns: nobody knows any more which voter led
  EXPECT_GE(group.core(second).next_deadline() - again, ms(25)) << "not at the same moment again";
  group.run(ms(75));
  EXPECT_EQ(group.core(first).role(), Role::leader);
}

TEST(Death, LetsAWitnessAndAClockThatCannotHoldAskLast) {
  Group group(3, {}, 1, Duration(0), {1});
  const int dead = kill(group);
  ASSERT_NE(dead, 1);
  EXPECT_EQ(group.core(1).next_deadline() - group.now().promise, ms(50));
  EXPECT_EQ(group.core(5 - dead).next_deadline(), group.now().promise + ms(25));
}

// Those that have not heard of it yet refuse: the one that asks tries again, soon.
TEST(Death, IsTriedAgainSoonWhileTheOthersDoNotKnow) {
  Group group(3);
  const int dead = group.elect();
  group.settle();
  group.crash(dead);
  const int first = dead % 3 + 1;
  const int second = 6 - dead - first;
  group.notice(dead, first);
  group.run(ms(40));
  ASSERT_EQ(group.core(first).leader(), kNobody);
  // It lets the other vote, and nothing else: no tick, so that it does not ask by itself.
  group.notice(dead, second);
  const PromiseInstant before = group.now().promise;
  while (group.core(first).role() != Role::leader) {
    group.jump(ms(5));
    group.tick(first);
    group.settle();
    ASSERT_LE(group.now().promise - before, ms(75));
  }
}

TEST(Death, IsNoReasonToAskForEver) {
  Group group(3);
  const int dead = kill(group);
  const int alone = dead % 3 + 1;
  group.isolate(alone);
  int asked = 0;
  const PromiseInstant end = group.now().promise + ms(3000);
  while (group.core(alone).next_deadline() <= end) {
    group.jump(group.core(alone).next_deadline() - group.now().promise);
    group.tick(alone);
    ++asked;
  }
  // Five in quick succession, and then one in each election timeout.
  EXPECT_GE(asked, 5 + 4);
  EXPECT_LE(asked, 5 + 9);
  const auto changes = events_of<RoleChanged>(group.replica(alone));
  EXPECT_EQ(changes.back().reason, RoleChangeReason::election_timeout);
}

TEST(Death, DisturbsNoCampaignThatIsUnderWay) {
  Group group(3);
  const int leader = group.elect();
  const int target = leader % 3 + 1;
  group.settle();
  group.filter = [](const Envelope& e) { return !std::holds_alternative<VoteRequest>(e.message); };
  ASSERT_FALSE(group.core(leader).transfer(group.now(), group.core(target).id()));
  group.drain(leader);
  group.settle();
  ASSERT_EQ(group.core(target).role(), Role::candidate);
  group.notice(leader, target);
  EXPECT_EQ(group.core(target).role(), Role::candidate);
  group.step(6 - leader - target, target,
             VoteReply{group.core(target).term(), group.core(target).term(), true, kNobody});
  EXPECT_EQ(group.core(target).role(), Role::leader);
}

// The voter of a target that campaigns by a token does not campaign against it.
TEST(Death, DisturbsNoVoterOfACampaign) {
  Group group(3);
  const int leader = group.elect();
  const int target = leader % 3 + 1;
  const int voter = 6 - leader - target;
  group.settle();
  // The votes are late.
  group.filter = [](const Envelope& e) { return !std::holds_alternative<VoteReply>(e.message); };
  ASSERT_FALSE(group.core(leader).transfer(group.now(), group.core(target).id()));
  group.drain(leader);
  group.settle();
  ASSERT_EQ(group.core(voter).hard_state().voted_for, group.core(target).id());
  ASSERT_TRUE(group.core(voter).promise().live(group.now().promise));
  group.notice(leader, voter);
  EXPECT_FALSE(group.core(voter).promise().live(group.now().promise));
  EXPECT_GE(group.core(voter).next_deadline(), group.now().promise + ms(200));
}

TEST(Death, IsOverForTheElectionWhenANewLeaderIsHeard) {
  Group group(3);
  group.step(process(1, 4), 3, heartbeat(4, 1));
  group.core(3).ended(group.now(), process(1, 4));
  group.drain(3);
  EXPECT_EQ(group.core(3).next_deadline(), group.now().promise + ms(25));
  group.step(process(2, 1), 3, heartbeat(5, 1));
  EXPECT_GE(group.core(3).next_deadline(), group.now().promise + ms(1300));
}

TEST(Death, OfTheLeaderIsKnownToItsNextProcessWhichAsksAtOnce) {
  Group group(3);
  const int leader = group.elect();
  group.settle();
  group.restart(leader);
  EXPECT_EQ(group.core(leader).next_deadline(), group.now().promise);
  const PromiseInstant before = group.now().promise;
  group.tick(leader);
  group.settle();
  EXPECT_EQ(group.elect(), leader);
  EXPECT_EQ(group.now().promise, before);
}

TEST(Death, OfAFollowerIsNoReasonToAsk) {
  Group group(3);
  const int leader = group.elect();
  group.settle();
  const int follower = leader % 3 + 1;
  group.restart(follower);
  EXPECT_GE(group.core(follower).next_deadline(), group.now().promise + ms(1300));
}

}  // namespace
}  // namespace leasehold::raft::test
