// Thousands of small pools: steps are made until none is left.
#include <leasehold/base/random.h>
#include <leasehold/tests/placement/model.h>

#include <gtest/gtest.h>

namespace leasehold::placement {
namespace {

constexpr std::uint64_t kPools = 30'000;

std::uint32_t small(Random& random, std::uint64_t bound) {
  return static_cast<std::uint32_t>(random.below(bound));
}

/// Hosts of which some drain, are gone or cannot be reached.
std::vector<Host> random_hosts(Random& random) {
  std::vector<Host> hosts;
  const std::uint64_t count = 1 + random.below(8);
  const std::uint64_t zones = 1 + random.below(4);
  const bool healthy = random.chance(1, 2);
  const bool equal = random.chance(1, 2);
  for (std::uint64_t id = 1; id <= count; ++id) {
    Host host = a_host(id, std::to_string(random.below(zones)));
    if (!equal) host.weight = 1 + small(random, 4);
    if (!healthy) {
      if (random.chance(1, 8)) host.draining = true;
      if (random.chance(1, 12)) host.weight = 0;
      if (random.chance(1, 8)) host.contact = Contact::gone;
      if (random.chance(1, 12)) host.contact = Contact::unreachable;
    }
    hosts.push_back(host);
  }
  return hosts;
}

/// Members at different hosts, some on their way to vote. Somebody leads if there is a quorum.
Group random_group(Random& random, std::uint64_t id, const std::vector<Host>& hosts,
                   std::uint32_t load_max) {
  std::vector<std::uint64_t> places;
  for (const Host& host : hosts) places.push_back(host.id.value());
  for (std::size_t i = places.size() - 1; i > 0; --i) {
    std::swap(places[i], places[random.below(i + 1)]);
  }
  Group group = a_group(id, {});
  const std::uint64_t voters = 1 + random.below(std::min<std::uint64_t>(5, places.size()));
  for (std::uint64_t i = 0; i < places.size(); ++i) {
    const raft::NodeId number = group.last_replica + 1 + random.below(2);
    if (i < voters) {
      group.voters.push_back({number, raft::NodeId(places[i])});
    } else if (random.chance(1, 12)) {
      group.learners.push_back({number, raft::NodeId(places[i]), random.chance(1, 2)});
    } else {
      continue;
    }
    group.last_replica = number;
  }
  if (random.chance(1, 8)) group.leaving = group.voters[random.below(voters)].id;
  group.replicas = random.chance(3, 4) ? static_cast<std::uint32_t>(voters) : 1 + small(random, 5);
  group.load = 1 + small(random, load_max);
  std::vector<raft::NodeId> able;
  for (const Replica& voter : group.voters) {
    if (hosts[voter.host.value() - 1].contact == Contact::reachable) able.push_back(voter.id);
  }
  group.leader = able.size() > voters / 2 ? able[random.below(able.size())] : raft::kNobody;
  return group;
}

Pool random_pool(Random& random) {
  Pool pool;
  pool.hosts = random_hosts(random);
  const std::uint64_t groups = 1 + random.below(12);
  const std::uint32_t load_max = random.chance(1, 2) ? 1 : 10;
  for (std::uint64_t id = 1; id <= groups; ++id) {
    pool.groups.push_back(random_group(random, id, pool.hosts, load_max));
  }
  return pool;
}

Limits random_limits(Random& random) {
  Limits limits;
  limits.moves_per_host = 1 + random.below(3);
  limits.moves = 1 + random.below(4);
  limits.steps = 1 + random.below(8);
  limits.tolerance_percent = random.chance(1, 2) ? 0 : 5;
  return limits;
}

/// A pool, and what is asserted of it.
class Course {
 public:
  Course(Random& random, Pool pool, const Limits& limits)
      : random_(random),
        model_(std::move(pool)),
        limits_(limits),
        disturbances_(random.chance(1, 2) ? 0 : 20) {}

  /// The number of steps until none is left; asserts each of them. Steps of a plan are made at
  /// different speeds, and so do learners catch up.
  void to_the_end() {
    constexpr int kTurnsMax = 4000;
    for (int turn = 0; turn < kTurnsMax; ++turn) {
      if (turn < disturbances_) disturb();
      const auto plan = next_steps(model_.pool, limits_);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      ASSERT_LE(plan.value().steps.size(), limits_.steps);
      const bool waits = model_.copies() > 0;
      if (plan.value().steps.empty() && !waits && turn >= disturbances_) {
        reasons = plan.value().reasons;
        return;
      }
      ASSERT_NO_FATAL_FAILURE(make(plan.value().steps));
      if (plan.value().steps.empty()) {
        model_.catch_up();
      } else {
        catch_up_some();
      }
    }
    FAIL() << "it does not end";
  }

  const Pool& pool() const { return model_.pool; }
  const Host& host(raft::NodeId id) const { return model_.host(id); }

  std::vector<std::string> reasons;
  std::size_t steps = 0;

 private:
  void make(const std::vector<Step>& plan) {
    std::set<raft::GroupId> groups;
    std::map<raft::NodeId, std::size_t> copies;
    for (const Host& host : pool().hosts) copies[host.id] = model_.copies_at(host.id);
    for (const Step& step : plan) {
      ASSERT_TRUE(groups.insert(step.group).second) << "two steps of one group";
      // The first is made, so that each turn brings the pool further.
      if (step != plan.front() && random_.chance(1, 4)) continue;
      ASSERT_EQ(model_.apply(step), "") << describe(step);
      ++steps;
      if (step.what != Step::What::add_learner) continue;
      ASSERT_LE(model_.copies(), limits_.moves);
      ASSERT_LE(model_.copies_at(step.host), limits_.moves_per_host);
    }
  }
  /// A host drains or is there again, is cut off or comes back; a program that plans was restarted
  /// and has forgotten why replicas were added. Groups elect where they can.
  void disturb() {
    Host& host = model_.pool.hosts[random_.below(model_.pool.hosts.size())];
    if (random_.chance(1, 4)) host.draining = !host.draining;
    if (random_.chance(1, 4) && host.contact != Contact::gone) {
      host.contact = host.contact == Contact::reachable ? Contact::unreachable : Contact::reachable;
    }
    const bool forgets = random_.chance(1, 8);
    for (Group& group : model_.pool.groups) {
      if (forgets) group.leaving = raft::kNobody;
      if (random_.chance(1, 16)) group.replicas = 1 + small(random_, 5);
      elect(group);
    }
  }
  void elect(Group& group) {
    std::vector<raft::NodeId> able;
    for (const Replica& voter : group.voters) {
      if (model_.reachable(voter.host)) able.push_back(voter.id);
    }
    if (able.size() * 2 <= group.voters.size()) {
      group.leader = raft::kNobody;
    } else if (std::find(able.begin(), able.end(), group.leader) == able.end()) {
      group.leader = able[random_.below(able.size())];
    }
  }
  void catch_up_some() {
    for (Group& group : model_.pool.groups) {
      for (Learner& learner : group.learners) {
        if (random_.chance(1, 2)) learner.caught_up = true;
      }
    }
  }

  Random& random_;
  Model model_;
  Limits limits_;
  int disturbances_;  ///< so many turns, the first ones
};

bool keeps(const Host& host) {
  return host.weight > 0 && !host.draining && host.contact != Contact::gone;
}

bool takes(const Host& host) {
  return keeps(host) && host.contact == Contact::reachable;
}

/// What holds of each group in the end: it has as many replicas as it wants, none of them at a host
/// that drains or is gone, or too few hosts can have one.
void check_group(const Course& course, const Group& group) {
  std::size_t able = 0;
  std::size_t at_wrong_hosts = 0;
  std::map<std::string, std::size_t> zones;
  std::map<std::string, std::size_t> room;
  for (const Host& host : course.pool().hosts) {
    const bool here = std::any_of(group.voters.begin(), group.voters.end(),
                                  [&host](const Replica& voter) { return voter.host == host.id; });
    if (here) ++zones[host.zone];
    if (here && !keeps(host)) ++at_wrong_hosts;
    if (takes(host) || (here && keeps(host))) ++able;
    if (takes(host) && !here) ++room[host.zone];
  }
  EXPECT_GE(group.voters.size(), std::min<std::size_t>(able, group.replicas));
  const bool out_of_contact =
      std::any_of(group.voters.begin(), group.voters.end(), [&course](const Replica& voter) {
        return course.host(voter.host).contact == Contact::unreachable;
      });
  if (out_of_contact) {
    // Then one more may have to stay for the quorum, and nothing is moved for zones.
    EXPECT_TRUE(group.voters.size() <= group.replicas || !course.reasons.empty());
  } else if (able >= group.replicas) {
    EXPECT_EQ(group.voters.size(), group.replicas);
    EXPECT_EQ(at_wrong_hosts, 0U);
    EXPECT_TRUE(keeps(course.host(
        std::find_if(group.voters.begin(), group.voters.end(),
                     [&group](const Replica& voter) { return voter.id == group.leader; })
            ->host)))
        << "the leader";
    for (const auto& [from, count] : zones) {
      for (const auto& [to, free] : room) {
        EXPECT_LE(count, zones[to] + 1) << "zone " << from << " has more than zone " << to;
      }
    }
  } else {
    EXPECT_FALSE(course.reasons.empty());
  }
  EXPECT_TRUE(group.learners.empty());
}

/// Hosts of equal weight, all in one zone: no two differ by more than two groups.
void check_balance(const Course& course) {
  std::map<raft::NodeId, std::uint64_t> replicas;
  std::map<raft::NodeId, std::uint64_t> leaders;
  std::uint64_t total = 0;
  std::uint64_t largest = 0;
  for (const Group& group : course.pool().groups) {
    for (const Replica& voter : group.voters) {
      replicas[voter.host] += group.load;
      if (voter.id == group.leader) leaders[voter.host] += group.load;
      total += group.load;
    }
    largest = std::max<std::uint64_t>(largest, group.load);
  }
  const std::uint64_t bound = 2 * largest + total / course.pool().hosts.size() / 10;
  for (const Host& a : course.pool().hosts) {
    for (const Host& b : course.pool().hosts) {
      EXPECT_LE(replicas[a.id], replicas[b.id] + bound) << a.id.value() << " " << b.id.value();
    }
  }
  // A leadership moves only to another voter: within a group, and not beyond.
  for (const Group& group : course.pool().groups) {
    const auto leader =
        std::find_if(group.voters.begin(), group.voters.end(),
                     [&group](const Replica& voter) { return voter.id == group.leader; });
    for (const Replica& voter : group.voters) {
      EXPECT_LE(leaders[leader->host], leaders[voter.host] + bound);
    }
  }
}

/// A replica's move would leave the host that it comes from no less loaded than where it goes.
bool some_move_helps(const Pool& pool) {
  std::map<raft::NodeId, std::uint64_t> loads;
  for (const Group& group : pool.groups) {
    for (const Replica& voter : group.voters) loads[voter.host] += group.load;
  }
  for (const Group& group : pool.groups) {
    for (const Host& to : pool.hosts) {
      if (std::any_of(group.voters.begin(), group.voters.end(),
                      [&to](const Replica& voter) { return voter.host == to.id; })) {
        continue;
      }
      for (const Replica& voter : group.voters) {
        const Host& from = pool.hosts[voter.host.value() - 1];
        if (from.zone != to.zone) continue;
        const double left = static_cast<double>(loads[from.id] - group.load) / from.weight;
        const double there = static_cast<double>(loads[to.id] + group.load) / to.weight;
        if (there < left) return true;
      }
    }
  }
  return false;
}

bool is_healthy(const Pool& pool) {
  return std::all_of(pool.hosts.begin(), pool.hosts.end(), takes) &&
         std::all_of(pool.groups.begin(), pool.groups.end(),
                     [](const Group& group) { return group.voters.size() == group.replicas; });
}

bool is_even(const Pool& pool) {
  return is_healthy(pool) &&
         std::all_of(pool.hosts.begin(), pool.hosts.end(), [&pool](const Host& host) {
           return host.weight == 1 && host.zone == pool.hosts[0].zone;
         });
}

TEST(RandomPools, EndAsTheRulesSay) {
  std::uint64_t steps = 0;
  std::uint64_t most = 0;
  std::uint64_t even = 0;
  std::uint64_t healthy = 0;
  std::uint64_t short_of_hosts = 0;
  for (std::uint64_t seed = 1; seed <= kPools; ++seed) {
    Random random(seed);
    Pool pool = random_pool(random);
    const Limits limits = random_limits(random);
    Course course(random, std::move(pool), limits);
    ASSERT_NO_FATAL_FAILURE(course.to_the_end()) << "seed " << seed;
    const Pool& end = course.pool();
    for (const Group& group : end.groups) {
      // One that nobody leads can do nothing.
      if (group.leader != raft::kNobody) check_group(course, group);
    }
    if (is_healthy(end) && limits.tolerance_percent == 0) {
      ++healthy;
      EXPECT_FALSE(some_move_helps(end));
    }
    if (is_even(end)) {
      ++even;
      check_balance(course);
    }
    steps += course.steps;
    most = std::max<std::uint64_t>(most, course.steps / end.groups.size());
    short_of_hosts += course.reasons.empty() ? 0 : 1;
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_LE(most, 30U) << "for one group";
  // So that the pools do not become trivial by accident.
  EXPECT_GT(steps, 10 * kPools);
  EXPECT_GT(healthy, kPools / 20);
  EXPECT_GT(even, kPools / 50);
  EXPECT_GT(short_of_hosts, kPools / 20);
  RecordProperty("steps", std::to_string(steps));
}

// The plan of a large pool goes over the groups a few times, and not over pairs of them.
TEST(RandomPools, ALargePoolGetsANewHost) {
  Pool pool;
  for (std::uint64_t id = 1; id <= 100; ++id) {
    pool.hosts.push_back(a_host(id, std::to_string(id % 5)));
  }
  for (std::uint64_t id = 1; id <= 10'000; ++id) {
    pool.groups.push_back(a_group(id, {id % 99 + 1, (id + 1) % 99 + 1, (id + 2) % 99 + 1}));
  }
  Limits limits;
  limits.moves = 1000;
  limits.moves_per_host = 20;
  limits.steps = 1000;
  Model model(pool);
  std::size_t copies = 0;
  for (int turn = 0; turn < 200; ++turn) {
    const auto plan = next_steps(model.pool, limits);
    ASSERT_TRUE(plan.ok());
    if (plan.value().steps.empty()) break;
    for (const Step& step : plan.value().steps) {
      ASSERT_EQ(model.apply(step), "");
      copies += step.what == Step::What::add_learner ? 1 : 0;
    }
    model.catch_up();
  }
  std::map<raft::NodeId, int> replicas;
  for (const Group& group : model.pool.groups) {
    for (const Replica& voter : group.voters) ++replicas[voter.host];
  }
  EXPECT_NEAR(replicas[raft::NodeId(100)], 300, 20);
  EXPECT_LE(copies, 300U) << "only into the new host";
}

}  // namespace
}  // namespace leasehold::placement
