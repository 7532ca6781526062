// The simulator, tested: its parts do what they say, a seed repeats itself, and the verdict depends
// on the environment's promises.
#include <gtest/gtest.h>
#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/simulator.h>

#include "kept_plans.h"

#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(EventQueue, RunsByTimeThenByOrderOfScheduling) {
  EventQueue queue;
  std::vector<int> ran;
  queue.after(Duration(20), [&ran] { ran.push_back(3); });
  queue.after(Duration(10), [&ran, &queue] {
    ran.push_back(1);
    queue.after(Duration(0), [&ran] { ran.push_back(2); });
  });
  queue.after(Duration(20), [&ran] { ran.push_back(4); });
  const TrueInstant end(Duration(100));
  while (queue.run_next(end)) {
  }
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(queue.now(), end);
}

/// Lets true time pass.
void pass(EventQueue& queue, Duration length) {
  const TrueInstant end = queue.now() + length;
  while (queue.run_next(end)) {
  }
}

TEST(SimClock, EachClockRunsAtItsOwnRate) {
  EventQueue queue;
  SimClock clock(queue, Duration(1000), Duration(2000));
  clock.set_rates(100'000, -100'000);
  pass(queue, seconds(10));
  EXPECT_EQ(clock.now().holder.since_origin(), Duration(1000) + seconds(11));
  EXPECT_EQ(clock.now().promise.since_origin(), Duration(2000) + seconds(9));
}

// Nanoseconds at a rate in parts per million are more than 64 bits hold after two and a half hours.
TEST(SimClock, GoesOnForDays) {
  EventQueue queue;
  SimClock clock(queue, Duration(0), Duration(0));
  clock.set_rates(100, -100);
  const Duration day = std::chrono::hours(24);
  pass(queue, 2 * day);
  EXPECT_EQ(clock.now().holder.since_origin(), 2 * day + day / 5'000);
  EXPECT_EQ(clock.now().promise.since_origin(), 2 * day - day / 5'000);
  EXPECT_EQ(clock.when(clock.now().promise), queue.now());
}

TEST(SimClock, SuspendStopsThePromiseClockAlone) {
  EventQueue queue;
  SimClock clock(queue, Duration(0), Duration(0));
  pass(queue, seconds(1));
  clock.suspend();
  pass(queue, seconds(5));
  EXPECT_EQ(clock.now().holder.since_origin(), seconds(6));
  EXPECT_EQ(clock.now().promise.since_origin(), seconds(1));
  EXPECT_EQ(clock.when(lease::PromiseInstant(seconds(2))), TrueInstant::never());
  clock.resume();
  EXPECT_EQ(clock.when(lease::PromiseInstant(seconds(2))), TrueInstant(seconds(7)));
}

TEST(SimClock, WhenIsTheFirstInstantThatShowsTheTime) {
  EventQueue queue;
  SimClock clock(queue, Duration(0), Duration(7));
  for (const std::int64_t ppm : {-100'000, -7, 0, 13, 99'999}) {
    clock.set_rates(0, ppm);
    const lease::PromiseInstant deadline = clock.now().promise + milliseconds(333) + Duration(1);
    const TrueInstant when = clock.when(deadline);
    pass(queue, when - queue.now() - Duration(1));
    EXPECT_LT(clock.now().promise, deadline);
    pass(queue, Duration(1));
    EXPECT_GE(clock.now().promise, deadline);
  }
}

TEST(RegisterMachine, ForgetsWhatWasNotDurable) {
  RegisterMachine machine;
  const Bytes one = RegisterMachine::encode({RegisterMachine::Kind::set, 5, 1});
  const Bytes two = RegisterMachine::encode({RegisterMachine::Kind::set, 5, 2});
  const raft::Term term(1);
  machine.apply({{{term, raft::Index(1)}, one.view()}}, raft::Index(1));
  EXPECT_TRUE(machine.make_durable().ok());
  machine.apply({{{term, raft::Index(2)}, two.view()}}, raft::Index(3));
  EXPECT_EQ(machine.value(5), 2U);
  EXPECT_EQ(machine.applied(), raft::Index(3));
  machine.crash();
  EXPECT_EQ(machine.value(5), 1U);
  EXPECT_EQ(machine.applied(), raft::Index(1));
  EXPECT_EQ(machine.value(6), 0U);
}

raft::PersistBatch batch(std::uint64_t ready, std::uint64_t term, std::uint64_t index) {
  raft::PersistBatch made;
  made.id = raft::ReadyId(ready);
  made.entries.push_back({{raft::Term(term), raft::Index(index)}, raft::EntryKind::empty, {}});
  return made;
}

struct Sink : storage::StorageSink {
  void persisted(raft::ReadyId id) override { newest = id; }
  void entries_read(std::uint64_t, Result<std::vector<raft::Entry>>) override {}
  void space(bool) override {}
  void failed(Error) override {}
  raft::ReadyId newest;
};

// Over many seeds each length of the waiting queue survives a crash at some time, and what survives
// is always a prefix.
TEST(SimDisk, CrashKeepsWhatWasSyncedAndAnyPrefixOfTheRest) {
  std::set<std::size_t> survived;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    World world(draw_plan(seed, {}), {});
    world.plan.disk.loses_unsynced = true;
    world.plan.disk.stall_ppm = 0;
    world.plan.disk.error_ppm = 0;
    SimDisk disk(world, 1, [](const raft::PersistBatch&) {});
    Sink sink;
    disk.open(sink, [](const EventQueue::Action& action) { action(); });
    disk.persist(batch(1, 1, 1));
    pass(world.queue, seconds(1));
    EXPECT_EQ(sink.newest, raft::ReadyId(1));
    disk.persist(batch(2, 1, 2));
    disk.persist(batch(3, 1, 3));
    EXPECT_EQ(disk.written().last_index(), raft::Index(3));
    EXPECT_EQ(disk.durable().last_index(), raft::Index(1));
    const std::pair<std::size_t, std::size_t> crash = disk.crash();
    EXPECT_EQ(crash.first, 2U);
    survived.insert(crash.second);
    EXPECT_EQ(disk.durable().last_index(), raft::Index(1 + crash.second));
    EXPECT_EQ(disk.written().last_index(), disk.durable().last_index());
    pass(world.queue, seconds(1));
    EXPECT_EQ(sink.newest, raft::ReadyId(1)) << "a dead process was answered";
  }
  EXPECT_EQ(survived, (std::set<std::size_t>{0, 1, 2}));
}

TEST(Simulator, OneSeedIsOneRun) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const SeedReport first = run_seed(seed);
    const SeedReport second = run_seed(seed);
    EXPECT_EQ(first.trace_hash, second.trace_hash) << seed;
    EXPECT_EQ(first.steps, second.steps) << seed;
    EXPECT_NE(first.trace_hash, run_seed(seed + 1).trace_hash) << seed;
  }
}

TEST(Simulator, EachSeedCoversEnough) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(missing_coverage(run_seed(seed)), "") << seed;
  }
  EXPECT_EQ(missing_coverage(SeedReport()),
            "60 simulated seconds, 100 operations, 25 completed operations, a leader change, "
            "three fault classes");
  SimOptions trial;
  trial.shape = PartitionShape::chain;
  EXPECT_EQ(missing_coverage(SeedReport(), trial),
            "60 simulated seconds, 100 operations, 25 completed operations, a verdict on its "
            "partition");
}

// Each file says what it found. The rule that it taught has a comment in the code.
TEST(Simulator, PlansThatFoundSomethingFindNothingNow) {
  for (const char* name :
       {"5926",    "16068",   "3880",    "13102",   "331",     "1036",    "5805",    "14396",
        "15035",   "17405",   "2103",    "502200",  "504082",  "507927",  "700319",  "524",
        "1101228", "1213635", "1312092", "1412345", "1733612", "1802936", "1980871", "2095364"}) {
    const SeedReport report = run_kept_plan(std::string(name) + ".plan");
    ASSERT_FALSE(report.violation.has_value()) << name << ": " << report.violation->story;
    EXPECT_EQ(missing_coverage(report), "") << name;
  }
}

// The processes of one seed of six or so run other groups, too.
TEST(Simulator, SideGroupsElectAndCommit) {
  int seeds = 0;
  NodeCounts sum;
  for (std::uint64_t seed = 1; seeds < 5; ++seed) {
    ASSERT_LT(seed, 200U);
    if (draw_plan(seed, {}).beats.side_groups == 0) continue;
    ++seeds;
    const SeedReport report = run_seed(seed);
    ASSERT_FALSE(report.violation.has_value()) << seed << ": " << report.violation->story;
    EXPECT_GE(report.nodes.side_leaders, 1U) << seed;
    sum.side_leaders += report.nodes.side_leaders;
    sum.side_writes += report.nodes.side_writes;
  }
  EXPECT_GT(sum.side_leaders, 20U);
  EXPECT_GT(sum.side_writes, 200U);
}

// Under every class of fault, and in both directions.
TEST(Simulator, SettingsChangeUnderAllFaults) {
  SettingsCounts sum;
  FaultSet beside;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const SeedReport report = run_seed(seed);
    ASSERT_FALSE(report.violation.has_value()) << seed << ": " << report.violation->story;
    if (report.settings.committed == 0) continue;
    sum.longer += report.settings.longer;
    sum.shorter += report.settings.shorter;
    sum.more_drift += report.settings.more_drift;
    sum.less_drift += report.settings.less_drift;
    sum.refused += report.settings.refused;
    sum.done += report.settings.done;
    for (std::size_t i = 0; i < kFaultClasses; ++i) {
      if (report.faults.has(static_cast<FaultClass>(i))) beside.add(static_cast<FaultClass>(i));
    }
  }
  for (const std::uint64_t count :
       {sum.longer, sum.shorter, sum.more_drift, sum.less_drift, sum.refused, sum.done}) {
    EXPECT_GT(count, 100U);
  }
  EXPECT_EQ(beside.count(), kFaultClasses);
}

TEST(Simulator, NothingFiresAtADriftOfExactlyTheBound) {
  SimOptions options;
  options.drift_ppm = 100'000;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SeedReport report = run_seed(seed, options);
    ASSERT_FALSE(report.violation.has_value())
        << "seed " << seed << ": " << report.violation->oracle << ": " << report.violation->story;
  }
}

// The negative control: the environment breaks its promise, and the oracles of the lease notice.
TEST(Simulator, DriftBeyondTheBoundIsNoticed) {
  for (const std::int64_t ppm : {200'000, 300'000}) {
    SimOptions options;
    options.drift_ppm = ppm;
    int noticed = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const SeedReport report = run_seed(seed, options);
      if (!report.violation) continue;
      EXPECT_TRUE(is_lease_oracle(report.violation->oracle)) << report.violation->oracle;
      ++noticed;
    }
    EXPECT_GE(noticed, 3) << ppm;
  }
}

TEST(Simulator, AViolationTellsItsStory) {
  SimOptions options;
  options.drift_ppm = 300'000;
  options.trace_tail = 25;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SeedReport report = run_seed(seed, options);
    if (!report.violation) continue;
    EXPECT_GT(report.violation->at, TrueInstant());
    EXPECT_FALSE(report.violation->story.empty());
    EXPECT_EQ(report.violation->trace_tail.size(), 25U);
    return;
  }
  FAIL() << "no seed was caught";
}

}  // namespace
}  // namespace leasehold::sim
