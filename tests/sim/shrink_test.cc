// From a finding to a short run, against a run that is a formula.
#include <gtest/gtest.h>
#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/plan/reduction.h>
#include <leasehold/sim/shrink.h>

#include <algorithm>
#include <string>
#include <vector>

namespace leasehold::sim {
namespace {

const auto kSilent = [](const Shrunk&) {};

bool happens(const Reduction& reduction, std::uint64_t fault) {
  if (!reduction.only) return true;
  return std::any_of(reduction.only->begin(), reduction.only->end(), [&](const auto& range) {
    return range.first <= fault && fault <= range.second;
  });
}

Finding finding(std::string oracle, std::uint64_t triggered) {
  return {std::move(oracle), TrueInstant() + Duration(1000), triggered};
}

TEST(Shrink, KeepsWhatTheFindingNeedsAndNothingElse) {
  const Attempt attempt = [](const Reduction& reduction) -> std::optional<Finding> {
    const bool needed = !reduction.without.has(FaultClass::pause) &&
                        !reduction.without.has(FaultClass::replay) && !reduction.no_watchers &&
                        (reduction.clients_max == 0 || reduction.clients_max >= 3) &&
                        happens(reduction, 7) && happens(reduction, 31);
    if (!needed) return std::nullopt;
    return finding("two_leases", 40);
  };
  const Shrunk shrunk = shrink({}, finding("two_leases", 40), 10'000, attempt, kSilent);
  EXPECT_EQ(options_of(shrunk.reduction),
            " --without crash,suspend,partition,one_way_cut,loss,duplication,reordering,disk_stall,"
            "unsynced_loss,disk_error,extreme_drift,drift_change,slow_apply,late_handling,"
            "reader_pause,straggler,full_disk,transfer,membership,cut_demand,settings,sessions,"
            "leases,key_locks --clients 4 --only 7,31");
  EXPECT_EQ(faults_left(shrunk), 2U);
  EXPECT_LT(shrunk.attempts, 250U);
}

TEST(Shrink, AnotherOracleIsAnotherFinding) {
  const Attempt attempt = [](const Reduction& reduction) -> std::optional<Finding> {
    return finding(reduction == Reduction{} ? "two_leases" : "liveness", 5);
  };
  const Shrunk shrunk = shrink({}, finding("two_leases", 5), 1000, attempt, kSilent);
  EXPECT_EQ(shrunk.reduction, Reduction{});
}

TEST(Shrink, LooksForTheFindingInOtherVariants) {
  // With numbered faults it shows in variant 9 only.
  const Attempt attempt = [](const Reduction& reduction) -> std::optional<Finding> {
    if (reduction.only && reduction.variant != 9) return std::nullopt;
    if (!happens(reduction, 2)) return std::nullopt;
    return finding("two_leases", 5);
  };
  const Shrunk shrunk = shrink({}, finding("two_leases", 5), 1000, attempt, kSilent);
  EXPECT_EQ(shrunk.reduction.variant, 9U);
  EXPECT_EQ(shrunk.reduction.only, (FaultNumbers{{2, 2}}));
}

TEST(Shrink, EndsAfterItsAttempts) {
  std::uint64_t runs = 0;
  const Attempt attempt = [&runs](const Reduction&) -> std::optional<Finding> {
    ++runs;
    return finding("two_leases", 300);
  };
  const Shrunk shrunk = shrink({}, finding("two_leases", 300), 17, attempt, kSilent);
  EXPECT_EQ(runs, 17U);
  EXPECT_EQ(shrunk.attempts, 17U);
}

TEST(Reduction, ItsOptionsAreReadAgain) {
  Reduction reduction;
  reduction.without.add(FaultClass::loss);
  reduction.without.add(FaultClass::membership);
  reduction.no_sessions = true;
  reduction.clients_max = 3;
  reduction.variant = 12;
  reduction.only = FaultNumbers{{3, 3}, {7, 9}};
  EXPECT_EQ(options_of(reduction),
            " --without loss,membership,sessions --clients 3 --variant 12 --only 3,7-9");
  Reduction read;
  EXPECT_TRUE(take_reduction("--without", "loss,membership,sessions", read));
  EXPECT_TRUE(take_reduction("--clients", "3", read));
  EXPECT_TRUE(take_reduction("--variant", "12", read));
  EXPECT_TRUE(take_reduction("--only", "3,7-9", read));
  EXPECT_EQ(read, reduction);
  EXPECT_TRUE(take_reduction("--only", "none", read));
  EXPECT_EQ(read.only, FaultNumbers{});
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"--without", ""},   {"--without", "loss,"}, {"--without", "los"}, {"--clients", "0"},
      {"--clients", "x"},  {"--only", ""},         {"--only", "3,3"},    {"--only", "9-7"},
      {"--only", "7,3"},   {"--only", "3-"},       {"--variant", "-1"},  {"--other", "1"},
      {"--only", "1,2,x"},
  };
  for (const auto& [name, value] : wrong) {
    EXPECT_FALSE(take_reduction(name, value, read)) << name << " " << value;
  }
}

TEST(Reduction, WhatIsLeftOutOfAPlanIsNotInIt) {
  Reduction everything;
  for (std::size_t i = 0; i < kFaultClasses; ++i)
    everything.without.add(static_cast<FaultClass>(i));
  everything.no_sessions = everything.no_leases = everything.no_watchers = true;
  everything.no_key_locks = true;
  everything.clients_max = 1;
  SimOptions options;
  options.reduction = everything;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Plan plan = draw_plan(seed, options);
    EXPECT_EQ(plan.enabled.count(), 0U);
    EXPECT_EQ(plan.link.loss_ppm + plan.link.duplicate_ppm + plan.link.spike_ppm, 0U);
    EXPECT_EQ(plan.disk.stall_ppm + plan.disk.error_ppm + plan.snapshots.crash_ppm, 0U);
    EXPECT_EQ(plan.crash_at_send_ppm + plan.crash_at_persist_ppm + plan.hunt_percent, 0U);
    EXPECT_EQ(plan.drift_ppm_max, 0);
    EXPECT_FALSE(plan.duel);
    EXPECT_EQ(plan.sessions.clients + plan.leases.clients + plan.workload.watchers, 0U);
    EXPECT_EQ(plan.key_locks.clients, 0U);
    EXPECT_EQ(plan.workload.clients, 1U);
  }
}

}  // namespace
}  // namespace leasehold::sim
