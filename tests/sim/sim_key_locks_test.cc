// Clients that use keys as locks, and their oracle.
#include <gtest/gtest.h>
#include <leasehold/sim/judge/key_lock_oracle.h>
#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/simulator.h>

#include <chrono>
#include <string>
#include <string_view>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

/// A world in which nothing runs, and keys that are written by hand.
struct Judged {
  SimOptions options;
  World world{draw_plan(1, options), options};
  LeaseCells cells;
  KeyLockOracle oracle{world, cells};

  void put(const std::string& key, std::string_view value) {
    cells.cells[key].bytes = Bytes(value);
    executed();
  }
  void erase(const std::string& key) {
    cells.cells.erase(key);
    executed();
  }
  void executed() { oracle.after({raft::Term(1), raft::Index(1)}); }
  std::string verdict() const { return world.violation ? world.violation->oracle : ""; }
  TrueInstant later() const { return world.queue.now() + milliseconds(10); }
};

TEST(KeyLockOracle, HoldingAKeyByItsValueIsFine) {
  Judged judged;
  judged.put("k", "1");
  judged.put("l", "2");
  judged.oracle.holds(1, "k", "1", judged.later());
  judged.oracle.holds(2, "l", "2", judged.later());
  judged.oracle.holds(1, "k", "1", judged.later() + milliseconds(5));
  judged.put("m", "3");
  EXPECT_EQ(judged.verdict(), "");
}

TEST(KeyLockOracle, TwoHoldersOfOneKeyAreFound) {
  Judged judged;
  judged.put("k", "1");
  judged.oracle.holds(1, "k", "1", judged.later());
  judged.cells.cells["k"].bytes = Bytes(std::string_view("2"));
  judged.oracle.holds(2, "k", "2", judged.later());
  EXPECT_EQ(judged.verdict(), "two_holders");
}

TEST(KeyLockOracle, AnEndBeforeItsTimeIsFound) {
  for (const bool taken : {false, true}) {
    Judged judged;
    judged.put("k", "1");
    judged.oracle.holds(1, "k", "1", judged.later());
    EXPECT_EQ(judged.verdict(), "");
    if (taken) {
      judged.put("k", "2");
    } else {
      judged.erase("k");
    }
    EXPECT_EQ(judged.verdict(), "lease_expired_early") << taken;
  }
}

TEST(KeyLockOracle, AnAnswerThatGrantsAKeyThatIsGoneIsFound) {
  Judged judged;
  judged.oracle.holds(1, "k", "1", judged.later());
  EXPECT_EQ(judged.verdict(), "lease_expired_early");
}

TEST(KeyLockOracle, ALossReportedTooEarlyIsFound) {
  Judged judged;
  judged.put("k", "1");
  judged.oracle.holds(1, "k", "1", judged.later());
  judged.oracle.lost(1);
  EXPECT_EQ(judged.verdict(), "lease_expired_early");
}

TEST(KeyLockOracle, AClientWhoseTimeIsOverOrThatLetGoHoldsNothing) {
  Judged judged;
  judged.put("k", "1");
  judged.oracle.holds(1, "k", "1", judged.later());
  judged.oracle.holds(1, "k", "1", judged.world.queue.now());
  judged.erase("k");
  judged.oracle.lost(1);
  judged.put("k", "2");
  judged.oracle.holds(2, "k", "2", judged.later());
  judged.oracle.lets_go(2);
  judged.put("k", "3");
  judged.oracle.holds(3, "k", "3", judged.later());
  EXPECT_EQ(judged.verdict(), "");
}

KeyLockCounts sum_of(std::uint64_t seeds, const SimOptions& options) {
  KeyLockCounts sum;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const SeedReport report = run_seed(seed, options);
    EXPECT_FALSE(report.violation) << seed;
    sum.clients += report.key_locks.clients;
    sum.acquired += report.key_locks.acquired;
    sum.refused += report.key_locks.refused;
    sum.extended += report.key_locks.extended;
    sum.added += report.key_locks.added;
    sum.released += report.key_locks.released;
    sum.lost += report.key_locks.lost;
  }
  return sum;
}

// What the clients are there to test does happen.
TEST(SimKeyLocks, AreAcquiredExtendedReleasedAndLost) {
  SimOptions options;
  options.lease_work = true;
  const KeyLockCounts counts = sum_of(64, options);
  EXPECT_GT(counts.acquired, 100U);
  EXPECT_GT(counts.refused, 1000U);
  EXPECT_GT(counts.extended, 100U);
  EXPECT_GT(counts.added, 100U);
  EXPECT_GT(counts.released, 40U);
  EXPECT_GT(counts.lost, 5U);
}

// One seed of four has them, and one of two where leases are most of the work.
TEST(SimKeyLocks, AreDrawnForSomeSeeds) {
  SimOptions options;
  const auto seeds_with = [&options] {
    int seeds = 0;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
      if (draw_plan(seed, options).key_locks.clients > 0) ++seeds;
    }
    return seeds;
  };
  const int some = seeds_with();
  EXPECT_GT(some, 70);
  EXPECT_LT(some, 130);
  options.lease_work = true;
  EXPECT_GT(seeds_with(), 170);
  options.reduction.no_key_locks = true;
  EXPECT_EQ(seeds_with(), 0);
}

}  // namespace
}  // namespace leasehold::sim
