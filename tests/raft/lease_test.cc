// The leader lease: a test for each rule of lease/README.md.

#include "group.h"

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

const lease::Timing kTiming;

AppendRequest heartbeat(std::uint64_t term, std::uint64_t round, Duration lease = ms(1000)) {
  AppendRequest m;
  m.term = Term(term);
  m.round = Round(round);
  m.lease = lease;
  m.drift_ppm = lease::Timing().max_clock_drift_ppm;
  return m;
}

bool granted(Group& group) {
  return std::get<VoteReply>(group.in_flight().back().message).granted;
}

// H1: from the send, never from the receipt.
TEST(Lease, CountsFromTheSendOfTheRound) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(95));
  // The next round starts, and its answers are late by 90 ms.
  const HolderInstant before = group.core(leader).lease_end();
  group.jump(group.core(leader).next_deadline() - group.now().promise);
  const HolderInstant began = group.now().holder;
  group.tick(leader);
  group.jump(ms(90));
  group.settle();
  EXPECT_GT(group.core(leader).lease_end(), before);
  EXPECT_EQ(group.core(leader).lease_end(), began + kTiming.usable(ms(1000)));
}

// H2: an old acknowledgement is not credited with a newer send.
TEST(Lease, ALateAcknowledgementCountsForItsOwnRound) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(150));
  std::vector<Envelope> kept;
  bool keep = true;
  group.filter = [&](const Envelope& e) {
    if (keep && std::holds_alternative<AppendReply>(e.message)) {
      kept.push_back(e);
      return false;
    }
    return true;
  };
  const auto next_round = [&] {
    group.jump(group.core(leader).next_deadline() - group.now().promise);
    const HolderInstant began = group.now().holder;
    group.tick(leader);
    return began;
  };
  const HolderInstant first = next_round();
  group.settle();
  const std::vector<Envelope> old_replies = kept;
  next_round();
  group.settle();
  keep = false;
  for (const Envelope& e : old_replies) {
    group.step(static_cast<int>(e.from.value()), leader, e.message);
  }
  EXPECT_EQ(group.core(leader).lease_end(), first + kTiming.usable(ms(1000)));
}

// H3, H4: which replies count.
TEST(Lease, OnlyAPromiseOfThisTermCounts) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(150));
  group.isolate(leader);
  group.run(ms(300));
  group.in_flight().clear();
  const HolderInstant before = group.core(leader).lease_end();
  const Term term = group.core(leader).term();
  AppendReply reply;
  reply.round = Round(5);
  reply.matched = true;
  reply.request_term = reply.term = term;
  reply.promised = false;
  for (int peer = 1; peer <= 3; ++peer) {
    if (peer != leader) group.step(peer, leader, reply);
  }
  EXPECT_EQ(group.core(leader).lease_end(), before);
  reply.promised = true;
  reply.request_term = term.prev();
  for (int peer = 1; peer <= 3; ++peer) {
    if (peer != leader) group.step(peer, leader, reply);
  }
  EXPECT_EQ(group.core(leader).lease_end(), before);
  // A round that never began means nothing either.
  reply.request_term = term;
  reply.round = Round(1'000'000);
  for (int peer = 1; peer <= 3; ++peer) {
    if (peer != leader) group.step(peer, leader, reply);
  }
  EXPECT_EQ(group.core(leader).lease_end(), before);
}

// H6: a new leader has no lease until a quorum has granted it.
TEST(Lease, ANewLeaderThatIsCutOffHasNone) {
  Group group(3);
  group.filter = [](const Envelope& e) { return !std::holds_alternative<AppendReply>(e.message); };
  group.run(ms(700));
  int leaders = 0;
  for (int id = 1; id <= 3; ++id) {
    if (group.core(id).role() != Role::leader) continue;
    ++leaders;
    EXPECT_EQ(group.core(id).lease_end(), HolderInstant::earliest());
  }
  EXPECT_EQ(leaders, 1);
}

TEST(Lease, IsNotShownBeforeAnEntryOfTheOwnTermIsCommitted) {
  Group group(3);
  group.filter = [](const Envelope& e) {
    // Rounds are answered, entries never arrive.
    const auto* append = std::get_if<AppendRequest>(&e.message);
    return append == nullptr || append->entries.empty();
  };
  group.run(ms(900));
  int leader = 0;
  for (int id = 1; id <= 3; ++id) {
    if (group.core(id).role() == Role::leader) leader = id;
  }
  ASSERT_NE(leader, 0);
  EXPECT_EQ(group.core(leader).lease_end(), HolderInstant::earliest());
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(200));
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder);
}

TEST(Promise, RefusesVotesAndKeepsTheTermUntilItEnds) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1));
  group.in_flight().clear();
  group.jump(ms(999));
  group.step(2, 3, VoteRequest{Term(9), LogId{Term(9), Index(9)}});
  EXPECT_FALSE(granted(group));
  EXPECT_EQ(std::get<VoteReply>(group.in_flight().back().message).leader, NodeId(1));
  EXPECT_EQ(group.core(3).term(), Term(4));
  group.jump(ms(1));
  group.step(2, 3, VoteRequest{Term(9), LogId{Term(9), Index(9)}});
  EXPECT_TRUE(granted(group));
}

TEST(Promise, RefusesPreVotesToo) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1));
  group.step(2, 3, PreVoteRequest{Term(9), LogId{Term(9), Index(9)}});
  EXPECT_FALSE(std::get<PreVoteReply>(group.in_flight().back().message).granted);
}

// seeds: with a committed vote, a node elects itself only after the lease and an election timeout.
TEST(Promise, AnOwnElectionWaitsForThePromiseAndAnElectionTimeout) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1));
  EXPECT_GE(group.core(3).next_deadline() - group.now().promise, ms(1300));
  EXPECT_LT(group.core(3).next_deadline() - group.now().promise, ms(1600));
}

// seeds: with an uncommitted vote, requests are handled at any time; the own election waits for an
// election timeout.
TEST(Promise, AnUncommittedVoteDoesNotBind) {
  Group group(3);
  group.step(1, 3, VoteRequest{Term(1), LogId{}});
  EXPECT_TRUE(granted(group));
  EXPECT_GE(group.core(3).next_deadline() - group.now().promise, ms(300));
  EXPECT_LT(group.core(3).next_deadline() - group.now().promise, ms(600));
  group.step(2, 3, VoteRequest{Term(2), LogId{}});
  EXPECT_TRUE(granted(group));
}

// Our departure from the seeds: a later vote does not erase the promise.
TEST(Promise, OutlivesALaterTermAndVote) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1));
  // The holder itself passes its promise, is granted, and the promise still stands.
  group.step(1, 3, VoteRequest{Term(5), LogId{}});
  EXPECT_TRUE(granted(group));
  EXPECT_EQ(group.core(3).term(), Term(5));
  group.step(2, 3, VoteRequest{Term(6), LogId{}});
  EXPECT_FALSE(granted(group));
  EXPECT_EQ(group.core(3).term(), Term(5));
}

TEST(Promise, LetsItsHolderPassInAHigherTermOnly) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1));
  group.step(1, 3, VoteRequest{Term(4), LogId{}});
  EXPECT_FALSE(granted(group));
  group.step(1, 3, VoteRequest{Term(5), LogId{}});
  EXPECT_TRUE(granted(group));
}

TEST(Promise, IsRenewedEvenWhenTheLogCheckFails) {
  Group group(3);
  AppendRequest m = heartbeat(4, 1);
  m.prev = LogId{Term(3), Index(8)};
  group.step(1, 3, m);
  const auto& reply = std::get<AppendReply>(group.in_flight().back().message);
  EXPECT_FALSE(reply.matched);
  EXPECT_TRUE(reply.promised);
  EXPECT_EQ(reply.round, Round(1));
  EXPECT_EQ(group.core(3).promise().until(), group.now().promise + ms(1000));
}

TEST(Promise, AHigherLeaderReplacesItEvenByAShorterOne) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1, ms(5000)));
  EXPECT_EQ(group.core(3).promise().until(), group.now().promise + ms(5000));
  group.step(2, 3, heartbeat(5, 1, ms(1000)));
  EXPECT_EQ(group.core(3).promise().until(), group.now().promise + ms(1000));
}

TEST(Promise, TakesTheLargerOfTheOwnDurationAndTheOneItWasGiven) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1, ms(400)));
  EXPECT_EQ(group.core(3).promise().until(), group.now().promise + ms(1000));
  group.step(1, 3, heartbeat(4, 2, ms(2500)));
  EXPECT_EQ(group.core(3).promise().until(), group.now().promise + ms(2500));
  EXPECT_EQ(events_of<SettingsDiffer>(group.replica(3)).size(), 1U);
}

TEST(Promise, AFollowerIgnoresHigherTermsInRepliesWhileItLives) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1));
  group.step(2, 3, VoteReply{Term(9), Term(9), false, NodeId(2)});
  EXPECT_EQ(group.core(3).term(), Term(4));
  group.jump(ms(1000));
  group.step(2, 3, VoteReply{Term(9), Term(9), false, NodeId(2)});
  EXPECT_EQ(group.core(3).term(), Term(9));
}

// A heartbeat between the pre-vote and the vote: the vote is judged again.
TEST(Promise, AHeartbeatBetweenPreVoteAndVoteStops) {
  Group group(3);
  group.step(2, 3, PreVoteRequest{Term(5), LogId{}});
  EXPECT_TRUE(std::get<PreVoteReply>(group.in_flight().back().message).granted);
  group.step(1, 3, heartbeat(4, 1));
  group.step(2, 3, VoteRequest{Term(5), LogId{}});
  EXPECT_FALSE(granted(group));
}

// H14: the leader is a voter that is bound by its own lease.
TEST(Lease, ALeaderRefusesVotesWhileItsLeaseIsValid) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(200));
  const int other = leader % 3 + 1;
  const Term term = group.core(leader).term();
  group.isolate(leader);
  const VoteRequest request{term + 5, LogId{term + 4, Index(100)}};
  group.step(other, leader, request);
  EXPECT_FALSE(granted(group));
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_EQ(group.core(leader).term(), term);
  // Past the lease it adopts the term, having published the loss, and votes.
  group.jump(group.core(leader).lease_end() - group.now().holder);
  group.step(other, leader, request);
  EXPECT_TRUE(granted(group));
  EXPECT_EQ(group.replica(leader).view.end, HolderInstant::earliest());
  EXPECT_EQ(group.replica(leader).view.term, term + 5);
}

// The loss is in the same Ready as the first message of the new term, and before it (ready.h lists
// the order).
TEST(Lease, TheLossIsPublishedWithTheFirstMessageAfterIt) {
  Group group(3);
  const int leader = group.elect();
  group.run(ms(200));
  const int other = leader % 3 + 1;
  Core core = group.core(leader);
  AppendReply reply;
  reply.request_term = core.term();
  reply.term = core.term() + 3;
  core.step(group.now(), peer(NodeId(static_cast<std::uint64_t>(other))), reply);
  Ready ready;
  ASSERT_TRUE(core.take_ready(ready));
  ASSERT_TRUE(ready.lease.has_value());
  EXPECT_EQ(ready.lease->end, HolderInstant::earliest());
  EXPECT_FALSE(ready.messages.empty());
}

// H10 and the remembered D.
TEST(Promise, ARestartedVoterPromisesTheRememberedDurationAgain) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1, ms(2500)));
  group.jump(ms(100));
  group.restart(3);
  // By a clock that may be fast by its bound of 10 %, which may have been another before.
  group.jump(ms(2749));
  group.step(2, 3, VoteRequest{Term(9), LogId{Term(9), Index(9)}});
  EXPECT_FALSE(granted(group));
  group.jump(ms(1));
  group.step(2, 3, VoteRequest{Term(9), LogId{Term(9), Index(9)}});
  EXPECT_TRUE(granted(group));
}

TEST(Promise, ASmallerDurationIsRememberedOnlyWhenItReachesTheOldPromise) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1, ms(2500)));
  group.jump(ms(100));
  group.step(1, 3, heartbeat(4, 2, ms(1000)));
  // Still bound for 2400 ms: a restart has to know.
  EXPECT_EQ(group.replica(3).disk_hard_state.promise.duration, ms(2500));
  group.jump(ms(1400));
  group.step(1, 3, heartbeat(4, 3, ms(1000)));
  EXPECT_EQ(group.replica(3).disk_hard_state.promise.duration, ms(1000));
}

TEST(Promise, ALargerDurationIsDurableBeforeTheRoundIsEchoed) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1, ms(1000)));
  group.in_flight().clear();
  group.replica(3).auto_sync = false;
  group.step(1, 3, heartbeat(4, 2, ms(2500)));
  EXPECT_TRUE(group.in_flight().empty());
  group.crash(3);
  EXPECT_EQ(group.replica(3).disk_hard_state.promise.duration, ms(1000));
}

TEST(Promise, ARestartWithAnUncommittedVoteStillHonoursIt) {
  Group group(3);
  group.step(1, 3, heartbeat(4, 1));
  group.step(1, 3, VoteRequest{Term(5), LogId{}});
  group.restart(3);
  EXPECT_FALSE(group.core(3).hard_state().vote_committed);
  group.step(2, 3, VoteRequest{Term(6), LogId{Term(5), Index(5)}});
  EXPECT_FALSE(granted(group));
}

TEST(Promise, ANodeThatNeverPromisedVotesAtOnce) {
  Group group(3);
  group.restart(3);
  group.step(2, 3, VoteRequest{Term(1), LogId{}});
  EXPECT_TRUE(granted(group));
}

// The figure of the openraft page: votes at t1 and t2 move no lease, the leader is there at t3, the
// followers' leases run from t4, when the append arrives, and the leader's from t3, when it was
// sent.
TEST(Lease, TheFigureOfTheLeaderLeasePage) {
  Group group(4);
  std::deque<Envelope> appends;
  group.filter = [&appends](const Envelope& e) {
    if (!std::holds_alternative<AppendRequest>(e.message)) return true;
    appends.push_back(e);
    return false;
  };
  int leader = 0;
  HolderInstant t3;
  while (leader == 0) {
    group.run(ms(1));
    for (int id = 1; id <= 4; ++id) {
      if (group.core(id).role() == Role::leader) leader = id;
      EXPECT_FALSE(group.core(id).promise().live(group.now().promise));
    }
  }
  for (const Event& event : group.replica(leader).events) {
    if (const auto* role = std::get_if<RoleChanged>(&event.what)) {
      if (role->to == Role::leader) t3 = event.at.holder;
    }
  }
  EXPECT_EQ(group.core(leader).lease_end(), HolderInstant::earliest());
  group.jump(ms(40));
  const PromiseInstant t4 = group.now().promise;
  group.filter = [](const Envelope&) { return true; };
  for (const Envelope& e : appends) {
    group.step(leader, static_cast<int>(e.to.value()), e.message);
    EXPECT_EQ(group.core(static_cast<int>(e.to.value())).promise().until(), t4 + ms(1000));
  }
  group.settle();
  EXPECT_EQ(group.core(leader).lease_end(), t3 + kTiming.usable(ms(1000)));
}

// An idle leader keeps its lease without a log entry (H37).
TEST(Lease, IdleLeaderNeverLosesIt) {
  Group group(3);
  const int leader = group.elect();
  const Index last = group.core(leader).log().last_index();
  for (int i = 0; i < 600; ++i) {
    group.run(ms(100));
    ASSERT_GT(group.core(leader).lease_end(), group.now().holder);
  }
  EXPECT_EQ(group.core(leader).log().last_index(), last);
}

// A suspend: the holder's clock ran on, the promise clock stood still.
TEST(Lease, EndsDuringASuspendOfTheLeader) {
  Group group(1);
  group.elect();
  Core core = group.core(1);
  Now now = group.now();
  now.holder = now.holder + ms(5000);
  Ready ready;
  core.read_index(now, 77, ReadMode::lease);
  core.take_ready(ready);
  for (const ReadAnswer& answer : ready.reads) EXPECT_NE(answer.basis, ReadBasis::lease);
}

// Else the lease would be gone in vain until then. And an election timeout may become longer: once
// the transfer has ended, and an entry behind the token is committed, a TimeoutNow that had waited
// would leave under the next lease.
TEST(Transfer, TheLeaseStaysUntilTheDiskLetsTimeoutNowLeave) {
  Group group(3);
  group.filter = [&group](const Envelope& e) {
    // Its own vote is durable, and that it leads is not.
    if (std::holds_alternative<VoteReply>(e.message)) {
      group.replica(static_cast<int>(e.to.value())).auto_sync = false;
    }
    return true;
  };
  const int from = group.elect();
  const int to = from % 3 + 1;
  Replica& leader = group.replica(from);
  group.settle();
  ASSERT_GT(leader.view.end, group.now().holder);
  ASSERT_EQ(group.core(from).transfer(group.now(), NodeId(static_cast<std::uint64_t>(to))),
            std::nullopt);
  group.drain(from);
  group.settle();
  EXPECT_GT(leader.view.end, group.now().holder);
  EXPECT_TRUE(events_of<TokenIssued>(leader).empty());
  group.sync(from);
  group.settle();
  EXPECT_EQ(events_of<TokenIssued>(leader).size(), 1U);
  EXPECT_EQ(group.core(to).role(), Role::leader);
}

}  // namespace
}  // namespace leasehold::raft::test
