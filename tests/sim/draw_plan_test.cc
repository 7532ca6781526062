// What seeds draw, over many of them.
#include <gtest/gtest.h>
#include <leasehold/sim/plan/draw_plan.h>

#include <chrono>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::sim {
namespace {

TEST(Stream, ItsNameAndTheSeedDecideIt) {
  EXPECT_EQ(stream(7, "links").next(), stream(7, "links").next());
  EXPECT_NE(stream(7, "links").next(), stream(8, "links").next());
  EXPECT_NE(stream(7, "links").next(), stream(7, "disks").next());
}

using Has = bool (*)(const Plan&);
/// By subject, with how many seeds of a thousand have it.
struct Subject {
  const char* name;
  double share;
  Has has;
};
template <FaultClass fault>
bool enabled(const Plan& plan) {
  return plan.enabled.has(fault);
}
const Subject kSubjects[] = {
    {"five nodes or more", 0.2, [](const Plan& plan) { return plan.founders == 5; }},
    {"sessions", 0.5, [](const Plan& plan) { return plan.sessions.clients > 0; }},
    {"leases", 0.5, [](const Plan& plan) { return plan.leases.clients > 0; }},
    {"key locks", 0.25, [](const Plan& plan) { return plan.key_locks.clients > 0; }},
    {"transfers", 0.5, enabled<FaultClass::transfer>},
    {"stragglers", 0.5, enabled<FaultClass::straggler>},
    {"full disks", 1.0 / 3, enabled<FaultClass::full_disk>},
    {"demands for cuts", 1.0 / 3, enabled<FaultClass::cut_demand>},
    {"changes of settings", 2.0 / 3, enabled<FaultClass::settings>},
    {"settings at the beginning", 7.0 / 8, [](const Plan& plan) { return plan.settings.agreed; }},
    {"suspends", 0.5, enabled<FaultClass::suspend>},
    {"stalls", 0.5, enabled<FaultClass::disk_stall>},
    {"cuts by age", 5.0 / 12,
     [](const Plan& plan) {
       return plan.driver.log_age_max > Duration{0} &&
              plan.driver.log_age_max < std::chrono::hours(1);
     }},
    {"duels", 0.2 * 2 / 3, [](const Plan& plan) { return plan.duel; }},
    {"news of commits that wait", 0.25,
     [](const Plan& plan) { return plan.driver.core.commit_news_delay > Duration{0}; }},
};

// No subject is drawn for only those seeds that have another one: so two parts that draw from one
// sequence are found, and so are two streams that are too much alike.
TEST(DrawPlan, EachSubjectIsDrawnByItself) {
  constexpr std::uint64_t kSeeds = 8000;
  constexpr std::size_t kCount = std::size(kSubjects);
  std::vector<double> with(kCount, 0);
  std::vector<std::vector<double>> both(kCount, std::vector<double>(kCount, 0));
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Plan plan = draw_plan(seed, {});
    for (std::size_t i = 0; i < kCount; ++i) {
      if (!kSubjects[i].has(plan)) continue;
      with[i] += 1.0 / kSeeds;
      for (std::size_t j = 0; j < i; ++j) {
        if (kSubjects[j].has(plan)) both[i][j] += 1.0 / kSeeds;
      }
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_NEAR(with[i], kSubjects[i].share, 0.025) << kSubjects[i].name;
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_NEAR(both[i][j], with[i] * with[j], 0.02)
          << kSubjects[i].name << " and " << kSubjects[j].name;
    }
  }
}

// The group's settings have to make up for what each node was started with.
TEST(DrawPlan, NoTwoNodesOfASeedAreStartedWithTheSameNumbers) {
  std::vector<int> kinds(4, 0);
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SimOptions options;
    options.lease_work = seed % 5 == 0;
    options.long_life = seed % 7 == 0;
    if (seed % 11 == 0) options.shape = PartitionShape::ring;
    const Plan plan = draw_plan(seed, options);
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      const lease::Timing& own = plan.nodes[i].timing;
      ASSERT_TRUE(own.validate().ok()) << seed;
      for (std::size_t j = 0; j < i; ++j) {
        const lease::Timing& other = plan.nodes[j].timing;
        EXPECT_NE(own.lease, other.lease) << seed;
        if (own.max_clock_drift_ppm != other.max_clock_drift_ppm) ++kinds[0];
        if (own.margin != other.margin) ++kinds[1];
      }
      const std::int64_t agreed = plan.settings.first.timing.max_clock_drift_ppm;
      if (own.max_clock_drift_ppm < agreed) ++kinds[2];
      if (own.max_clock_drift_ppm > agreed) ++kinds[3];
    }
  }
  for (const int kind : kinds) EXPECT_GT(kind, 300);
}

// A duel has no witnesses.
TEST(DrawPlan, WitnessesComeWithLeasesAndWithout) {
  int witnesses = 0;
  int with_leases = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    const Plan plan = draw_plan(seed, {});
    bool any = false;
    for (const NodePlan& node : plan.nodes) any = any || node.witness;
    if (!any) continue;
    ++witnesses;
    if (plan.leases.clients > 0) ++with_leases;
  }
  EXPECT_GT(witnesses, 700);
  EXPECT_NEAR(static_cast<double>(with_leases) / witnesses, 0.5, 0.06);
}

// An option changes only the subjects that it is about.
TEST(DrawPlan, AnOptionLeavesTheOtherSubjectsAlone) {
  SimOptions leases;
  leases.lease_work = true;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Plan plain = draw_plan(seed, {});
    const Plan with_leases = draw_plan(seed, leases);
    EXPECT_EQ(plain.enabled, with_leases.enabled) << seed;
    EXPECT_EQ(plain.link.delay_max, with_leases.link.delay_max) << seed;
    EXPECT_EQ(plain.disk.sync_max, with_leases.disk.sync_max) << seed;
    EXPECT_EQ(plain.crash_at_send_ppm, with_leases.crash_at_send_ppm) << seed;
  }
}

}  // namespace
}  // namespace leasehold::sim
