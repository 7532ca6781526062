// A group at rest: its leader sends nothing, and holds its lease by the beats of its process.
#include "rest_group.h"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace leasehold::raft::test {
namespace {

TEST_F(Rest, NothingIsSentAndTheLeaseGoesOn) {
  come_to_rest();
  sent = 0;
  beats(10 * kLease);
  EXPECT_EQ(sent, 0);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder);
}

TEST_F(Rest, AWriteEndsIt) {
  come_to_rest();
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  beats(3 * exact().heartbeat);
  EXPECT_EQ(sent_in_ten(), 0);
  for (int id = 1; id <= 3; ++id) {
    EXPECT_EQ(group.core(id).commit_index(), group.core(leader).log().last_index());
  }
}

TEST_F(Rest, AWriteThatIsLostIsSentAgain) {
  come_to_rest();
  let_through = [](const Envelope&) { return false; };
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  group.settle();
  let_through = [](const Envelope&) { return true; };
  beats(3 * exact().heartbeat);
  EXPECT_EQ(group.core(leader).commit_index(), group.core(leader).log().last_index());
}

TEST_F(Rest, AQuorumReadIsConfirmedAtOnce) {
  come_to_rest();
  const auto answer = group.read(leader, ReadMode::quorum);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->index, group.core(leader).commit_index());
  EXPECT_EQ(answer->basis, ReadBasis::quorum);
  come_to_rest();
  EXPECT_EQ(sent_in_ten(), 0);
}

TEST_F(Rest, AReadWhoseRoundIsLostGetsAnother) {
  come_to_rest();
  let_through = [](const Envelope&) { return false; };
  group.ask(leader, 77, ReadMode::quorum);
  group.settle();
  let_through = [](const Envelope&) { return true; };
  beats(2 * exact().heartbeat);
  ASSERT_EQ(group.replica(leader).reads.size(), 1U);
  EXPECT_TRUE(group.replica(leader).reads[0].index.has_value());
}

TEST_F(Rest, AMemberThatLetsGoBindsAgain) {
  come_to_rest();
  const std::vector<int> others = group.others(leader);
  // The process of one is not heard for a while, and another group of it relies on that.
  beats(kLease + exact().heartbeat, {others[0]});
  group.rely(others[0], leader);
  group.beat(leader);
  beats(exact().heartbeat);
  EXPECT_GT(sent, 0);
  come_to_rest();
  EXPECT_EQ(sent_in_ten(), 0);
  // It is one of the two that the lease stands on.
  beats(2 * kLease, {others[1]});
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder);
}

TEST_F(Rest, AMemberThatDoesNotKnowTheCommitKeepsItAwake) {
  const int member = group.others(leader)[0];
  let_through = [member](const Envelope& message) {
    const auto* append = std::get_if<AppendRequest>(&message.message);
    const bool lost = append != nullptr && append->entries.empty() &&
                      message.to == NodeId(static_cast<std::uint64_t>(member));
    return !lost;
  };
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  come_to_rest();
  ASSERT_LT(group.core(member).commit_index(), group.core(leader).commit_index());
  EXPECT_GT(sent_in_ten(), 0);
  let_through = [](const Envelope&) { return true; };
  come_to_rest();
  EXPECT_EQ(group.core(member).commit_index(), group.core(leader).commit_index());
  EXPECT_EQ(sent_in_ten(), 0);
}

// It left before the commit index was known, in the round of the append that told it and was lost.
TEST_F(Rest, ALateAnswerSaysNothingOfTheCommit) {
  const NodeId member(static_cast<std::uint64_t>(group.others(leader)[0]));
  std::optional<Envelope> late;
  let_through = [member, &late](const Envelope& message) {
    const auto* append = std::get_if<AppendRequest>(&message.message);
    if (append != nullptr && message.to == member) return !append->entries.empty();
    const auto* reply = std::get_if<AppendReply>(&message.message);
    if (reply == nullptr || message.from != member) return true;
    late = message;
    return false;
  };
  come_to_rest();
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  group.settle();
  ASSERT_TRUE(late.has_value());
  ASSERT_EQ(group.core(leader).commit_index(), group.core(leader).log().last_index());
  let_through = [member](const Envelope& message) { return message.to != member; };
  group.step(group.peer_of(static_cast<int>(member.value())), leader, late->message);
  group.drain(leader);
  come_to_rest();
  EXPECT_GT(sent_in_ten(), 0);
}

TEST_F(Rest, AMemberThatIsGoneGetsNothing) {
  come_to_rest();
  const int member = group.others(leader)[0];
  group.processes().crash(member);
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  beats(4 * kLease);
  EXPECT_EQ(sent_in_ten(), 0);
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder);
  // It comes back, and learns what it has missed.
  group.restart_process(member);
  group.beat(leader);
  come_to_rest();
  EXPECT_EQ(group.core(member).commit_index(), group.core(leader).commit_index());
  EXPECT_EQ(sent_in_ten(), 0);
  beats(2 * kLease, {group.others(leader)[1]});
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder);
}

// Its disk hangs: it would keep its lease, and commit nothing.
TEST_F(Rest, ALeaderWhoseProcessStandsStillStepsDown) {
  come_to_rest();
  ASSERT_NE(group.core(leader).lease_class(), kNoClass);
  ProcessPromises& promises = group.host(leader).promises();
  promises.set_healthy(false);
  group.core(leader).promises_moved(group.now());
  group.drain(leader);
  EXPECT_EQ(group.core(leader).role(), Role::follower);
  EXPECT_EQ(group.view_end(leader), HolderInstant::earliest());
  EXPECT_EQ(group.core(leader).next_deadline(), PromiseInstant::never()) << "it asks for no votes";
  promises.set_healthy(true);
  group.core(leader).promises_moved(group.now());
  EXPECT_LT(group.core(leader).next_deadline(), PromiseInstant::never());
}

// The one that is gone is not silent for long enough yet: rounds go on, and the other needs none.
TEST_F(Rest, ARoundLeavesOutTheMembersThatRest) {
  come_to_rest();
  const int gone = group.others(leader)[0];
  const int other = group.others(leader)[1];
  group.processes().crash(gone);
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  beats(4 * exact().heartbeat);
  std::map<NodeId, int> to;
  let_through = [&to](const Envelope& message) {
    ++to[message.to];
    return true;
  };
  beats(kLease);
  EXPECT_EQ(to[id_of(other)], 0);
  EXPECT_GT(to[id_of(gone)], 5);
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder);
  const auto answer = group.read(leader, ReadMode::quorum);
  ASSERT_TRUE(answer.has_value())
      << "it waits for no round that only the one that is gone was sent";
  // The other one lets go.
  beats(kLease + exact().heartbeat, {other});
  group.rely(other, leader);
  group.beat(leader);
  to.clear();
  beats(2 * exact().heartbeat);
  EXPECT_GT(to[id_of(other)], 0);
}

// It answers no beat, since it was wiped, say; but its core sends something.
TEST_F(Rest, AMessageOfAMemberThatWasGoneEndsIt) {
  come_to_rest();
  const int member = group.others(leader)[0];
  int appends = 0;
  let_through = [this, &appends, member](const Envelope& message) {
    if (message.from == id_of(leader) && message.to == id_of(member)) ++appends;
    return message.from != id_of(member) && message.to != id_of(member);
  };
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  beats(4 * kLease, {member});
  ASSERT_GT(appends, 0);
  appends = 0;
  beats(kLease, {member});
  ASSERT_EQ(appends, 0);
  AppendReply any;
  any.request_term = Term(1);
  any.term = Term(1);
  group.step(group.peer_of(member), leader, any);
  group.drain(leader);
  beats(2 * exact().heartbeat, {member});
  EXPECT_GT(appends, 0);
}

// The link of the processes breaks for a while. The member's promise is over, and it asks in vain.
TEST_F(Rest, AMemberThatHasAskedForVotesIsNotAtRest) {
  come_to_rest();
  const int member = group.others(leader)[0];
  group.isolate(member);
  beats(3 * kLease, {member});
  ASSERT_EQ(group.core(member).leader(), kNobody);
  group.heal();
  beats(4 * exact().heartbeat);
  EXPECT_EQ(group.core(member).leader(), id_of(leader));
  EXPECT_EQ(sent_in_ten(), 0);
}

TEST_F(Rest, AMemberThatHasTakenAHigherTermIsNotAtRest) {
  const int member = group.others(leader)[0];
  const int other = group.others(leader)[1];
  demote(member);
  ASSERT_EQ(sent_in_ten(), 0);
  group.isolate(member);
  beats(kLease + exact().heartbeat, {member});
  // It does not vote for a log that is shorter.
  group.step(other, member, VoteRequest{group.core(member).term().next(), LogId{}});
  group.in_flight().clear();
  ASSERT_GT(group.core(member).term(), group.core(leader).term());
  group.heal();
  beats(2 * kLease);
  for (int id = 1; id <= 3; ++id) EXPECT_NE(group.core(id).leader(), kNobody) << id;
  EXPECT_EQ(group.core(1).term(), group.core(2).term());
  EXPECT_EQ(group.core(2).term(), group.core(3).term());
}

// It took the term while it was bound: the holder's own request passes the promise.
TEST(Shared, AVoteInATermThatWasTakenBeforeLetsGoFirst) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const lease::Epoch before = group.support(member, leader).epoch();
  group.step(leader, member, VoteRequest{Term(9), LogId{}});
  ASSERT_EQ(group.core(member).term(), Term(9));
  ASSERT_EQ(group.core(member).hard_state().voted_for, kNobody) << "its log is shorter";
  EXPECT_EQ(group.support(member, leader).epoch(), before) << "the promise lives";
  group.silence();
  group.jump(kLease);
  ASSERT_TRUE(group.votes(member, group.others(leader)[1], 9));
  EXPECT_GT(group.support(member, leader).epoch(), before);
}

TEST(Shared, AGroupAsksForVotesWhenItMay) {
  SharedGroup group;
  ElectionLine& line = group.host(1).promises().elections();
  GroupId other(100);
  while (line.take_place(other, group.now().promise)) other = other.next();
  Core& core = group.core(1);
  EXPECT_FALSE(core.awaits_place());
  group.jump(2 * exact().election_timeout);
  core.tick(group.now());
  EXPECT_EQ(core.role(), Role::follower);
  EXPECT_TRUE(core.awaits_place());
  EXPECT_GT(core.next_deadline(), group.now().promise) << "it waits, and does not ask all the time";
  line.remove(GroupId(100));
  core.tick(group.now());
  EXPECT_EQ(core.role(), Role::pre_candidate);
  EXPECT_FALSE(core.awaits_place());
}

TEST(AloneAtRest, ALeaderAloneHoldsItsLeaseByRounds) {
  SharedGroup group(1);
  const int leader = group.elect();
  const Term term = group.core(leader).term();
  for (int i = 0; i < 40; ++i) {
    group.run(exact().heartbeat);
    EXPECT_EQ(group.core(leader).role(), Role::leader);
    EXPECT_GT(group.core(leader).lease_end(), group.now().holder);
  }
  EXPECT_EQ(group.core(leader).term(), term);
}

// A process whose groups do not know this node answers no beat.
TEST_F(Rest, AMemberThatWasNeverHeardIsTriedNowAndThen) {
  SharedGroup young;
  const int ahead = young.elect();
  const std::vector<int> others = young.others(ahead);
  young.processes().crash(others[0]);
  int appends = 0;
  young.filter = [&](const Envelope& message) {
    if (message.from == id_of(ahead) && message.to == id_of(others[0])) ++appends;
    return true;
  };
  const auto go_on = [&](Duration span) {
    appends = 0;
    for (Duration at{0}; at < span; at += exact().heartbeat) {
      young.run(exact().heartbeat);
      young.beat(ahead, {others[0]});
    }
  };
  go_on(5 * kLease);
  go_on(30 * kLease);
  EXPECT_GE(appends, 9);
  EXPECT_LE(appends, 12);
  EXPECT_GT(young.core(ahead).lease_end(), young.now().holder);
}

// Its process may have answered for a group that it has left since, and know no other of the
// leader's: a replica that it opens later asks for nothing by itself.
TEST_F(Rest, ASilentMemberIsTriedNowAndThen) {
  come_to_rest();
  const int gone = group.others(leader)[0];
  group.processes().crash(gone);
  ASSERT_TRUE(group.propose(leader, "x").has_value());
  beats(10 * kLease, {gone});
  int appends = 0;
  let_through = [&](const Envelope& message) {
    if (message.to == id_of(gone)) ++appends;
    return true;
  };
  beats(130 * kLease, {gone});
  EXPECT_GE(appends, 2);
  EXPECT_LE(appends, 3);
  EXPECT_GT(group.core(leader).lease_end(), group.now().holder);
}

TEST_F(Rest, WhereBeatsAreRarerThanTheGroupNeedsRoundsGoOn) {
  lease::Timing timing = exact();
  timing.lease = ms(200);
  timing.heartbeat = ms(20);
  SharedGroup hasty(3, timing);
  const int ahead = hasty.bound_leader();
  const Term term = hasty.core(ahead).term();
  for (int i = 0; i < 20; ++i) {
    hasty.beat(ahead);
    hasty.run(ms(250));
    EXPECT_GT(hasty.core(ahead).lease_end(), hasty.now().holder);
  }
  EXPECT_EQ(hasty.core(ahead).term(), term);
}

TEST_F(Rest, ALearnerIsPromoted) {
  SharedGroup growing(4);
  const int ahead = growing.bound_leader();
  const int pupil = growing.others(ahead)[0];
  const auto go_on = [&](Duration span) {
    for (Duration at{0}; at < span; at += exact().heartbeat) {
      growing.run(exact().heartbeat);
      growing.beat(ahead);
    }
  };
  ASSERT_TRUE(std::holds_alternative<LogId>(
      growing.change(ahead, with_learner(voters({1, 2, 3, 4}), pupil))));
  go_on(4 * kLease);
  ASSERT_FALSE(growing.core(ahead).membership().is_voter(id_of(pupil)));
  EXPECT_TRUE(std::holds_alternative<LogId>(growing.change(ahead, voters({1, 2, 3, 4}))));
}

TEST(WithoutSharedPromises, AGroupIsNeverAtRest) {
  Group group(3);
  const int leader = group.elect();
  group.run(kLease);
  int sent = 0;
  group.filter = [&sent](const Envelope&) {
    ++sent;
    return true;
  };
  group.run(10 * lease::Timing().heartbeat);
  EXPECT_GT(sent, 0);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
}

TEST(AReady, GivesBackWhatIsEmptyAndKeepsTheRest) {
  Ready ready;
  ready.messages.reserve(100);
  ready.events.reserve(100);
  ready.held.reserve(100);
  ready.held.push_back({});
  ready.give_back();
  EXPECT_EQ(ready.messages.capacity() + ready.events.capacity(), 0U);
  EXPECT_EQ(ready.held.size(), 1U);
}

}  // namespace
}  // namespace leasehold::raft::test
