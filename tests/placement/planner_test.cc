// One test for each rule of the planner.
#include <leasehold/tests/placement/model.h>

#include <gmock/gmock.h>

namespace leasehold::placement {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::vector<std::string> steps_of(const Pool& pool, const Limits& limits = {}) {
  const auto plan = next_steps(pool, limits);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  std::vector<std::string> text;
  if (plan.ok()) {
    for (const Step& step : plan.value().steps) text.push_back(describe(step));
  }
  return text;
}

std::vector<std::string> reasons_of(const Pool& pool) {
  const auto plan = next_steps(pool, {});
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return plan.ok() ? plan.value().reasons : std::vector<std::string>{};
}

/// Plans and applies until nothing is left; all steps in order.
std::vector<std::string> run(Pool& pool, const Limits& limits = {}) {
  Model model(pool);
  std::vector<std::string> made;
  for (int turn = 0; turn < 1000; ++turn) {
    const auto plan = next_steps(model.pool, limits);
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    if (!plan.ok() || plan.value().steps.empty()) break;
    for (const Step& step : plan.value().steps) {
      made.push_back(describe(step));
      EXPECT_EQ(model.apply(step), "") << made.back();
    }
    model.catch_up();
  }
  pool = model.pool;
  return made;
}

/// Hosts 1 to `count`, all in one zone.
Pool hosts(std::uint64_t count) {
  Pool pool;
  for (std::uint64_t id = 1; id <= count; ++id) pool.hosts.push_back(a_host(id));
  return pool;
}

TEST(Planner, APoolThatIsAsItShouldBeGetsNoStep) {
  Pool pool = hosts(3);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    pool.groups.push_back(a_group(id, {1, 2, 3}));
    pool.groups.back().leader = raft::NodeId(id);
  }
  EXPECT_THAT(steps_of(pool), IsEmpty());
  EXPECT_THAT(reasons_of(pool), IsEmpty());
}

TEST(Planner, AHostThatIsGoneIsReplaced) {
  Pool pool = hosts(4);
  pool.groups.push_back(a_group(7, {1, 2, 3}));
  pool.hosts[2].contact = Contact::gone;
  EXPECT_THAT(run(pool), ElementsAre("group 7: add replica 4 at host 4 (repair)",
                                     "group 7: promote replica 4 at host 4 (finish)",
                                     "group 7: remove replica 3 from host 3 (finish)"));
}

TEST(Planner, AHostThatMayComeBackKeepsItsReplicas) {
  Pool pool = hosts(4);
  pool.groups.push_back(a_group(7, {1, 2, 3}));
  pool.hosts[2].contact = Contact::unreachable;
  EXPECT_THAT(steps_of(pool), IsEmpty());
}

TEST(Planner, AGroupWithTooFewReplicasGetsOneAtATime) {
  Pool pool = hosts(5);
  pool.groups.push_back(a_group(1, {1}));
  pool.groups[0].replicas = 3;
  EXPECT_THAT(run(pool), ElementsAre("group 1: add replica 2 at host 2 (repair)",
                                     "group 1: promote replica 2 at host 2 (finish)",
                                     "group 1: add replica 3 at host 3 (repair)",
                                     "group 1: promote replica 3 at host 3 (finish)"));
}

TEST(Planner, AGroupWithTooManyReplicasLosesTheOneOfTheFullestHost) {
  Pool pool = hosts(3);
  pool.groups.push_back(a_group(1, {1, 2, 3}));
  pool.groups[0].replicas = 2;
  pool.groups.push_back(a_group(2, {2}));
  EXPECT_THAT(steps_of(pool), ElementsAre("group 1: remove replica 2 from host 2 (finish)"));
}

TEST(Planner, ADrainingHostLosesLeadershipsThenReplicas) {
  Pool pool = hosts(4);
  pool.groups.push_back(a_group(1, {1, 2, 3}));
  pool.groups.push_back(a_group(2, {2, 1, 3}));
  pool.hosts[0].draining = true;
  const auto made = run(pool);
  ASSERT_THAT(made, SizeIs(7));
  EXPECT_EQ(made[0], "group 1: transfer the leadership to replica 3 at host 3 (drain)");
  EXPECT_EQ(made[1], "group 2: add replica 4 at host 4 (drain)");
  for (const Group& group : pool.groups) {
    for (const Replica& voter : group.voters) EXPECT_NE(voter.host, raft::NodeId(1));
  }
}

TEST(Planner, AHostWithoutWeightIsEmptied) {
  Pool pool = hosts(2);
  pool.groups.push_back(a_group(1, {1}));
  pool.hosts[0].weight = 0;
  EXPECT_THAT(run(pool),
              ElementsAre("group 1: add replica 2 at host 2 (drain)",
                          "group 1: promote replica 2 at host 2 (finish)",
                          "group 1: transfer the leadership to replica 2 at host 2 (finish)",
                          "group 1: remove replica 1 from host 1 (finish)"));
}

TEST(Planner, ReplicasGoToAsManyZonesAsThereAre) {
  Pool pool;
  pool.hosts = {a_host(1, "a"), a_host(2, "a"), a_host(3, "b"), a_host(4, "c"), a_host(5, "c")};
  pool.groups.push_back(a_group(1, {1, 2, 3}));
  EXPECT_THAT(run(pool),
              ElementsAre("group 1: add replica 4 at host 4 instead of replica 1 (zones)",
                          "group 1: promote replica 4 at host 4 (finish)",
                          "group 1: transfer the leadership to replica 2 at host 2 (finish)",
                          "group 1: remove replica 1 from host 1 (finish)"));
}

TEST(Planner, FiveReplicasDivideThreeZonesEvenly) {
  Pool pool;
  for (std::uint64_t id = 1; id <= 9; ++id)
    pool.hosts.push_back(a_host(id, id <= 3 ? "a" : id <= 6 ? "b" : "c"));
  pool.groups.push_back(a_group(1, {1, 2, 3, 4, 7}));
  run(pool);
  std::map<std::string, int> zones;
  for (const Replica& voter : pool.groups[0].voters) ++zones[Model(pool).host(voter.host).zone];
  EXPECT_THAT(zones,
              ElementsAre(std::pair<std::string, int>("a", 2), std::pair<std::string, int>("b", 2),
                          std::pair<std::string, int>("c", 1)));
}

TEST(Planner, ANewHostGetsItsShare) {
  Pool pool = hosts(4);
  for (std::uint64_t id = 1; id <= 40; ++id) {
    pool.groups.push_back(a_group(id, {1, 2, 3}));
    pool.groups.back().leader = raft::NodeId(id % 3 + 1);
  }
  run(pool);
  std::map<raft::NodeId, int> replicas;
  std::map<raft::NodeId, int> leaders;
  for (const Group& group : pool.groups) {
    for (const Replica& voter : group.voters) {
      ++replicas[voter.host];
      if (voter.id == group.leader) ++leaders[voter.host];
    }
  }
  for (const Host& host : pool.hosts) {
    EXPECT_NEAR(replicas[host.id], 30, 1);
    EXPECT_NEAR(leaders[host.id], 10, 1);
  }
}

TEST(Planner, AHostOfTwiceTheWeightGetsTwiceTheLoad) {
  Pool pool = hosts(4);
  pool.hosts[0].weight = 2;
  for (std::uint64_t id = 1; id <= 50; ++id) pool.groups.push_back(a_group(id, {id % 3 + 2}));
  run(pool);
  std::map<raft::NodeId, int> replicas;
  for (const Group& group : pool.groups) ++replicas[group.voters[0].host];
  EXPECT_NEAR(replicas[raft::NodeId(1)], 20, 2);
}

TEST(Planner, LoadDoesNotMoveBackAndForth) {
  Pool pool = hosts(2);
  pool.groups.push_back(a_group(1, {1}));
  EXPECT_THAT(steps_of(pool), IsEmpty()) << "host 2 would have what host 1 has now";
  pool.groups.push_back(a_group(2, {1}));
  EXPECT_THAT(steps_of(pool),
              ElementsAre("group 1: add replica 2 at host 2 instead of replica 1 (load)"));
}

TEST(Planner, WithinTheToleranceNothingMoves) {
  Pool pool = hosts(2);
  for (std::uint64_t id = 1; id <= 20; ++id) {
    pool.groups.push_back(a_group(id, {id <= 11 ? 1U : 2U}));
  }
  Limits limits;
  limits.tolerance_percent = 10;
  EXPECT_THAT(steps_of(pool, limits), IsEmpty());
  limits.tolerance_percent = 9;
  EXPECT_THAT(steps_of(pool, limits), SizeIs(1));
}

TEST(Planner, AZoneIsNotGivenUpForLoad) {
  Pool pool;
  pool.hosts = {a_host(1, "a"), a_host(2, "b"), a_host(3, "b")};
  for (std::uint64_t id = 1; id <= 10; ++id) {
    pool.groups.push_back(a_group(id, {1, id % 2 + 2}));
    pool.groups.back().leader = raft::NodeId(id % 4 < 2 ? 1 : 2);
  }
  EXPECT_THAT(run(pool), Not(Contains(HasSubstr("add"))));
}

TEST(Planner, TooFewHostsIsSaid) {
  Pool pool = hosts(3);
  pool.groups.push_back(a_group(7, {1, 2, 3}));
  pool.hosts[2].draining = true;
  EXPECT_THAT(steps_of(pool), IsEmpty());
  EXPECT_THAT(reasons_of(pool), ElementsAre("group 7 wants 3 replicas, and 2 hosts can have one"));
}

TEST(Planner, AGroupThatNobodyLeadsGetsNoStep) {
  Pool pool = hosts(4);
  pool.groups.push_back(a_group(1, {1, 2, 3}));
  pool.groups.push_back(a_group(2, {1, 2, 3}));
  pool.groups[0].leader = raft::kNobody;
  pool.hosts[1].contact = Contact::gone;
  pool.hosts[2].contact = Contact::gone;
  EXPECT_THAT(steps_of(pool), IsEmpty());
  EXPECT_THAT(reasons_of(pool),
              ElementsAre("group 1 has lost its quorum: 1 of 3 voters can be reached",
                          "group 2 has lost its quorum: 1 of 3 voters can be reached"));
  pool.hosts[1].contact = Contact::reachable;
  EXPECT_THAT(steps_of(pool), ElementsAre("group 2: add replica 4 at host 4 (repair)"));
  EXPECT_THAT(reasons_of(pool), ElementsAre("group 1 has no leader that can be reached"));
}

TEST(Planner, AGroupThatIsBeingChangedGetsNoStep) {
  Pool pool = hosts(4);
  pool.groups.push_back(a_group(1, {1, 2, 3}));
  pool.hosts[2].contact = Contact::gone;
  pool.groups[0].changing = true;
  EXPECT_THAT(steps_of(pool), IsEmpty());
  EXPECT_THAT(reasons_of(pool), IsEmpty());
}

TEST(Planner, AVoterStaysUntilTheOthersHaveAQuorum) {
  Pool pool = hosts(5);
  pool.groups.push_back(a_group(1, {1, 2, 3, 4, 5}));
  pool.groups[0].replicas = 4;
  pool.hosts[3].contact = Contact::unreachable;
  pool.hosts[4].contact = Contact::unreachable;
  pool.hosts[1].draining = true;
  EXPECT_THAT(steps_of(pool), IsEmpty());
  EXPECT_THAT(reasons_of(pool),
              ElementsAre("group 1 keeps replica 2 until more of its voters can be reached"));
  pool.hosts[3].contact = Contact::reachable;
  EXPECT_THAT(steps_of(pool), ElementsAre("group 1: remove replica 2 from host 2 (finish)"));
}

TEST(Planner, ALearnerWhoseHostIsLostIsGivenUp) {
  Pool pool = hosts(5);
  pool.groups.push_back(a_group(1, {1, 2, 3}));
  pool.hosts[2].contact = Contact::gone;
  pool.hosts[3].contact = Contact::unreachable;
  pool.groups[0].learners.push_back({raft::NodeId(4), raft::NodeId(4), true});
  pool.groups[0].last_replica = raft::NodeId(4);
  const auto made = run(pool);
  ASSERT_THAT(made, SizeIs(4));
  EXPECT_EQ(made[0], "group 1: remove replica 4 from host 4 (finish)");
  EXPECT_EQ(made[1], "group 1: add replica 5 at host 5 (repair)");
}

TEST(Planner, AMoveWhoseReasonWasForgottenEnds) {
  Pool pool = hosts(4);
  pool.groups.push_back(a_group(1, {1, 2, 3}));
  pool.groups[0].learners.push_back({raft::NodeId(4), raft::NodeId(4), true});
  pool.groups[0].last_replica = raft::NodeId(4);
  const auto made = run(pool);
  ASSERT_THAT(made, SizeIs(3));
  EXPECT_EQ(made[0], "group 1: promote replica 4 at host 4 (finish)");
  EXPECT_EQ(made[2], "group 1: remove replica 1 from host 1 (finish)");
  EXPECT_THAT(pool.groups[0].voters, SizeIs(3));
}

TEST(Planner, CopiesUnderWayCount) {
  Pool pool = hosts(4);
  for (std::uint64_t id = 1; id <= 9; ++id) {
    pool.groups.push_back(a_group(id, {1, 2, 3}));
    pool.groups.back().leader = raft::NodeId(id % 2 + 1);
  }
  pool.hosts[2].contact = Contact::gone;
  Limits limits;
  limits.moves_per_host = 3;
  EXPECT_THAT(steps_of(pool, limits), SizeIs(3)) << "into host 4";
  limits.moves = 2;
  EXPECT_THAT(steps_of(pool, limits), SizeIs(2));
  Group& copying = pool.groups.back();
  copying.learners.push_back({raft::NodeId(4), raft::NodeId(4), false});
  copying.last_replica = raft::NodeId(4);
  EXPECT_THAT(steps_of(pool, limits), SizeIs(1));
  limits.moves = 100;
  EXPECT_THAT(steps_of(pool, limits), SizeIs(2));
  copying.learners.back().caught_up = true;
  EXPECT_THAT(steps_of(pool, limits), SizeIs(4)) << "one of them promotes";
  limits.steps = 1;
  EXPECT_THAT(steps_of(pool, limits), SizeIs(1));
}

TEST(Planner, ALeaderSendsSoManyCopies) {
  Pool pool = hosts(6);
  for (std::uint64_t id = 1; id <= 9; ++id) pool.groups.push_back(a_group(id, {1, 2, 3}));
  pool.hosts[2].contact = Contact::gone;
  EXPECT_THAT(steps_of(pool), SizeIs(2)) << "out of host 1";
}

TEST(Planner, RepairsComeFirst) {
  Pool pool = hosts(5);
  pool.groups.push_back(a_group(1, {1, 2, 3}));
  pool.groups.push_back(a_group(2, {3, 4, 5}));
  pool.hosts[1].draining = true;
  pool.hosts[4].contact = Contact::gone;
  Limits limits;
  limits.steps = 1;
  EXPECT_THAT(steps_of(pool, limits), ElementsAre("group 2: add replica 4 at host 1 (repair)"));
}

TEST(Planner, ReasonsAreCounted) {
  Pool pool = hosts(2);
  for (std::uint64_t id = 1; id <= kReasonsMax + 5; ++id) {
    pool.groups.push_back(a_group(id, {1, 2}));
    pool.groups.back().replicas = 3;
    pool.groups.back().leader = raft::NodeId(id % 2 + 1);
  }
  const auto reasons = reasons_of(pool);
  ASSERT_THAT(reasons, SizeIs(kReasonsMax + 1));
  EXPECT_EQ(reasons.back(), "and 5 others");
}

TEST(Planner, LimitsAreChecked) {
  Limits none;
  none.moves_per_host = 0;
  EXPECT_THAT(next_steps({}, none).error().message, HasSubstr("moves_per_host"));
  none = {};
  none.moves = 0;
  EXPECT_THAT(next_steps({}, none).error().message, HasSubstr("moves is"));
  none = {};
  none.steps = 0;
  EXPECT_THAT(next_steps({}, none).error().message, HasSubstr("steps"));
  none = {};
  none.tolerance_percent = 101;
  EXPECT_THAT(next_steps({}, none).error().message, HasSubstr("tolerance_percent"));
  EXPECT_TRUE(next_steps({}, {}).ok()) << "an empty pool";
}

}  // namespace
}  // namespace leasehold::placement
