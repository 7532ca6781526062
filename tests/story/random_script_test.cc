// Random commands: whatever a scenario asks for, neither the core nor the runner may stop with an
// assertion.
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/story/scenario.h>
#include <leasehold/story/timeline.h>
#include <leasehold/story/trace_file.h>
#include <leasehold/tests/story/random_command.h>

#include <iterator>
#include <string>
#include <vector>

namespace leasehold::story {
namespace {

struct Beginning {
  const char* commands;
  std::uint64_t groups;
};

/// In all but the first the processes promise to each other, and the leaders rest on that.
constexpr Beginning kBeginnings[] = {
    {"> nodes 3\n", 1},
    {"> nodes 3 shared\n> beat 1\n> settle\n> campaign 1\n> settle\n", 1},
    {"> nodes 3 shared groups=2\n> beat 1\n> beat 2\n> settle\n> campaign 1\n> settle\n"
     "> campaign 2b\n> settle\n> run 100ms\n",
     2}};

/// Runs commands, and goes on without those that are refused, which is no fault.
std::vector<Record> tell(std::uint64_t seed, bool lies) {
  Random random(seed);
  const Beginning& beginning = kBeginnings[seed % std::size(kBeginnings)];
  std::string text = std::string("# T\nSource: x\n") + beginning.commands;
  std::vector<Record> records;
  for (int i = 0; i < 60; ++i) {
    const std::string longer =
        text + "> " + random_command(random, {3, lies, beginning.groups}) + "\n";
    const Result<ScenarioFile> file = parse_scenario("a", longer);
    std::vector<Record> heard;
    const ScenarioOutcome outcome =
        run_scenario(file.value(), [&heard](const Record& r) { heard.push_back(r); });
    if (outcome.failed) {
      // Clocks stay within the bound, so nothing may ever show two leases without a forged message.
      EXPECT_TRUE(lies || outcome.problems.back().find("VIOLATION") == std::string::npos)
          << longer << outcome.problems.back();
      continue;
    }
    text = longer;
    records = std::move(heard);
  }
  return records;
}

TEST(RandomScript, WhatMayHappenToAClusterNeverShowsTwoLeases) {
  for (std::uint64_t seed = 1; seed <= 45; ++seed) {
    const std::vector<Record> records = tell(seed, false);
    std::string text;
    for (const Record& record : records) text += encode_record(record) + "\n";
    const auto again = decode_trace("t", text);
    ASSERT_TRUE(again.ok()) << again.error().message;
    const auto timeline = make_timeline(again.value(), {});
    if (!timeline) continue;
    EXPECT_FALSE(draw_timeline(timeline.value(), {}).empty());
  }
}

TEST(RandomScript, ForgedMessagesStopNoNode) {
  for (std::uint64_t seed = 1; seed <= 45; ++seed) tell(seed, true);
}

}  // namespace
}  // namespace leasehold::story
