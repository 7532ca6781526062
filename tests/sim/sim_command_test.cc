// The command line of `leasehold sim`.
#include <gtest/gtest.h>
#include <leasehold/sim/sim_command.h>
#include <leasehold/story/files.h>
#include <leasehold/story/telling.h>
#include <leasehold/story/timeline.h>
#include <leasehold/story/trace_file.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace leasehold::sim {
namespace {

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
};

Outcome run(const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.status = run_sim_command(arguments);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  const std::size_t begin = text.find_last_of('\n', end);
  return text.substr(begin + 1, end - begin);
}

TEST(SimCommand, CleanSeedsEndWithStatusZeroAndTotals) {
  const Outcome outcome = run({"--seeds", "1..6", "--jobs", "2", "--quiet"});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("seeds 6, simulated 390 s"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("findings 0"), std::string::npos) << outcome.out;
  const std::size_t opened = outcome.out.find("sessions opened ");
  ASSERT_NE(opened, std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.substr(opened, 17), "sessions opened 0") << "told by a child in full";
}

TEST(SimCommand, LeasesAreAKindOfSimulationOfTheirOwn) {
  const Outcome outcome = run({"--leases", "--seeds", "1..12", "--jobs", "2", "--quiet"});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("sessions opened 0"), std::string::npos) << outcome.out;
  const std::size_t events = outcome.out.find("lease events ");
  ASSERT_NE(events, std::string::npos) << outcome.out;
  EXPECT_GT(std::stoull(outcome.out.substr(events + 13)), 500U);
  for (const std::vector<std::string>& other : std::vector<std::vector<std::string>>{
           {"--hours", "1"}, {"--partition", "ring"}, {"--without", "leases"}}) {
    std::vector<std::string> both = other;
    both.push_back("--leases");
    const Outcome refused = run(both);
    EXPECT_EQ(refused.status, 2);
    EXPECT_NE(refused.err.find("--leases"), std::string::npos) << refused.err;
  }
}

// As often as docs/simulation.md says: a fault every ten seconds, a leader change a minute, 1.7
// operations a second. A seed alone may be busier, or quieter.
TEST(SimCommand, HoursOfALifeHaveTheFaultsAndTheOperationsThatTheyPromise) {
  const Outcome outcome = run({"--seeds", "1..8", "--hours", "1", "--jobs", "2", "--quiet"});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const auto number_behind = [&](const std::string& word) {
    const std::size_t at = outcome.out.find(word);
    EXPECT_NE(at, std::string::npos) << outcome.out;
    return at == std::string::npos ? 0 : std::stoull(outcome.out.substr(at + word.size()));
  };
  const std::uint64_t seconds = number_behind("simulated ");
  EXPECT_GE(seconds, 8U * 3600);
  EXPECT_GE(number_behind("faults triggered ") * 10, seconds);
  EXPECT_GE(number_behind("leader changes ") * 60, seconds);
  EXPECT_GE(number_behind("operations "), seconds * 13 / 10);
}

TEST(SimCommand, CombinedHashDoesNotDependOnTheJobs) {
  const Outcome one = run({"--seeds", "1..6", "--trace-hash", "--quiet"});
  const Outcome three = run({"--seeds", "1..6", "--trace-hash", "--quiet", "--jobs", "3"});
  EXPECT_EQ(last_line(one.out), last_line(three.out));
  EXPECT_EQ(last_line(one.out).substr(0, 20), "combined trace hash ");
}

TEST(SimCommand, FindingEndsWithStatusOneAndIsReproducible) {
  const Outcome outcome = run({"--seeds", "1..60", "--drift-ppm", "300000", "--quiet"});
  EXPECT_EQ(outcome.status, 1);
  const std::size_t found = outcome.out.find("FOUND seed ");
  ASSERT_NE(found, std::string::npos) << outcome.out;
  const std::size_t number = found + std::string("FOUND seed ").size();
  const std::string seed = outcome.out.substr(number, outcome.out.find(' ', number) - number);
  EXPECT_NE(outcome.out.find("leasehold sim --seed " + seed + " --drift-ppm 300000"),
            std::string::npos);
  const Outcome again = run({"--seed", seed, "--drift-ppm", "300000", "--quiet"});
  EXPECT_EQ(again.status, 1);
  const std::string line = outcome.out.substr(found, outcome.out.find('\n', found) - found);
  EXPECT_NE(again.out.find(line), std::string::npos) << line << "\n" << again.out;
}

// What is printed finds the same, with far fewer faults.
TEST(SimCommand, ShrinkPrintsAShorterRunThatFindsTheSame) {
  const Outcome first = run({"--seeds", "1..60", "--drift-ppm", "300000", "--quiet"});
  const std::size_t found = first.out.find("FOUND seed ");
  ASSERT_NE(found, std::string::npos) << first.out;
  std::istringstream words(first.out.substr(found));
  std::string word, seed, oracle;
  words >> word >> word >> seed >> word >> oracle;
  const Outcome shrunk = run({"--seed", seed, "--drift-ppm", "300000", "--quiet", "--shrink"});
  EXPECT_EQ(shrunk.status, 1) << shrunk.err;
  EXPECT_NE(shrunk.out.find("SHRUNK seed " + seed + " oracle " + oracle), std::string::npos)
      << shrunk.out;
  const std::string head = "again: leasehold sim ";
  const std::size_t again = shrunk.out.find(head);
  ASSERT_NE(again, std::string::npos) << shrunk.out;
  std::istringstream options(shrunk.out.substr(again + head.size()));
  std::vector<std::string> arguments = {"--quiet"};
  while (options >> word) arguments.push_back(word);
  EXPECT_NE(std::find(arguments.begin(), arguments.end(), "--without"), arguments.end());
  const Outcome repeated = run(arguments);
  EXPECT_EQ(repeated.status, 1);
  EXPECT_NE(repeated.out.find("FOUND seed " + seed + " oracle " + oracle), std::string::npos)
      << repeated.out;
}

TEST(SimCommand, ShrinkHasNothingToDoWhereNothingIsFound) {
  const Outcome outcome = run({"--seed", "1", "--shrink", "--quiet"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("seed 1 finds nothing"), std::string::npos) << outcome.out;
}

TEST(SimCommand, KeepGoingReportsEverySeed) {
  const Outcome outcome =
      run({"--seeds", "1..60", "--drift-ppm", "300000", "--quiet", "--keep-going"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find("seeds 60, "), std::string::npos) << outcome.out;
}

// Recording a run changes nothing, and the record can be read again and drawn.
TEST(SimCommand, AStoryAndATraceLeaveTheRunAsItIs) {
  const std::string file = testing::TempDir() + "sim_command_test.jsonl";
  const Outcome plain = run({"--seeds", "9..9", "--trace-hash", "--quiet"});
  const Outcome told = run({"--seed", "9", "--trace-hash", "--quiet", "--story", "--trace", file});
  EXPECT_EQ(told.status, 0) << told.err;
  EXPECT_EQ(last_line(told.out), last_line(plain.out));
  for (const char* words : {" promises node ", "'s lease is extended to ", " acknowledged round ",
                            ": it is bound to node ", "clients: "}) {
    EXPECT_NE(told.out.find(words), std::string::npos) << words;
  }
  const auto text = story::read_file(file);
  ASSERT_TRUE(text.ok());
  const auto records = story::decode_trace(file, text.value());
  ASSERT_TRUE(records.ok()) << records.error().message;
  EXPECT_GT(records.value().size(), 1000U);
  const auto timeline = story::make_timeline(records.value(), {});
  ASSERT_TRUE(timeline.ok());
  std::size_t edges = 0;
  for (const story::Lane& lane : timeline.value().lanes) {
    for (const story::LeaseWindow& lease : lane.leases) edges += lease.edges.size();
  }
  EXPECT_GT(edges, 100U);
  EXPECT_EQ(std::remove(file.c_str()), 0);
}

TEST(SimCommand, APartOfAStoryIsThatPart) {
  const std::vector<std::string> part = {"--seed", "4",   "--quiet", "--story",
                                         "--from", "10s", "--until", "12s"};
  const Outcome outcome = run(part);
  const std::size_t digit = outcome.out.find_first_not_of(' ');
  const std::string first = outcome.out.substr(digit, outcome.out.find('\n') - digit);
  const std::string second = first.substr(0, 2);
  EXPECT_TRUE(second == "10" || second == "11") << first;
  EXPECT_EQ(outcome.out.find("\n13"), std::string::npos);
  EXPECT_NE(outcome.out.find("findings 0"), std::string::npos);
}

TEST(SimCommand, APlanThatIsKeptIsTheSameRun) {
  const std::string file = testing::TempDir() + "kept.plan";
  const Outcome printed = run({"--seed", "7", "--print-plan"});
  EXPECT_EQ(printed.status, 0);
  std::ofstream(file) << printed.out;
  const Outcome drawn = run({"--seed", "7", "--trace-hash", "--quiet"});
  const Outcome kept = run({"--plan", file, "--trace-hash", "--quiet"});
  EXPECT_EQ(kept.status, 0);
  EXPECT_EQ(kept.out, drawn.out);
  std::ofstream(file, std::ios::app) << "wings 2\n";
  const Outcome wrong = run({"--plan", file});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find(file + ": line "), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("there is no `wings` in a plan"), std::string::npos) << wrong.err;
  EXPECT_EQ(std::remove(file.c_str()), 0);
}

TEST(SimCommand, BadArgumentsAreNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--seed"}, "--seed needs a value"},
      {{"--seed", "x"}, "--seed does not take `x`"},
      {{"--seeds", "9..3"}, "--seeds does not take `9..3`"},
      {{"--seeds", "1.."}, "--seeds does not take `1..`"},
      {{"--jobs", "0"}, "--jobs does not take `0`"},
      {{"--jobs", "65"}, "--jobs does not take `65`"},
      {{"--drift-ppm", "1000000"}, "--drift-ppm does not take `1000000`"},
      {{"--partition", "star"}, "--partition does not take `star`"},
      {{"--hours", "0"}, "--hours does not take `0`"},
      {{"--hours", "1", "--partition", "ring"}, "two kinds of simulation"},
      {{"--tail", "-1"}, "--tail does not take `-1`"},
      {{"--seed", "1", "--trace", "-1"}, "--trace does not take `-1`"},
      {{"--seed", "1", "--story", "--from", "soon"}, "allowed: 600ms"},
      {{"--seeds", "1..2", "--story"}, "about one seed"},
      {{"--print-plan"}, "--print-plan is about one seed"},
      {{"--plan"}, "--plan needs a value"},
      {{"--plan", "x", "--seed", "1"}, "--plan has a seed and a drift of its own"},
      {{"--fast"}, "unknown option `--fast`"},
  };
  for (const auto& one : cases) {
    const Outcome outcome = run(one.first);
    EXPECT_EQ(outcome.status, 2) << one.second;
    EXPECT_NE(outcome.err.find(one.second), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("usage: leasehold sim"), std::string::npos);
  }
}

TEST(SimCommand, HelpSaysHow) {
  const Outcome outcome = run({"--help"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, std::string(kSimUsage) + story::kTellingUsage);
}

}  // namespace
}  // namespace leasehold::sim
