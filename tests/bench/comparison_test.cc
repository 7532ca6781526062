#include <leasehold/bench/compare/findings.h>
#include <leasehold/bench/compare/measure.h>
#include <leasehold/bench/compare/page.h>
#include <leasehold/bench/compare/plots.h>
#include <leasehold/bench/compare/run_compare.h>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::bench {
namespace {

const std::set<System> kAll = {System::leasehold, System::etcd, System::redis,
                               System::redis_durable};

CompareOptions settled_options() {
  CompareOptions options;
  options.version = "0.0";
  EXPECT_TRUE(settle(options).ok());
  return options;
}

/// Every block took `ns` of latency and made a thousand operations in a second.
std::vector<MeasuredBlock> blocks_of(const Plan& plan, std::size_t sweeps) {
  std::vector<MeasuredBlock> blocks;
  for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
    for (std::size_t i = 0; i < plan.cases.size(); ++i) {
      for (const std::size_t target : order_of(plan.cases[i], sweep)) {
        MeasuredBlock block;
        block.of_case = i;
        block.target = target;
        block.sweep = sweep;
        // Each target is twice as slow as the one before it.
        const std::uint64_t ns = 10'000ULL << target;
        block.latency = {{ns, 990}, {2 * ns, 10}};
        block.operations = 1000;
        block.elapsed_ns = 1'000'000'000ULL << target;
        block.cpu_ns = 5'000'000ULL << target;
        blocks.push_back(block);
      }
    }
  }
  return blocks;
}

const Ratio* ratio_at(const Findings& findings, const Plan& plan, const std::string& of_case,
                      const std::string& target, const std::string& measure) {
  for (const Ratio& ratio : findings.ratios) {
    if (plan.cases[ratio.of_case].id == of_case && plan.targets[ratio.target].id == target &&
        ratio.measure == measure) {
      return &ratio;
    }
  }
  return nullptr;
}

std::string refusal(CompareOptions options) {
  const auto settled = settle(options);
  return settled ? "" : settled.error().message;
}

TEST(CompareOptions, WhatDoesNotFitIsRefusedByName) {
  CompareOptions options;
  options.sweeps = 1;
  EXPECT_NE(refusal(options).find("--sweeps"), std::string::npos);
  options = CompareOptions();
  options.block_s = 0.01;
  EXPECT_NE(refusal(options).find("--block"), std::string::npos);
  options = CompareOptions();
  options.value_bytes = 8;
  EXPECT_NE(refusal(options).find("--value-size"), std::string::npos);
  options = CompareOptions();
  options.growth = {"height"};
  EXPECT_NE(refusal(options).find("--growth"), std::string::npos);
  EXPECT_EQ(refusal(CompareOptions()), "");
}

TEST(Plan, LeaseholdIsFirstOfEachCaseAndPeersThatAreMissingAreLeftOut) {
  CompareOptions options = settled_options();
  options.growth = {"connections", "writers", "values"};
  for (const auto& there : {kAll, std::set<System>{System::leasehold, System::etcd},
                            std::set<System>{System::leasehold}}) {
    const Plan plan = plan_of(options, there);
    for (const Case& one : plan.cases) {
      ASSERT_FALSE(one.targets.empty());
      EXPECT_EQ(plan.targets[one.targets.front()].system, System::leasehold) << one.id;
      for (const std::size_t target : one.targets) {
        EXPECT_EQ(there.count(plan.targets[target].system), 1U);
        EXPECT_LT(plan.targets[target].color, kColors);
      }
    }
  }
  const Plan plan = plan_of(settled_options(), kAll);
  EXPECT_EQ(plan.cases.size(), 5U);
  EXPECT_EQ(plan.blocks_of_sweep(), 4U + 3 + 4 + 3 + 3);
}

TEST(Plan, SweepsGoForwardsAndThenBackwards) {
  Case one;
  one.targets = {0, 1, 2};
  EXPECT_EQ(order_of(one, 0), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(order_of(one, 1), (std::vector<std::size_t>{2, 1, 0}));
  EXPECT_EQ(order_of(one, 2), (std::vector<std::size_t>{0, 1, 2}));
}

TEST(Plan, EveryLoadSettlesAndReadsAsItsTargetSays) {
  CompareOptions options = settled_options();
  options.growth = {"connections", "writers", "values"};
  const Plan plan = plan_of(options, kAll);
  for (const Case& one : plan.cases) {
    for (const std::size_t target : one.targets) {
      const Target& at = plan.targets[target];
      const auto load = load_of(options, one, at, {"127.0.0.1:1"});
      ASSERT_TRUE(load.ok()) << one.id << " " << at.id << ": " << load.error().message;
      EXPECT_EQ(load.value().etcd, at.system == System::etcd);
      EXPECT_EQ(load.value().read_mode, at.read_mode);
      EXPECT_EQ(load.value().in_flight, one.in_flight);
      EXPECT_EQ(load.value().mix.of(OperationKind::read), one.writes ? 0U : 100U);
    }
  }
}

TEST(Findings, RatiosAreLeaseholdsOverTheOther) {
  const Plan plan = plan_of(settled_options(), kAll);
  const Findings findings = findings_of(plan, blocks_of(plan, 4), 4);
  EXPECT_TRUE(findings.all_stand());
  const Ratio* p50 = ratio_at(findings, plan, "read-1", "etcd-linearizable", "p50");
  ASSERT_NE(p50, nullptr);
  EXPECT_DOUBLE_EQ(p50->interval.value, 0.5);
  EXPECT_DOUBLE_EQ(p50->ours, 10);
  EXPECT_DOUBLE_EQ(p50->theirs, 20);
  EXPECT_EQ(verdict_of(*p50), "Leasehold better");
  const Ratio* rate = ratio_at(findings, plan, "read-64", "redis", "rate");
  ASSERT_NE(rate, nullptr);
  EXPECT_DOUBLE_EQ(rate->interval.value, 8);
  EXPECT_DOUBLE_EQ(rate->ours, 1000);
  EXPECT_EQ(verdict_of(*rate), "Leasehold better");
  const Ratio* cost = ratio_at(findings, plan, "write-512", "etcd", "CPU");
  ASSERT_NE(cost, nullptr);
  EXPECT_DOUBLE_EQ(cost->interval.value, 0.5);
}

TEST(Findings, AVerdictNeedsTheWholeInterval) {
  Ratio ratio;
  ratio.interval = {0.9, 0.8, 1.1};
  EXPECT_EQ(verdict_of(ratio), "no sure difference");
  ratio.interval = {1.2, 1.1, 1.3};
  EXPECT_EQ(verdict_of(ratio), "Leasehold worse");
  ratio.less_is_better = false;
  EXPECT_EQ(verdict_of(ratio), "Leasehold better");
}

TEST(Findings, BlocksThatAreThrownAwayTakeTheirPairWithThemAndFewPairsTheComparison) {
  const Plan plan = plan_of(settled_options(), kAll);
  std::vector<MeasuredBlock> blocks = blocks_of(plan, 4);
  const auto throw_away = [&](std::size_t sweep) {
    for (MeasuredBlock& block : blocks) {
      const bool etcd_write =
          plan.cases[block.of_case].id == "write-1" && plan.targets[block.target].id == "etcd";
      if (etcd_write && block.sweep == sweep) block.thrown_away = "the leader changed";
    }
  };
  throw_away(0);
  throw_away(2);
  Findings findings = findings_of(plan, blocks, 4);
  const Ratio* ratio = ratio_at(findings, plan, "write-1", "etcd", "p50");
  EXPECT_EQ(ratio->pairs, 2U);
  EXPECT_EQ(ratio->thrown_away, "");
  EXPECT_TRUE(findings.all_stand());
  throw_away(1);
  findings = findings_of(plan, blocks, 4);
  ratio = ratio_at(findings, plan, "write-1", "etcd", "p50");
  EXPECT_NE(ratio->thrown_away, "");
  EXPECT_EQ(ratio_at(findings, plan, "write-1", "redis-durable", "p50")->thrown_away, "");
  EXPECT_FALSE(findings.all_stand());
  const std::string table = table_of_comparison(settled_options(), {}, plan, findings);
  EXPECT_NE(table.find("3 of 4 blocks (the leader changed)"), std::string::npos) << table;
  EXPECT_NE(table.find("only 1 of 4 pairs of blocks stand"), std::string::npos) << table;
}

TEST(Page, TextIsEscaped) {
  EXPECT_EQ(escaped("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(escaped(std::string("\x01\xff\0", 3)), "???");
}

TEST(Page, EveryPictureSaysWhatItShowsAndNothingIsLoaded) {
  CompareOptions options = settled_options();
  options.growth = {"connections", "writers", "values"};
  const Plan plan = plan_of(options, kAll);
  Circumstances circumstances;
  circumstances.processor = "<script src=\"http://elsewhere\">";
  const std::string page =
      page_of_comparison(options, circumstances, plan, findings_of(plan, blocks_of(plan, 2), 2));
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("url("), std::string::npos);
  EXPECT_EQ(page.find("@import"), std::string::npos);
  EXPECT_EQ(page.find("<link"), std::string::npos);
  std::size_t pictures = 0;
  for (std::size_t at = page.find("<svg "); at != std::string::npos;
       at = page.find("<svg ", at + 1)) {
    ++pictures;
    const std::string head = page.substr(at, page.find('>', at) - at);
    EXPECT_NE(head.find("role=\"img\""), std::string::npos);
    EXPECT_NE(head.find("aria-label=\""), std::string::npos);
  }
  // Four plots of each of two latencies, two of each of three rates, four curves.
  EXPECT_EQ(pictures, 8U + 6 + 4);
  EXPECT_EQ(page.find("nan"), std::string::npos);
  EXPECT_EQ(page.find("inf"), std::string::npos);
}

TEST(Page, APageOfNothingIsAPageToo) {
  const Plan alone = plan_of(settled_options(), {System::leasehold});
  const std::string page =
      page_of_comparison(settled_options(), {}, alone, findings_of(alone, {}, 2));
  EXPECT_NE(page.find("no peer is installed"), std::string::npos);
  EXPECT_NE(page.find("Every block was thrown away"), std::string::npos);
}

}  // namespace
}  // namespace leasehold::bench
