// Plans as text: what is written is read again, what is wrong is refused, and what is read can run.
#include <gtest/gtest.h>
#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/plan/plan_text.h>
#include <leasehold/sim/simulator.h>

#include <chrono>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::sim {
namespace {

SimOptions options_of_kind(int kind) {
  SimOptions options;
  options.lease_work = kind == 1;
  options.long_life = kind == 2;
  if (kind == 3) options.drift_ppm = 100'000;
  return options;
}

TEST(PlanText, WhatIsWrittenIsReadAgain) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const std::string text = text_of(draw_plan(seed, options_of_kind(static_cast<int>(seed % 4))));
    const Result<Plan> plan = plan_of(text);
    ASSERT_TRUE(plan.ok()) << seed << ": " << plan.error().message;
    EXPECT_EQ(text_of(plan.value()), text) << seed;
  }
}

// The text holds everything of a plan that a run depends on.
TEST(PlanText, APlanThatIsReadIsTheSameRun) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SimOptions options = options_of_kind(static_cast<int>(seed % 2));
    const std::uint64_t drawn = run_seed(seed, options).trace_hash;
    Result<Plan> plan = plan_of(text_of(draw_plan(seed, options)));
    ASSERT_TRUE(plan.ok());
    options.plan = std::move(plan).value();
    EXPECT_EQ(run_seed(seed, options).trace_hash, drawn) << seed;
  }
}

TEST(PlanText, AReductionLeavesOutOfAPlanThatIsReadToo) {
  SimOptions options;
  options.plan = draw_plan(1, {});
  options.reduction.clients_max = 1;
  EXPECT_EQ(draw_plan(1, options).workload.clients, 1U);
}

std::string with(const std::string& line) {
  return text_of(draw_plan(1, {})) + line + '\n';
}

TEST(PlanText, WhatIsWrongIsRefusedAndSaysWhere) {
  const std::vector<std::pair<std::string, std::string>> wrongs = {
      {"", "it is empty: a plan begins with `leasehold-plan 1`"},
      {"# a comment\n\n", "it is empty: a plan begins with `leasehold-plan 1`"},
      {"leasehold-plan 2\n", "line 1: a plan begins with `leasehold-plan 1`"},
      {"seed 1\n", "line 1: a plan begins with `leasehold-plan 1`"},
      {"leasehold-plan 1\nseed x\n", "line 2: `seed` takes a number"},
      {"leasehold-plan 1\nseed -1\n", "line 2: `seed` takes a number"},
      {"leasehold-plan 1\nseed 1 2\n", "line 2: `seed` takes a number"},
      {"leasehold-plan 1\nsed 1\n", "line 2: there is no `sed` in a plan"},
      {"leasehold-plan 1\nnodes 2\n", "line 2: `nodes` must be 3 to 9"},
      {"leasehold-plan 1\nduel 2\n", "line 2: `duel` must be 0 to 1"},
      {"leasehold-plan 1\nenabled crash,los\n",
       "line 2: `enabled` takes names of fault classes with commas between"},
      {"leasehold-plan 1\nnode 1 witness 0\n",
       "line 2: there are 0 nodes: `nodes NUMBER` stands before their lines"},
      {"leasehold-plan 1\nnodes 3\nnode 1 sleep 0\n", "line 3: there is no `sleep` in a plan"},
      {"leasehold-plan 1\nnodes 3\nnode 1 witness\n",
       "line 3: a line of a node is `node NUMBER NAME VALUE`"},
      {"leasehold-plan 1\n", "`founders` must be 3 to the number of nodes"},
      {with("link.delay_min 999999999"), "`link.delay_min` is above the maximum"},
      {with("disk.full_max 0"), "`disk.full_max` must be 50000000 or more"},
      {with("leases.clients 1\nleases.ttl 0"),
       "`leases.ttl` must be 50000000 or more, and the margin at most a tenth of it"},
      {with("enabled settings\nsettings.change_interval 0"),
       "`settings.change_interval` must be 1000000 or more"},
      {with("node 1 apply_min 3600000000000"), "node 1: `apply_min` is above `apply_max`"},
      {with("node 1 witness 1\nnode 2 witness 1\nnode 3 witness 1"),
       "one of the founders must be no witness"},
  };
  for (const auto& [text, message] : wrongs) {
    const Result<Plan> plan = plan_of(text);
    ASSERT_FALSE(plan.ok()) << message;
    EXPECT_EQ(plan.error().message, message);
  }
  const Result<Plan> timing = plan_of(with("node 2 timing.lease 1"));
  ASSERT_FALSE(timing.ok());
  EXPECT_EQ(timing.error().message.substr(0, 21), "node 2: unsafe lease:");
  const Result<Plan> agreed = plan_of(with("settings.lease 1"));
  ASSERT_FALSE(agreed.ok());
  EXPECT_EQ(agreed.error().message.substr(0, 23), "settings: unsafe lease:");
}

// Each value by itself at both ends of what is taken. Nothing of a plan may reach an assertion.
TEST(PlanText, WhatIsTakenCanRun) {
  SimOptions options;
  options.chaos = std::chrono::milliseconds(400);
  options.calm = std::chrono::milliseconds(100);
  std::istringstream lines(text_of(draw_plan(1, options)));
  int taken = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.rfind(' '));
    // Thousands of clients take long.
    if (name.find("clients") != std::string::npos || name == "seed") continue;
    for (const char* value : {"0", "1", "3", "9", "100", "1000", "1000000", "100000000"}) {
      Result<Plan> plan = plan_of(with(name + ' ' + value));
      if (!plan.ok()) continue;
      options.plan = std::move(plan).value();
      static_cast<void>(run_seed(1, options));
      ++taken;
    }
  }
  EXPECT_GT(taken, 300);
}

}  // namespace
}  // namespace leasehold::sim
