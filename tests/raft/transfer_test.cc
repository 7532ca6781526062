// Transfer of the leadership: a test for each rule of raft/core_transfer.cc.

#include "group.h"

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

const lease::Timing kTiming;

NodeId node(int id) {
  return NodeId(static_cast<std::uint64_t>(id));
}

std::optional<TransferObstacle> transfer_leadership(Group& group, int from, int to) {
  const auto refused = group.core(from).transfer(group.now(), to == 0 ? kNobody : node(to));
  group.drain(from);
  return refused ? std::optional(refused->obstacle) : std::nullopt;
}

template <class M>
bool is(const Envelope& e) {
  return std::holds_alternative<M>(e.message);
}

/// A group of three whose leader holds the lease, and the two others.
struct Three {
  Group group{3};
  int leader = group.elect();
  int target = leader % 3 + 1;
  int other = target % 3 + 1;

  Three() { group.run(ms(250)); }
  Core& core() { return group.core(leader); }
  HolderInstant lease() { return group.replica(leader).view.end; }
  /// The token that is out, with everything that the leader sends held back.
  TransferToken issue() {
    group.filter = [](const Envelope& e) { return !is<TimeoutNow>(e); };
    EXPECT_EQ(transfer_leadership(group, leader, target), std::nullopt);
    group.settle();
    const auto issued = events_of<TokenIssued>(group.replica(leader));
    EXPECT_FALSE(issued.empty());
    return {core().term(), node(target), issued.back().last};
  }
  VoteRequest request(const TransferToken& token) {
    return {token.term.next(), LogId{token.term, token.last}, token};
  }
  bool granted(int voter, const VoteRequest& m) {
    group.in_flight().clear();
    group.step(target, voter, m);
    return std::get<VoteReply>(group.in_flight().back().message).granted;
  }
};

// H21: a transfer costs a few round trips, not a lease.
TEST(Transfer, TheTargetLeadsWithoutTimePassing) {
  Three three;
  const Term term = three.core().term();
  ASSERT_GT(three.lease(), three.group.now().holder);
  ASSERT_EQ(transfer_leadership(three.group, three.leader, three.target), std::nullopt);
  three.group.settle();
  EXPECT_EQ(three.group.core(three.target).role(), Role::leader);
  EXPECT_EQ(three.group.core(three.target).term(), term.next());
  EXPECT_EQ(three.core().role(), Role::follower);
  EXPECT_GT(three.group.replica(three.target).view.end, three.group.now().holder);
  ASSERT_TRUE(three.group.propose(three.target, "after").has_value());
  three.group.run(ms(200));
  EXPECT_EQ(three.group.replica(three.leader).machine, three.group.replica(three.target).machine);
  EXPECT_EQ(events_of<TransferEnded>(three.group.replica(three.leader)).back().outcome,
            TransferOutcome::left_role);
}

TEST(Transfer, TheMostAdvancedVoterFollowsWhenNoTargetIsNamed) {
  Three three;
  three.group.cut(three.leader, three.target);
  three.group.propose(three.leader, "x");
  three.group.settle();
  ASSERT_EQ(transfer_leadership(three.group, three.leader, 0), std::nullopt);
  three.group.settle();
  EXPECT_EQ(three.group.core(three.other).role(), Role::leader);
}

TEST(Transfer, IsRefusedWithTheReason) {
  Three three;
  Group& group = three.group;
  EXPECT_EQ(transfer_leadership(group, three.target, three.other), TransferObstacle::not_leader);
  EXPECT_EQ(transfer_leadership(group, three.leader, three.leader),
            TransferObstacle::already_leads);
  EXPECT_EQ(transfer_leadership(group, three.leader, 9), TransferObstacle::not_a_voter);
  group.isolate(three.target);
  group.propose(three.leader, "x");
  EXPECT_EQ(transfer_leadership(group, three.leader, three.target), std::nullopt);
  EXPECT_EQ(transfer_leadership(group, three.leader, three.other),
            TransferObstacle::transfer_under_way);
  Group alone(1);
  alone.elect();
  EXPECT_EQ(transfer_leadership(alone, 1, 0), TransferObstacle::nobody_to_follow);
  for (int i = 0; i <= static_cast<int>(TransferObstacle::nobody_to_follow); ++i) {
    EXPECT_GT(text_of(TransferRefused{static_cast<TransferObstacle>(i), NodeId(2)}).size(), 15U);
  }
}

TEST(Transfer, NothingIsTakenWhileTheTargetIsBroughtUpToDate) {
  Three three;
  three.group.cut(three.leader, three.target);
  three.group.propose(three.leader, "x");
  three.group.settle();
  const Index last = three.core().log().last_index();
  ASSERT_EQ(transfer_leadership(three.group, three.leader, three.target), std::nullopt);
  EXPECT_FALSE(three.core().takes_proposals());
  EXPECT_FALSE(three.group.propose(three.leader, "y").has_value());
  const auto change = three.group.change(three.leader, {voter(1), voter(2)});
  EXPECT_EQ(std::get<ChangeRefused>(change).obstacle, ChangeObstacle::transfer_under_way);
  EXPECT_EQ(three.core().log().last_index(), last);
  // The lease was not dropped yet: reads still use it.
  EXPECT_GT(three.lease(), three.group.now().holder);
  three.group.heal();
  three.group.run(ms(150));
  EXPECT_EQ(three.group.core(three.target).role(), Role::leader);
}

TEST(Transfer, ATargetThatDoesNotCatchUpCostsNoLease) {
  Three three;
  three.group.isolate(three.target);
  three.group.propose(three.leader, "x");
  three.group.settle();
  ASSERT_EQ(transfer_leadership(three.group, three.leader, three.target), std::nullopt);
  three.group.run(kTiming.election_timeout);
  EXPECT_TRUE(three.core().takes_proposals());
  EXPECT_GT(three.lease(), three.group.now().holder);
  EXPECT_EQ(events_of<TransferEnded>(three.group.replica(three.leader)).back().outcome,
            TransferOutcome::target_behind);
  EXPECT_TRUE(events_of<TokenIssued>(three.group.replica(three.leader)).empty());
}

// H20, H22: the loss of the lease is published first, and from then on no read uses a lease.
TEST(Transfer, TheLossOfTheLeaseIsPublishedBeforeTimeoutNow) {
  Three three;
  Core& core = three.core();
  ASSERT_EQ(core.transfer(three.group.now(), node(three.target)), std::nullopt);
  Ready ready;
  ASSERT_TRUE(core.take_ready(ready));
  ASSERT_TRUE(ready.lease.has_value());
  EXPECT_EQ(ready.lease->end, HolderInstant::earliest());
  ASSERT_EQ(ready.messages.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<TimeoutNow>(ready.messages[0].message));
  core.read_index(three.group.now(), 77, ReadMode::lease);
  while (core.take_ready(ready)) EXPECT_TRUE(ready.reads.empty());
}

TEST(Transfer, ReadsGoByAQuorumWhileTheTokenIsOut) {
  Three three;
  three.issue();
  const auto answer = three.group.read(three.leader, ReadMode::lease);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->index.has_value());
  EXPECT_EQ(answer->basis, ReadBasis::quorum);
}

// H20 (iii): while a token may pass a promise there is no lease, however many rounds are
// acknowledged; and it is void once an entry beyond it is committed.
TEST(Transfer, AfterATransferThatFailedTheLeaseComesBackWithAnEntryBeyondTheToken) {
  Three three;
  const TransferToken token = three.issue();
  EXPECT_EQ(three.core().log().last_index(), token.last);
  three.group.run(kTiming.election_timeout - ms(1));
  EXPECT_EQ(three.lease(), HolderInstant::earliest());
  EXPECT_FALSE(three.group.propose(three.leader, "x").has_value());
  // The transfer ends, and the empty entry is lost at first.
  three.group.filter = [](const Envelope& e) {
    const auto* append = std::get_if<AppendRequest>(&e.message);
    return !is<TimeoutNow>(e) && (append == nullptr || append->entries.empty());
  };
  three.group.run(ms(200));
  EXPECT_EQ(three.core().log().last_index(), token.last.next());
  EXPECT_TRUE(three.core().takes_proposals());
  EXPECT_EQ(three.lease(), HolderInstant::earliest());
  three.group.filter = [](const Envelope& e) { return !is<TimeoutNow>(e); };
  three.group.run(ms(150));
  EXPECT_GT(three.core().commit_index(), token.last);
  EXPECT_GT(three.lease(), three.group.now().holder);
  // TimeoutNow comes late, and so do the votes that it would lead to.
  three.group.step(three.leader, three.target, TimeoutNow{token});
  EXPECT_EQ(three.group.core(three.target).role(), Role::follower);
  EXPECT_EQ(events_of<TokenUnused>(three.group.replica(three.target)).size(), 1U);
  EXPECT_FALSE(three.granted(three.other, three.request(token)));
  EXPECT_EQ(three.group.core(three.other).term(), token.term);
  EXPECT_FALSE(three.granted(three.leader, three.request(token)));
  EXPECT_EQ(three.core().role(), Role::leader);
}

TEST(Transfer, TheLargestTokenOfTheTermCounts) {
  Three three;
  const TransferToken first = three.issue();
  three.group.filter = [](const Envelope& e) {
    const auto* append = std::get_if<AppendRequest>(&e.message);
    const bool to_other = append != nullptr && !append->entries.empty();
    return !is<TimeoutNow>(e) && !to_other;
  };
  three.group.run(kTiming.election_timeout);
  ASSERT_EQ(three.core().log().last_index(), first.last.next());
  three.group.filter = [&](const Envelope& e) {
    return !is<TimeoutNow>(e) && !(is<AppendReply>(e) && e.from == node(three.other));
  };
  ASSERT_EQ(transfer_leadership(three.group, three.leader, three.target), std::nullopt);
  three.group.run(ms(100));
  EXPECT_EQ(events_of<TokenIssued>(three.group.replica(three.leader)).back().last,
            first.last.next());
  // What is beyond the first token is committed; the second is still out.
  EXPECT_EQ(three.core().commit_index(), first.last.next());
  EXPECT_EQ(three.lease(), HolderInstant::earliest());
}

// Two round trips: the answers to the leader's own heartbeats must not make it campaign against its
// target.
TEST(Transfer, TheLeaderDoesNotCampaignAgainstItsTarget) {
  Three three;
  three.issue();
  AppendReply reply;
  reply.request_term = three.core().term();
  reply.term = three.core().term().next();
  three.group.step(three.target, three.leader, reply);
  EXPECT_EQ(three.core().role(), Role::follower);
  EXPECT_EQ(three.core().term(), reply.term);
  const auto roles = events_of<RoleChanged>(three.group.replica(three.leader));
  EXPECT_EQ(roles.back().to, Role::follower);
}

TEST(Transfer, TimeoutNowIsSentAgainWithEachRound) {
  Three three;
  int sent = 0;
  three.group.filter = [&sent](const Envelope& e) {
    if (!is<TimeoutNow>(e)) return true;
    return ++sent > 2;
  };
  ASSERT_EQ(transfer_leadership(three.group, three.leader, three.target), std::nullopt);
  three.group.run(ms(250));
  EXPECT_EQ(three.group.core(three.target).role(), Role::leader);
}

// The target gets a whole election timeout for its campaign, however long it took to bring it up to
// date.
TEST(Transfer, EndsAnElectionTimeoutAfterTheTokenNotAfterTheRequest) {
  for (const Duration away : {ms(50), ms(100), ms(150)}) {
    Three three;
    three.group.filter = [](const Envelope& e) { return !is<TimeoutNow>(e); };
    three.group.cut(three.leader, three.target);
    three.group.propose(three.leader, "behind");
    three.group.settle();
    ASSERT_EQ(transfer_leadership(three.group, three.leader, three.target), std::nullopt);
    const PromiseInstant begun = three.group.now().promise;
    three.group.run(away);
    three.group.heal();
    three.group.run(ms(900));
    std::optional<PromiseInstant> issued;
    std::optional<PromiseInstant> ended;
    for (const Event& event : three.group.replica(three.leader).events) {
      if (std::holds_alternative<TokenIssued>(event.what)) issued = event.at.promise;
      if (std::holds_alternative<TransferEnded>(event.what)) ended = event.at.promise;
    }
    ASSERT_TRUE(issued && ended);
    EXPECT_GE(*issued - begun, away);
    EXPECT_GE(*ended - *issued, kTiming.election_timeout);
    EXPECT_LE(*ended - *issued, kTiming.election_timeout + kTiming.heartbeat);
    EXPECT_TRUE(three.core().takes_proposals());
  }
}

// Without a token nothing has to be made void.
TEST(Transfer, ThatEndsWithoutATokenAppendsNothing) {
  Three three;
  three.group.cut(three.leader, three.target);
  three.group.propose(three.leader, "behind");
  three.group.settle();
  const Index last = three.core().log().last_index();
  ASSERT_EQ(transfer_leadership(three.group, three.leader, three.target), std::nullopt);
  three.group.run(ms(700));
  const auto ended = events_of<TransferEnded>(three.group.replica(three.leader));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended.back().outcome, TransferOutcome::target_behind);
  EXPECT_TRUE(events_of<TokenIssued>(three.group.replica(three.leader)).empty());
  EXPECT_EQ(three.core().log().last_index(), last);
  EXPECT_GT(three.lease(), three.group.now().holder);
}

// ---- The target ----

TEST(Transfer, TheTargetCampaignsByATokenThatFitsOnly) {
  Three three;
  const TransferToken token = three.issue();
  const auto campaigns = [&](TransferToken t) {
    three.group.step(three.leader, three.target, TimeoutNow{t});
    return three.group.core(three.target).role() == Role::candidate;
  };
  TransferToken wrong = token;
  wrong.term = token.term.prev();
  EXPECT_FALSE(campaigns(wrong));
  wrong.term = token.term.next();
  EXPECT_FALSE(campaigns(wrong));
  wrong = token;
  wrong.target = node(three.other);
  EXPECT_FALSE(campaigns(wrong));
  wrong = token;
  wrong.last = token.last.prev();
  EXPECT_FALSE(campaigns(wrong));
  wrong.last = token.last.next();
  EXPECT_FALSE(campaigns(wrong));
  EXPECT_EQ(three.group.core(three.target).term(), token.term);
  three.group.in_flight().clear();
  EXPECT_TRUE(campaigns(token));
  // Without a pre-vote, and once.
  EXPECT_EQ(three.group.core(three.target).term(), token.term.next());
  int requests = 0;
  for (const Envelope& e : three.group.in_flight()) {
    EXPECT_FALSE(is<PreVoteRequest>(e));
    const auto* vote = std::get_if<VoteRequest>(&e.message);
    if (vote == nullptr) continue;
    ++requests;
    EXPECT_EQ(vote->token, token);
  }
  EXPECT_EQ(requests, 2);
  three.group.in_flight().clear();
  three.group.step(three.leader, three.target, TimeoutNow{token});
  EXPECT_EQ(three.group.core(three.target).term(), token.term.next());
  EXPECT_TRUE(three.group.in_flight().empty());
}

// It could not make its vote durable, and the group would wait for it in vain.
TEST(Transfer, ATargetWhoseDiskStallsDoesNotCampaign) {
  for (const Duration stalled : {kTiming.election_timeout, 2 * kTiming.election_timeout}) {
    Three three;
    const TransferToken token = three.issue();
    Replica& replica = three.group.replica(three.target);
    replica.auto_sync = false;
    AppendRequest longer;  // a longer D has to be remembered
    longer.term = token.term;
    longer.round = lease::Round(100);
    longer.lease = kTiming.lease + ms(500);
    three.group.step(three.leader, three.target, longer);
    ASSERT_FALSE(replica.unsynced.empty());
    three.group.jump(stalled);
    three.group.step(three.leader, three.target, TimeoutNow{token});
    EXPECT_EQ(three.group.core(three.target).role(), Role::follower);
    EXPECT_EQ(events_of<TokenUnused>(replica).size(), 1U);
    three.group.sync(three.target);
    three.group.step(three.leader, three.target, TimeoutNow{token});
    EXPECT_EQ(three.group.core(three.target).role(), Role::candidate);
  }
}

// A token of the term before: the promise is of this one, and its leader gave nothing up.
TEST(Transfer, TheTargetIsBoundByAPromiseOfAnotherTerm) {
  Three three;
  const TransferToken token = three.issue();
  Replica& replica = three.group.replica(three.target);
  three.group.crash(three.target);
  // A promise that the token's leader did not get.
  replica.disk_hard_state.promise.term = token.term.prev();
  replica.disk_hard_state.promise.holder = node(three.other);
  three.group.restart(three.target);
  three.group.step(three.leader, three.target, TimeoutNow{token});
  EXPECT_EQ(three.group.core(three.target).role(), Role::follower);
}

// ---- The voter ----

TEST(Transfer, AVoterLetsTheTokenPassItsPromise) {
  Three three;
  const TransferToken token = three.issue();
  ASSERT_TRUE(three.group.core(three.other).promise().live(three.group.now().promise));
  EXPECT_TRUE(three.granted(three.other, three.request(token)));
  // The promise itself stays: only an accepted leader replaces it.
  EXPECT_TRUE(three.group.core(three.other).promise().live(three.group.now().promise));
  EXPECT_EQ(three.group.core(three.other).hard_state().promise.holder, node(three.leader));
}

// Nothing changes then, not even the term.
TEST(Transfer, AVoterRefusesATokenThatIsNotTheCandidates) {
  const auto refused = [](auto&& change) {
    Three three;
    const TransferToken token = three.issue();
    VoteRequest m = three.request(token);
    int from = three.target;
    change(three, m, from);
    const HardState before = three.group.core(three.other).hard_state();
    three.group.in_flight().clear();
    three.group.step(from, three.other, m);
    const bool granted = std::get<VoteReply>(three.group.in_flight().back().message).granted;
    return !granted && three.group.core(three.other).hard_state() == before;
  };
  using M = VoteRequest;
  EXPECT_FALSE(refused([](Three&, M&, int&) {}));
  EXPECT_TRUE(refused([](Three&, M& m, int&) { m.token.reset(); }));
  EXPECT_TRUE(refused([](Three&, M& m, int&) { m.token->target = NodeId(9); }));
  EXPECT_TRUE(refused([](Three& t, M& m, int&) { m.token->target = node(t.other); }));
  EXPECT_TRUE(refused([](Three&, M& m, int&) { m.token->term = m.token->term.prev(); }));
  EXPECT_TRUE(refused([](Three&, M& m, int&) { m.token->last = m.token->last.prev(); }));
  EXPECT_TRUE(refused([](Three&, M& m, int&) { m.term = m.term.next(); })) << "another campaign";
  // The log check is not waived, and its failure does not raise the term either.
  EXPECT_TRUE(refused([](Three&, M& m, int&) {
    m.last.index = m.last.index.prev();
    m.token->last = m.last.index;
  }));
  EXPECT_TRUE(refused([](Three& t, M& m, int&) {
    t.group.replica(t.other).core->step(t.group.now(), peer(node(t.leader)), [&] {
      AppendRequest more;
      more.term = t.core().term();
      more.prev = m.last;
      more.entries = {Entry{{more.term, m.last.index.next()}, EntryKind::empty, Bytes()}};
      more.round = lease::Round(3);
      more.lease = ms(1000);
      return more;
    }());
    t.group.drain(t.other);
  })) << "the voter has an entry beyond the token";
}

TEST(Transfer, ARestartedVoterLetsTheTokenPassToo) {
  Three three;
  const TransferToken token = three.issue();
  three.group.restart(three.other);
  ASSERT_TRUE(three.group.core(three.other).promise().live(three.group.now().promise));
  EXPECT_TRUE(three.granted(three.other, three.request(token)));
}

// ---- With changes of the members ----

// H27, H21: a leader that is removed transfers the leadership, so that no node waits for its lease
// to end.
TEST(Transfer, ARemovedLeaderTransfersWhenItLeaves) {
  Three three;
  WantedMembers wanted;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (node(static_cast<int>(id)) != node(three.leader)) wanted.push_back(voter(id));
  }
  bool view_lost = true;
  three.group.filter = [&](const Envelope& e) {
    if (is<TimeoutNow>(e)) view_lost = three.lease() == HolderInstant::earliest();
    return true;
  };
  ASSERT_TRUE(std::holds_alternative<LogId>(three.group.change(three.leader, wanted)));
  three.group.settle();
  EXPECT_TRUE(view_lost);
  EXPECT_EQ(three.core().role(), Role::follower);
  EXPECT_EQ(events_of<RoleChanged>(three.group.replica(three.leader)).back().reason,
            RoleChangeReason::removed);
  const int next =
      three.group.core(three.target).role() == Role::leader ? three.target : three.other;
  EXPECT_EQ(three.group.core(next).role(), Role::leader);
  EXPECT_GT(three.group.core(next).lease_end(), three.group.now().holder);
}

TEST(Transfer, TheJointStateIsNotLeftWhileTheTokenIsOut) {
  Three three;
  Group& group = three.group;
  bool hold = true;
  std::vector<Envelope> held;
  group.filter = [&](const Envelope& e) {
    if (is<TimeoutNow>(e)) return false;
    if (!hold || !is<AppendReply>(e) || e.to != node(three.leader)) return true;
    // The target's answers come, the other's are late: nothing is committed with three voters of
    // which two answer, so both must be late but for the match of the target.
    held.push_back(e);
    return false;
  };
  WantedMembers wanted;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (node(static_cast<int>(id)) != node(three.other)) wanted.push_back(voter(id));
  }
  ASSERT_TRUE(std::holds_alternative<LogId>(group.change(three.leader, wanted)));
  group.settle();
  ASSERT_EQ(transfer_leadership(group, three.leader, three.target), std::nullopt);
  ASSERT_TRUE(three.core().membership().joint());
  hold = false;
  for (const Envelope& e : held) {
    group.step(static_cast<int>(e.from.value()), three.leader, e.message);
  }
  group.settle();
  // The joint entry is committed and the target has it: the token is out.
  EXPECT_EQ(three.core().commit_index(), three.core().log().last_index());
  EXPECT_TRUE(three.core().membership().joint());
  EXPECT_EQ(three.lease(), HolderInstant::earliest());
  group.run(kTiming.election_timeout + ms(150));
  EXPECT_EQ(three.core().role(), Role::leader);
  EXPECT_FALSE(three.core().membership().joint());
  EXPECT_GT(three.lease(), group.now().holder);
}

}  // namespace
}  // namespace leasehold::raft::test
