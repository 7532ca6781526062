// Random commands: a story may go wrong in any way that its author thinks of, and neither the core
// nor the runner may stop for it.
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/story/scenario.h>
#include <leasehold/story/timeline.h>
#include <leasehold/story/trace_file.h>

#include <string>
#include <vector>

namespace leasehold::story {
namespace {

std::string number(Random& random, std::uint64_t below) {
  return std::to_string(random.below(below));
}

std::string node(Random& random) {
  return std::to_string(1 + random.below(3));
}

std::string link(Random& random) {
  const std::uint64_t from = random.below(3);
  const std::uint64_t step = 1 + random.below(2);
  return std::to_string(1 + from) + "->" + std::to_string(1 + (from + step) % 3);
}

std::string forged(Random& random) {
  const std::string term = " term=" + number(random, 6);
  const std::string last_term = " last_term=" + number(random, 4);
  const std::string last_index = " last_index=" + number(random, 6);
  const std::string on = "forge " + link(random);
  const std::string round = " round=" + number(random, 9);
  switch (random.below(4)) {
    case 0: return on + " vote" + term + last_term + last_index;
    case 1: return on + " pre_vote" + term + last_term + last_index;
    case 2: {
      const std::string commit = " commit=" + number(random, 6);
      const std::string lease = random.chance(1, 2) ? " lease=3s" : " lease=500ms";
      return on + " append" + term + last_term + last_index + round + commit + lease;
    }
    default: {
      const std::string request = " request_term=" + number(random, 6);
      const std::string promised = random.chance(1, 2) ? " promised=yes" : " promised=no";
      const std::string matched = random.chance(1, 2) ? " matched=yes" : " matched=no";
      return on + " append_reply" + term + request + round + promised + matched +
             " index=" + number(random, 9);
    }
  }
}

/// One that stays within what may happen to a real cluster, or, if `lies`, one message that nobody
/// sent.
std::string command(Random& random, bool lies) {
  const std::uint64_t kind = random.below(lies ? 21 : 19);
  switch (kind) {
    case 0: return "campaign " + node(random);
    case 1: return "settle";
    case 2: return "deliver all";
    case 3: return "deliver " + link(random);
    case 4: return "deliver append_reply";
    case 5: return "drop " + link(random);
    case 6: return "again #" + number(random, 60);
    case 7: return "run " + number(random, 400) + "ms";
    case 8: return "advance " + number(random, 900) + "ms";
    case 9: return "crash " + node(random);
    case 10: return "restart " + node(random);
    case 11: return "pause " + node(random);
    case 12: return "resume " + node(random) + (random.chance(1, 2) ? " read" : "");
    case 13: return "disk " + node(random) + (random.chance(1, 2) ? " stall" : " sync");
    case 14: return "propose " + node(random) + " x=" + number(random, 100);
    case 15: return "read " + node(random) + (random.chance(1, 2) ? " lease" : " quorum");
    case 16: return random.chance(1, 2) ? "heal" : "cut " + link(random);
    case 17: return "drift " + node(random) + (random.chance(1, 2) ? " +10%" : " -10%");
    case 18:
      return "restart " + node(random) + (random.chance(1, 2) ? " lease=2s" : " lease=600ms");
    default: return forged(random);
  }
}

/// Runs commands until one is refused, which is no fault, and goes on without it.
std::vector<Record> tell(std::uint64_t seed, bool lies) {
  Random random(seed);
  std::string text = "# T\nSource: x\n> nodes 3\n";
  std::vector<Record> records;
  for (int i = 0; i < 60; ++i) {
    const std::string longer = text + "> " + command(random, lies) + "\n";
    const Result<ScenarioFile> file = parse_scenario("a", longer);
    std::vector<Record> heard;
    const ScenarioOutcome outcome =
        run_scenario(file.value(), [&heard](const Record& r) { heard.push_back(r); });
    if (outcome.failed) {
      // Clocks stay within the bound, so nothing may ever show two leases unless somebody lied.
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
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
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

TEST(RandomScript, ForgedMessagesStopNobody) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) tell(seed, true);
}

}  // namespace
}  // namespace leasehold::story
