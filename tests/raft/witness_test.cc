// Witnesses: a test for each rule of raft/core_witness.cc.

#include "group.h"

#include <gtest/gtest.h>

#include <chrono>

namespace leasehold::raft::test {
namespace {

using std::chrono::seconds;

// 1 and 2 have a state, 3 is the witness.
constexpr int kWitness = 3;

NodeId node(int id) {
  return NodeId(static_cast<std::uint64_t>(id));
}

struct Three {
  Three() : group(3, {}, 1, Duration(0), {kWitness}) {
    leader = group.elect();
    other = 3 - leader;
    group.run(ms(500));
  }
  Core& core(int id) { return group.core(id); }

  Group group;
  int leader = 0;
  int other = 0;
};

WantedMember witness(std::uint64_t id, Suffrage suffrage = Suffrage::voter) {
  WantedMember member = voter(id);
  member.suffrage = suffrage;
  member.witness = true;
  return member;
}

std::optional<ChangeObstacle> obstacle(const std::variant<LogId, ChangeRefused>& answer) {
  const auto* refused = std::get_if<ChangeRefused>(&answer);
  return refused != nullptr ? std::optional(refused->obstacle) : std::nullopt;
}

bool has_led(const Replica& replica) {
  for (const RoleChanged& change : events_of<RoleChanged>(replica)) {
    if (change.to == Role::leader) return true;
  }
  return false;
}

/// The entry stands in a log that only the witness and the leader have, and the leader is gone.
/// Returns where.
LogId leave_an_entry_to_the_witness(Three& three) {
  three.group.cut(three.leader, three.other);
  const LogId at = *three.group.propose(three.leader, "left");
  three.group.run(ms(50));
  EXPECT_GE(three.core(three.leader).commit_index(), at.index);
  EXPECT_LT(three.core(three.other).log().last_index(), at.index);
  three.group.crash(three.leader);
  three.group.heal();
  return at;
}

TEST(Witness, VotesAndAcknowledgesLikeAnyVoter) {
  Three three;
  three.group.isolate(three.other);
  const LogId at = *three.group.propose(three.leader, "x");
  three.group.run(seconds(5));
  // Committed, and still under a lease, by two of three.
  EXPECT_EQ(three.core(three.leader).commit_index(), at.index);
  EXPECT_GT(three.group.replica(three.leader).view.end, three.group.now().holder);
  EXPECT_EQ(three.core(kWitness).durable_index(), at.index);
}

TEST(Witness, TwoFullMembersAndAWitnessLiveThroughTheLossOfAnyOne) {
  for (int lost = 1; lost <= 3; ++lost) {
    Three three;
    three.group.propose(three.leader, "before");
    three.group.run(ms(300));
    three.group.crash(lost);
    three.group.run(seconds(5));
    const int leader = three.core(1).role() == Role::leader && lost != 1 ? 1 : 2;
    ASSERT_NE(leader, lost);
    const LogId at = *three.group.propose(leader, "after");
    three.group.run(ms(300));
    EXPECT_EQ(three.core(leader).commit_index(), at.index) << lost;
    EXPECT_TRUE(three.group.read(leader, ReadMode::lease)->index) << lost;
  }
}

TEST(Witness, LeadsUntilAFullMemberHasEverythingAndTransfers) {
  Three three;
  const LogId at = leave_an_entry_to_the_witness(three);
  three.group.run(seconds(5));
  EXPECT_TRUE(has_led(three.group.replica(kWitness)));
  ASSERT_EQ(three.core(three.other).role(), Role::leader);
  EXPECT_TRUE(three.core(three.other).log().matches(at));
  EXPECT_GE(three.core(three.other).commit_index(), at.index);
  // By a token: its campaign waited for no promise to the witness.
  EXPECT_EQ(events_of<TokenIssued>(three.group.replica(kWitness)).size(), 1U);
  EXPECT_TRUE(three.group.read(three.other, ReadMode::lease)->index);
}

// Any leader with a state is better than the witness.
TEST(Witness, TransfersToAMemberWhoseClockCouldHoldNoLease) {
  Three three;
  GroupSettings slow;
  slow.timing.heartbeat = ms(200);
  ASSERT_TRUE(std::holds_alternative<LogId>(three.group.change_settings(three.leader, slow)));
  three.group.run(ms(500));
  lease::Timing loose;
  loose.max_clock_drift_ppm = 400'000;  // U = 418 ms, and three heartbeats are 600
  three.group.restart(three.other, loose);
  three.group.run(ms(500));
  leave_an_entry_to_the_witness(three);
  three.group.run(seconds(8));
  EXPECT_TRUE(has_led(three.group.replica(kWitness)));
  EXPECT_EQ(three.core(three.other).role(), Role::leader);
}

TEST(Witness, ServesNothingWhileItLeads) {
  Three three;
  leave_an_entry_to_the_witness(three);
  // It is elected, and no full voter gets everything.
  three.group.filter = [](const Envelope& e) {
    const auto* append = std::get_if<AppendRequest>(&e.message);
    return append == nullptr || append->entries.empty();
  };
  three.group.run(seconds(5));
  ASSERT_EQ(three.core(kWitness).role(), Role::leader);
  EXPECT_EQ(three.core(kWitness).lease_end(), HolderInstant::earliest());
  EXPECT_FALSE(three.core(kWitness).takes_proposals());
  EXPECT_EQ(three.group.propose(kWitness, "no"), std::nullopt);
  EXPECT_EQ(obstacle(three.group.change(kWitness, {voter(1), witness(3)})),
            ChangeObstacle::transfer_under_way);
  for (const ReadMode mode : {ReadMode::lease, ReadMode::quorum}) {
    EXPECT_FALSE(three.group.read(kWitness, mode)->index);
    EXPECT_FALSE(three.group.read(three.other, mode)->index);
  }
}

TEST(Witness, TransfersAgainWhenTheTargetWasNotElected) {
  Three three;
  leave_an_entry_to_the_witness(three);
  int tokens = 0;
  three.group.filter = [&tokens](const Envelope& e) {
    // TimeoutNow is repeated with each round.
    return !std::holds_alternative<TimeoutNow>(e.message) || ++tokens > 6;
  };
  three.group.run(seconds(6));
  EXPECT_GT(events_of<TokenIssued>(three.group.replica(kWitness)).size(), 1U);
  EXPECT_EQ(three.core(three.other).role(), Role::leader);
}

TEST(Witness, LetsAFullMemberGoFirst) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Group group(3, {}, seed, Duration(0), {kWitness});
    group.elect();
    EXPECT_FALSE(has_led(group.replica(kWitness))) << seed;
  }
}

TEST(Witness, IsNeverTheTargetOfATransfer) {
  Three three;
  const auto refused = three.core(three.leader).transfer(three.group.now(), node(kWitness));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->obstacle, TransferObstacle::witness);
  EXPECT_NE(text_of(*refused).find("witness"), std::string::npos);
  // Not even when it is the only one that answers.
  three.group.crash(three.other);
  three.group.run(seconds(1));
  EXPECT_EQ(three.core(three.leader).transfer(three.group.now(), kNobody), std::nullopt);
  three.group.drain(three.leader);
  EXPECT_EQ(events_of<TransferStarted>(three.group.replica(three.leader)).back().target,
            node(three.other));
}

TEST(Witness, UsesNoToken) {
  Three three;
  const Core& leader = three.core(three.leader);
  three.group.step(three.leader, kWitness,
                   TimeoutNow{{leader.term(), node(kWitness), leader.log().last_index()}});
  EXPECT_EQ(three.core(kWitness).role(), Role::follower);
  EXPECT_EQ(events_of<TokenUnused>(three.group.replica(kWitness)).size(), 1U);
}

TEST(Witness, LearnsOnlyCommitsThatEveryFullMemberHolds) {
  Three three;
  three.group.run(ms(300));
  const Index before = three.core(three.leader).commit_index();
  EXPECT_EQ(three.core(kWitness).commit_index(), before);
  three.group.isolate(three.other);
  for (int i = 0; i < 3; ++i) three.group.propose(three.leader, "x");
  three.group.run(seconds(1));
  const Index committed = three.core(three.leader).commit_index();
  EXPECT_EQ(committed, before + 3);
  EXPECT_EQ(three.core(kWitness).commit_index(), before);
  // No node can send any more what the leader itself has cut off.
  three.group.cut_log(three.leader, before + 2);
  three.group.run(seconds(1));
  EXPECT_EQ(three.core(kWitness).commit_index(), before + 2);
  three.group.heal();
  three.group.run(seconds(2));
  EXPECT_EQ(three.core(kWitness).commit_index(), three.core(three.leader).commit_index());
}

TEST(Witness, MayNotCutWhatItCommitsWithOthersAlone) {
  Group group(3, {}, 1, Duration(0), {2, 3});
  ASSERT_EQ(group.elect(), 1);
  group.run(ms(500));
  const Index before = group.core(1).commit_index();
  // Entries reach the witnesses only, and then one of them leads without the full member.
  group.propose(1, "x");
  group.run(ms(50));
  group.isolate(1);
  group.run(seconds(5));
  const int leads = group.core(2).role() == Role::leader ? 2 : 3;
  ASSERT_EQ(group.core(leads).role(), Role::leader);
  EXPECT_GT(group.core(leads).commit_index(), before + 1);
  EXPECT_LE(group.core(leads).cut_limit(), before + 1);
  EXPECT_LE(group.core(5 - leads).cut_limit(), before + 1);
  group.heal();
  group.run(seconds(5));
  EXPECT_EQ(group.core(1).role(), Role::leader);
  EXPECT_EQ(group.core(2).cut_limit(), group.core(1).commit_index());
}

TEST(Witness, BeginsAgainWhereTheLeadersLogBegins) {
  Three three;
  three.group.isolate(kWitness);
  for (int i = 0; i < 5; ++i) three.group.propose(three.leader, "x");
  three.group.run(seconds(1));
  const Index base = three.core(three.leader).commit_index();
  three.group.cut_log(three.leader, base);
  const LogId at = *three.group.propose(three.leader, "behind");
  three.group.heal();
  three.group.run(seconds(2));
  EXPECT_EQ(three.core(kWitness).log().base(), three.core(three.leader).log().base());
  EXPECT_EQ(three.core(kWitness).durable_index(), at.index);
  EXPECT_TRUE(three.group.replica(three.leader).sendings.empty());
  EXPECT_EQ(events_of<SnapshotInstalled>(three.group.replica(kWitness)).size(), 1U);
  // It starts there again, and votes.
  three.group.restart(kWitness);
  EXPECT_EQ(three.core(kWitness).log().base().index, base);
  three.group.crash(three.leader);
  three.group.run(seconds(5));
  EXPECT_EQ(three.core(three.other).role(), Role::leader);
}

TEST(Witness, AFullMemberTakesNoBeginningWithoutAState) {
  Three three;
  const Core& leader = three.core(three.leader);
  SnapshotChunk chunk;
  chunk.term = leader.term();
  chunk.round = Round(1);
  chunk.lease = leader.options().timing.lease;
  chunk.id.last = {leader.term(), leader.log().last_index() + 100};
  chunk.membership = leader.membership();
  const Index last = three.core(three.other).log().last_index();
  three.group.step(three.leader, three.other, chunk);
  EXPECT_EQ(three.core(three.other).log().last_index(), last);
  const Envelope& answer = three.group.in_flight().back();
  ASSERT_TRUE(std::holds_alternative<SnapshotReply>(answer.message));
  EXPECT_TRUE(std::get<SnapshotReply>(answer.message).refused);
  // And a witness accepts no state.
  chunk.size = 1;
  chunk.data = Bytes("s");
  three.group.step(three.leader, kWitness, chunk);
  EXPECT_EQ(three.core(kWitness).log().last_index(), last);
  EXPECT_TRUE(std::get<SnapshotReply>(three.group.in_flight().back().message).refused);
}

TEST(Witness, ThatLeadsSendsNoSnapshot) {
  Three three;
  // The entries that the other one lacks are gone from every log.
  three.group.isolate(three.other);
  for (int i = 0; i < 5; ++i) three.group.propose(three.leader, "x");
  three.group.run(seconds(1));
  three.group.cut_log(three.leader, three.core(three.leader).commit_index());
  three.group.run(seconds(1));
  three.group.cut_log(kWitness, three.core(kWitness).commit_index());
  three.group.crash(three.leader);
  three.group.heal();
  three.group.run(seconds(5));
  EXPECT_TRUE(has_led(three.group.replica(kWitness)));
  EXPECT_TRUE(three.group.replica(kWitness).sendings.empty());
  EXPECT_TRUE(three.group.replica(kWitness).intents.empty());
  // Only the one that is gone can help, and does when it is back.
  EXPECT_NE(three.core(three.other).role(), Role::leader);
  three.group.restart(three.leader);
  three.group.run(seconds(10));
  EXPECT_NE(three.core(kWitness).role(), Role::leader);
  EXPECT_EQ(three.core(three.other).log().last_index(),
            three.core(three.leader).log().last_index());
}

TEST(Witness, AtLeastOneVoterHasAState) {
  Three three;
  const WantedMembers only_witnesses = {witness(3)};
  EXPECT_EQ(obstacle(three.group.change(three.leader, only_witnesses)),
            ChangeObstacle::no_full_voter);
  const WantedMembers beside_learner = {{node(1), Uuid{1, 1}, "node1", Suffrage::learner, false},
                                        witness(3)};
  EXPECT_EQ(obstacle(three.group.change(three.leader, beside_learner)),
            ChangeObstacle::no_full_voter);
  EXPECT_NE(text_of(ChangeRefused{ChangeObstacle::no_full_voter}).find("witness"),
            std::string::npos);
}

TEST(Witness, AMemberStaysWhatItIs) {
  Three three;
  EXPECT_EQ(obstacle(three.group.change(three.leader, {voter(1), voter(2), voter(3)})),
            ChangeObstacle::other_kind);
  EXPECT_EQ(obstacle(three.group.change(three.leader, {voter(1), witness(2), witness(3)})),
            ChangeObstacle::other_kind);
  // As a learner it is one, too.
  three.group.add(4, true);
  const auto learns = witness(4, Suffrage::learner);
  ASSERT_EQ(obstacle(three.group.change(three.leader, {voter(1), voter(2), witness(3), learns})),
            std::nullopt);
  three.group.run(ms(500));
  EXPECT_TRUE(three.core(three.other).membership().is_witness(node(4)));
  EXPECT_EQ(obstacle(three.group.change(three.leader, {voter(1), voter(2), witness(3), voter(4)})),
            ChangeObstacle::other_kind);
  ASSERT_EQ(
      obstacle(three.group.change(three.leader, {voter(1), voter(2), witness(3), witness(4)})),
      std::nullopt);
  three.group.run(ms(500));
  EXPECT_EQ(three.core(three.other).membership().witnesses,
            (std::vector<NodeId>{node(3), node(4)}));
}

// Two witnesses are a quorum of the old voters and of the new ones. The one that leaves is the last
// that has the state.
TEST(Witness, TheLastOneWithTheStateDoesNotLeaveBeforeAnotherHasIt) {
  Group group(3, {}, 1, Duration(0), {2, 3});
  const int leader = group.elect();
  ASSERT_EQ(leader, 1);
  group.add(4);
  ASSERT_EQ(obstacle(group.change(1, {voter(1), witness(2), witness(3), learner(4)})),
            std::nullopt);
  group.run(ms(500));
  group.filter = [](const Envelope& e) {
    const auto* append = std::get_if<AppendRequest>(&e.message);
    return e.to != NodeId(4) || append == nullptr || append->entries.empty();
  };
  group.propose(1, "the state");
  ASSERT_EQ(obstacle(group.change(1, {voter(4), witness(2), witness(3)})), std::nullopt);
  group.run(seconds(2));
  EXPECT_TRUE(group.core(1).membership().joint());
  EXPECT_LE(group.core(1).log().membership_index(), group.core(1).commit_index());
  EXPECT_EQ(group.core(1).role(), Role::leader);
  group.filter = [](const Envelope&) { return true; };
  group.run(seconds(5));
  EXPECT_EQ(group.core(4).role(), Role::leader);
  EXPECT_FALSE(group.core(4).membership().joint());
  EXPECT_EQ(group.core(4).membership().find(NodeId(1)), nullptr);
}

/// 1 has the state, 2 and 3 are witnesses, and 4 is to take the place of 1; heartbeats reach it,
/// and nothing else.
struct Replacement {
  Replacement() : group(3, {}, 1, Duration(0), {2, 3}) {
    EXPECT_EQ(group.elect(), 1);
    group.add(4);
    EXPECT_EQ(obstacle(group.change(1, {voter(1), witness(2), witness(3), learner(4)})),
              std::nullopt);
    group.run(ms(500));
    group.filter = [](const Envelope& e) {
      const auto* append = std::get_if<AppendRequest>(&e.message);
      const bool heartbeat = append != nullptr && append->entries.empty();
      return e.to != node(4) || heartbeat;
    };
    for (int i = 0; i < 5; ++i) group.propose(1, "the state");
    group.run(seconds(1));
  }
  void begin() {
    EXPECT_EQ(obstacle(group.change(1, {voter(4), witness(2), witness(3)})), std::nullopt);
    group.run(seconds(1));
    EXPECT_TRUE(group.core(1).membership().joint());
  }
  void cut_as_told() {
    group.cut_log(1, group.core(1).commit_index());
    group.run(seconds(1));
    for (const int id : {2, 3}) group.cut_log(id, group.core(id).cut_limit());
  }
  void expect_completed(const Machine& machine) {
    EXPECT_EQ(group.core(4).role(), Role::leader);
    EXPECT_FALSE(group.core(4).membership().joint());
    ASSERT_GE(group.replica(4).machine.size(), machine.size());
    EXPECT_EQ(group.replica(4).machine.at(machine.size() - 1).payload, machine.back().payload);
  }

  Group group;
};

// Its own log does not reach back, and its state goes with it: the witnesses keep the entries.
TEST(Witness, LearnsFromALeavingLeaderOnlyWhatTheOthersHold) {
  Replacement replacement;
  Group& group = replacement.group;
  const Index held = group.core(4).durable_index();
  replacement.begin();
  replacement.cut_as_told();
  ASSERT_GT(group.core(1).log().base().index, held);
  EXPECT_LE(group.core(2).cut_limit(), held);
  EXPECT_LE(group.core(3).cut_limit(), held);
  const Machine machine = group.replica(1).machine;
  group.crash(1);
  group.filter = [](const Envelope&) { return true; };
  group.run(seconds(10));
  replacement.expect_completed(machine);
}

// The witnesses commit its removal. If it left then, all would wait for the end of their promises.
TEST(Witness, ALeaderThatIsRemovedStaysUntilAFullVoterCanFollow) {
  Group group(4, {}, 1, Duration(0), {2, 3});
  const int first = group.elect();
  const int second = 5 - first;
  bool held_back = false;
  group.filter = [&](const Envelope& e) {
    const auto* append = std::get_if<AppendRequest>(&e.message);
    if (append == nullptr || append->entries.empty() || e.to != node(second)) return true;
    held_back = !group.core(first).membership().joint();
    return !held_back;
  };
  const auto number = static_cast<std::uint64_t>(second);
  ASSERT_EQ(obstacle(group.change(first, {witness(2), witness(3), voter(number)})), std::nullopt);
  group.run(ms(300));
  ASSERT_TRUE(held_back);
  ASSERT_EQ(group.core(first).commit_index(), group.core(first).log().last_index());
  EXPECT_EQ(group.core(first).role(), Role::leader);
  EXPECT_GT(group.core(first).lease_end(), group.now().holder);
  group.filter = [](const Envelope&) { return true; };
  group.run(ms(300));
  EXPECT_EQ(group.core(first).role(), Role::follower);
  EXPECT_EQ(group.core(second).role(), Role::leader);
  EXPECT_GT(group.core(second).lease_end(), group.now().holder);
}

// The entries are cut off at the witnesses, since the leader of then was to stay. The next one has
// them, promotes a learner, and is gone; the witness that leads next can bring it up only with the
// help of the other one that leaves.
TEST(Witness, TransfersToALeavingMemberIfOnlyThatHasTheState) {
  Group group(4, {}, 1, Duration(0), {2, 3});
  const int first = group.elect();
  const int second = 5 - first;
  group.add(5);
  const WantedMembers members = {voter(1), witness(2), witness(3), voter(4), learner(5)};
  EXPECT_EQ(obstacle(group.change(first, members)), std::nullopt);
  group.run(ms(500));
  const auto new_to_five = [](const Envelope& e) {
    const auto* append = std::get_if<AppendRequest>(&e.message);
    return e.to == node(5) && (append == nullptr || !append->entries.empty());
  };
  group.filter = [&](const Envelope& e) { return !new_to_five(e); };
  for (int i = 0; i < 5; ++i) group.propose(first, "the state");
  group.run(seconds(1));
  group.cut_log(first, group.core(first).commit_index());
  group.run(seconds(1));
  for (const int id : {2, 3}) group.cut_log(id, group.core(id).cut_limit());
  ASSERT_GT(group.core(2).log().base().index, group.core(5).durable_index());

  ASSERT_EQ(group.core(first).transfer(group.now(), node(second)), std::nullopt);
  group.run(seconds(1));
  ASSERT_EQ(group.core(second).role(), Role::leader);
  // The change reaches the witnesses alone.
  group.filter = [&](const Envelope& e) {
    const auto* append = std::get_if<AppendRequest>(&e.message);
    return !new_to_five(e) &&
           !(e.to == node(first) && append != nullptr && !append->entries.empty());
  };
  EXPECT_EQ(obstacle(group.change(second, {voter(5), witness(2), witness(3)})), std::nullopt);
  group.run(seconds(1));
  EXPECT_TRUE(group.core(second).membership().joint());
  const Machine machine = group.replica(second).machine;
  const std::size_t led_before = events_of<RoleChanged>(group.replica(first)).size();
  group.crash(second);
  group.run(seconds(5));
  ASSERT_TRUE(has_led(group.replica(2)) || has_led(group.replica(3)));
  group.filter = [](const Envelope&) { return true; };
  group.run(seconds(10));
  EXPECT_GT(events_of<RoleChanged>(group.replica(first)).size(), led_before);
  EXPECT_EQ(group.core(5).role(), Role::leader);
  EXPECT_FALSE(group.core(5).membership().joint());
  ASSERT_GE(group.replica(5).machine.size(), machine.size());
  EXPECT_EQ(group.replica(5).machine.at(machine.size() - 1).payload, machine.back().payload);
}

}  // namespace
}  // namespace leasehold::raft::test
