// The scenario files' format, and what the runner does with a wrong one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leasehold/story/scenario.h>

#include <string>
#include <vector>

namespace leasehold::story {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kHead = "# A title\n\nSource: nowhere\n\n";

std::string parse_error(const std::string& text) {
  const Result<ScenarioFile> file = parse_scenario("a.scenario", text);
  return file ? "" : file.error().message;
}

ScenarioOutcome run(const std::string& text) {
  const Result<ScenarioFile> file = parse_scenario("a.scenario", text);
  EXPECT_TRUE(file.ok());
  return run_scenario(file.value(), nullptr);
}

/// What the last command of `commands` says is wrong.
std::string problem(const std::string& commands) {
  const ScenarioOutcome outcome = run(kHead + commands);
  return outcome.failed ? outcome.problems.back() : "";
}

TEST(ScenarioFormat, AFileThatSaysWhatHappensHasNoProblems) {
  const ScenarioOutcome outcome = run(kHead +
                                      "> nodes 3\n  nothing\n> expect 1 role follower\n"
                                      "  holds\n");
  EXPECT_TRUE(outcome.problems.empty()) << outcome.problems.front();
  EXPECT_FALSE(outcome.failed);
}

TEST(ScenarioFormat, WhatIsPrintedIsComparedToTheLetterAndWithTheLine) {
  const ScenarioOutcome outcome = run(kHead +
                                      "> nodes 3\n  nothing\n> show lease 1\n"
                                      "  node 1: a lot\n");
  ASSERT_EQ(outcome.problems.size(), 1U);
  EXPECT_THAT(outcome.problems[0], AllOf(HasSubstr("a.scenario:7:"), HasSubstr("node 1: none"),
                                         HasSubstr("node 1: a lot")));
  EXPECT_FALSE(outcome.failed);
}

TEST(ScenarioFormat, NothingIsAssertedToo) {
  EXPECT_EQ(run(kHead + "> nodes 3\n").problems.size(), 1U);
  EXPECT_EQ(run(kHead + "> nodes 3\n  nothing\n  more\n").problems.size(), 1U);
}

TEST(ScenarioFormat, RewritingGivesAFileThatSaysWhatHappens) {
  const std::string text = kHead + "Prose.\n> nodes 3\n  wrong\n\n> run 700ms\nMore prose.\n";
  const ScenarioOutcome first = run(text);
  EXPECT_EQ(first.problems.size(), 2U);
  EXPECT_THAT(first.rewritten, AllOf(HasSubstr("Prose.\n> nodes 3\n  nothing\n\n> run 700ms\n  "),
                                     HasSubstr("leads term 1"), HasSubstr("\nMore prose.\n")));
  const ScenarioOutcome second = run(first.rewritten);
  EXPECT_TRUE(second.problems.empty());
  EXPECT_EQ(second.rewritten, first.rewritten);
}

TEST(ScenarioFormat, AnExpectationThatDoesNotHoldEndsTheScenario) {
  const ScenarioOutcome outcome =
      run(kHead + "> nodes 3\n  nothing\n> expect 1 role leader\n  holds\n> run 1s\n");
  EXPECT_TRUE(outcome.failed);
  ASSERT_EQ(outcome.problems.size(), 1U);
  EXPECT_THAT(outcome.problems[0], AllOf(HasSubstr("a.scenario:7:"), HasSubstr("`1 role leader`"),
                                         HasSubstr("`1 role follower`")));
}

TEST(ScenarioFormat, ErrorsNameFileAndLineAndWhatIsAllowed) {
  EXPECT_THAT(parse_error("no title\n"), AllOf(HasSubstr("a.scenario:1:"), HasSubstr("`# `")));
  EXPECT_THAT(parse_error("# T\n> nodes 3\n"), HasSubstr("`Source: `"));
  EXPECT_THAT(parse_error(kHead), HasSubstr("a scenario has commands"));
  EXPECT_THAT(parse_error(kHead + "  output\n"),
              AllOf(HasSubstr("a.scenario:5:"), HasSubstr("output without a command")));
  EXPECT_THAT(parse_error(kHead + ">nodes 3\n"), HasSubstr("a blank after the `>`"));
  EXPECT_THAT(parse_error(std::string(kScenarioBytesMax + 1, 'x')), HasSubstr("at most"));
}

TEST(ScenarioCommands, AWrongCommandSaysWhatIsAllowed) {
  EXPECT_THAT(problem("> run 1s\n"), HasSubstr("the first command is `nodes N`"));
  EXPECT_THAT(problem("> nodes 12\n"), HasSubstr("1 to 9 nodes"));
  EXPECT_THAT(problem("> nodes 3 size=4\n"), HasSubstr("lease, heartbeat"));
  EXPECT_THAT(problem("> nodes 3 lease=10ms\n"), HasSubstr("unsafe lease"));
  const std::string three = "> nodes 3\n  nothing\n> ";
  EXPECT_THAT(problem(three + "fly\n"), AllOf(HasSubstr("allowed: nodes, preset")));
  EXPECT_THAT(problem(three + "run fast\n"), HasSubstr("allowed: 250us, 300ms"));
  EXPECT_THAT(problem(three + "run 9999999s\n"), HasSubstr("up to one hour"));
  EXPECT_THAT(problem(three + "tick 4\n"), HasSubstr("allowed: 1 to 3"));
  EXPECT_THAT(problem(three + "drift 1 fast\n"), HasSubstr("allowed: +10%"));
  EXPECT_THAT(problem(three + "drift 1 -100%\n"), HasSubstr("allowed: +10%"));
  EXPECT_THAT(problem(three + "deliver pigeons\n"), HasSubstr("append_reply"));
  EXPECT_THAT(problem(three + "deliver all\n"), HasSubstr("on its way: nothing"));
  EXPECT_THAT(problem(three + "cut 1+2\n"), HasSubstr("allowed: 1->2"));
  EXPECT_THAT(problem(three + "cut 1-1\n"), HasSubstr("allowed: 1->2"));
  EXPECT_THAT(problem(three + "show weather\n"), HasSubstr("allowed: state, log"));
  EXPECT_THAT(problem(three + "expect 1 happy yes\n"), HasSubstr("allowed: NODE role"));
  EXPECT_THAT(problem(three + "again #1\n"), HasSubstr("was not sent"));
  EXPECT_THAT(problem(three + "forge 1->2 letter\n"), HasSubstr("allowed: vote"));
  EXPECT_THAT(problem(three + "preset 1 term=1 log=2\n"), HasSubstr("at least that of its last"));
  EXPECT_THAT(problem(three + "preset 1 term=3 log=2,1\n"), HasSubstr("never fall"));
  EXPECT_THAT(problem(three + "read 1 quickly\n"), HasSubstr("lease or quorum"));
}

TEST(ScenarioCommands, ANodeThatIsDownTakesNoCommands) {
  const std::string down = "> nodes 3\n  nothing\n> crash 2\n  0ms\n> ";
  EXPECT_THAT(problem(down + "propose 2 x\n"), HasSubstr("`restart 2` starts it"));
  EXPECT_THAT(problem(down + "crash 2\n"), HasSubstr("down already"));
  EXPECT_THAT(problem(down + "expect 2 term 0\n"), HasSubstr("is down"));
}

// The scenario's own oracle: nothing in a file may hide two leases.
TEST(ScenarioCommands, TwoValidLeasesEndAScenario) {
  // Node 1 runs slower than the bound that the others rely on.
  const std::string story =
      "> nodes 3 drift=10% delay=1ms\n  nothing\n> campaign 1\n> settle\n> run 200ms\n"
      "> drift 1 -60% beyond\n> isolate 1\n> run 2s\n";
  const ScenarioOutcome outcome = run(kHead + story);
  EXPECT_TRUE(outcome.failed);
  EXPECT_THAT(outcome.problems.back(), HasSubstr("both hold a valid lease"));
}

// The promise of every lease rests on the clocks. A clock that nobody has allowed for ends the
// story before it has begun.
TEST(ScenarioCommands, AClockBeyondTheBoundIsRefusedWithBothNumbers) {
  const ScenarioOutcome outcome =
      run(kHead +
          "> nodes 3 lease=1s drift=0% margin=0ms election=100ms delay=0ms\n  nothing\n"
          "> drift 1 -10%\n> drift 2 +10%\n> drift 3 +10%\n> campaign 1\n> run 1ms\n"
          "> isolate 1\n> advance 1ms\n> campaign 2\n> run 60ms\n");
  EXPECT_TRUE(outcome.failed);
  ASSERT_EQ(outcome.problems.size(), 1U);
  EXPECT_THAT(outcome.problems[0], AllOf(HasSubstr("a.scenario:7:"), HasSubstr("off by -100000ppm"),
                                         HasSubstr("the bound of 0ppm")));
  const std::string group = "> nodes 3 drift=10% delay=0ms\n  nothing\n> ";
  EXPECT_THAT(problem(group + "drift 1 +10%\n  0ms\n> drift 1 -10.1%\n"),
              AllOf(HasSubstr("off by -101000ppm"), HasSubstr("the bound of 100000ppm")));
  EXPECT_THAT(problem(group + "drift 1 +10%\n  0ms\n> restart 1 drift=9%\n"),
              AllOf(HasSubstr("off by 100000ppm"), HasSubstr("the bound of 90000ppm")));
}

TEST(ScenarioCommands, TheBoundIsTheLargerOneOfTheNodeAndTheGroup) {
  const std::string settled =
      "> nodes 3 drift=0% delay=0ms\n  x\n> campaign 1\n  x\n> run 1ms\n  x\n> settings 1 "
      "drift=10%\n  x\n> run 300ms\n  x\n> ";
  EXPECT_FALSE(run(kHead + settled + "drift 1 -10%\n").failed);
  EXPECT_THAT(problem(settled + "drift 1 -11%\n"), HasSubstr("the bound of 100000ppm"));
  // They have to be good enough before a smaller one is asked for.
  EXPECT_THAT(problem(settled + "drift 2 5%\n  x\n> settings 1 drift=4%\n"),
              AllOf(HasSubstr("node 2 are off by 50000ppm"), HasSubstr("the bound of 40000ppm")));
  EXPECT_THAT(run(kHead + settled + "settings 1 lease=20ms\n").problems.back(),
              HasSubstr("node 1 refuses: unavailable lease"));
  EXPECT_THAT(problem(settled + "settings 1 reads=maybe\n"), HasSubstr("allowed: on, off"));
}

TEST(ScenarioCommands, TwoLeadersOfOneTermEndAScenario) {
  EXPECT_THAT(problem("> nodes 3\n  nothing\n> forge 1->2 append term=5\n> restart 2\n"
                      "> forge 3->2 append term=5\n"),
              HasSubstr("both lead term 5"));
  EXPECT_THAT(problem("> nodes 3\n  nothing\n> forge 1->2 append term=5 commit=1\n"),
              HasSubstr("nobody has committed index 1"));
}

// A fuzzer's find: such logs let a core stop with an assertion, because something that was
// committed seemed to change.
TEST(ScenarioCommands, NoHistoryIsPresetThatRaftExcludes) {
  const std::string one = "> nodes 3\n  nothing\n> preset 1 term=7 log=1,1,6\n  nothing\n> ";
  EXPECT_THAT(problem(one + "preset 2 term=6 log=1,2,6\n"),
              HasSubstr("node 1 has an entry of this log, but another one before it"));
  EXPECT_EQ(problem(one + "preset 2 term=3 log=1,2,3\n"), "");
  EXPECT_EQ(problem(one + "preset 1 term=6 log=1,2,6\n"), "");
  const std::string two_leads = "isolate 1\n> campaign 2\n> settle\n> run 200ms\n";
  EXPECT_THAT(problem(one + two_leads),
              HasSubstr("leads term 1, but a log that was preset has an entry of term 6"));
  EXPECT_EQ(problem(one + "preset 1 term=1\n  nothing\n> " + two_leads), "");
}

// A fuzzer's find: beyond two and a half hours of true time the story's clocks overflowed, and a
// timer that was due forever let nothing else happen.
TEST(ScenarioCommands, AStoryMayLastForDays) {
  const std::string hour = "> advance 3600s\n";
  std::string commands = "> nodes 3 lease=1s election=3000s\n> campaign 1\n> run 1s\n";
  commands += "> expect 1 role leader\n> crash 1\n";
  for (int passed = 0; passed < 48; ++passed) commands += hour;
  EXPECT_EQ(problem(commands + "> campaign 2\n> settle\n> expect 2 role leader\n"), "");
}

// A fuzzer's find: what was rewritten was longer than a scenario may be. What is printed is
// counted while time passes, or this would take minutes.
TEST(ScenarioCommands, WhatPrintsTooMuchIsRefused) {
  EXPECT_THAT(problem("> nodes 6 lease=1s election=3ms\n> isolate 1\n> run 3600s\n"),
              HasSubstr("prints more than 1048576 bytes"));
  std::string text = kHead;
  for (int i = 0; i < 100'000; ++i) text += "A line.\n";
  EXPECT_THAT(run(text + "> nodes 6 lease=1s election=3ms\n> run 1s\n").problems.back(),
              AllOf(HasSubstr("a.scenario: "), HasSubstr("with what it prints")));
}

const std::string kShared = "> nodes 3 shared lease=1s heartbeat=100ms\n  nothing\n> ";

TEST(ScenarioShared, ABeatThatIsNotDueSaysWhenItIs) {
  EXPECT_THAT(problem("> nodes 3\n  nothing\n> beat 1\n"), HasSubstr("`nodes N shared`"));
  EXPECT_THAT(problem("> nodes 1 shared\n  nothing\n> beat 1\n"), HasSubstr("no other node"));
  EXPECT_THAT(problem(kShared + "beat\n"), HasSubstr("which node?"));
  EXPECT_THAT(problem(kShared + "beat 4\n"), HasSubstr("allowed: 1 to 3"));
  EXPECT_THAT(problem(kShared + "crash 2\n> beat 2\n"), HasSubstr("`restart 2` starts it"));
  EXPECT_THAT(problem(kShared + "beat 1\n> advance 40ms\n> beat 1\n"),
              HasSubstr("the next beat of node 1 is due at 100ms, and it is 40ms"));
  EXPECT_EQ(problem(kShared + "beat 1\n> advance 100ms\n> beat 1\n"), "");
}

TEST(ScenarioShared, BeatsAreMessagesThatCanBeNamed) {
  EXPECT_EQ(problem(kShared + "beat 1\n> deliver beat 1->2\n> deliver beat_reply 2->1\n"), "");
  EXPECT_THAT(problem(kShared + "beat 1\n> drop beat\n> deliver beat\n"),
              HasSubstr("on its way: nothing"));
  const std::string shown =
      run(kHead + kShared + "beat 1\n> deliver beat 1->2\n> show messages\n").rewritten;
  EXPECT_THAT(shown, AllOf(HasSubstr("#2 1->3 beat: beat 1"),
                           HasSubstr("#3 2->1 beat_reply: beat 1, epoch 1.0")));
}

/// Node 1 leads, and rests.
const std::string kRest = kShared + "beat 1\n> settle\n> campaign 1\n> settle\n> run 1s\n";

// Without the beats, the lease would have ended a second after the last message of the group.
TEST(ScenarioShared, ALeaseLastsByBeatsAlone) {
  const std::string lasts = "> run 3s\n> expect 1 lease valid\n> expect 2 promise 1 live\n";
  EXPECT_EQ(problem(kRest + lasts), "");
  const std::string shown = run(kHead + kRest + "> run 3s\n> show lease 1\n").rewritten;
  EXPECT_THAT(shown, HasSubstr(", at rest\n"));
  EXPECT_THAT(shown, HasSubstr("acknowledged beat "));
  EXPECT_EQ(problem(kRest + "> advance 1s\n> expect 1 lease ended\n"), "");
}

TEST(ScenarioShared, ABoundPromiseSaysWhereItRests) {
  const std::string shown = run(kHead + kRest + "> show promise 2\n").rewritten;
  EXPECT_THAT(shown, HasSubstr("; rests on the process of node 1, epoch 1.0, until "));
}

// What a beat asks for has to be durable before it is answered.
TEST(ScenarioShared, AnAnswerToABeatWaitsForTheDisk) {
  const std::string stalled = kShared + "disk 2 stall\n> beat 1\n> deliver beat 1->2\n";
  EXPECT_THAT(problem(stalled + "> deliver beat_reply\n"), HasSubstr("no such message"));
  EXPECT_EQ(problem(stalled + "> disk 2 sync\n> deliver beat_reply\n"), "");
  const std::string crashed = stalled + "> crash 2\n> restart 2\n";
  EXPECT_THAT(problem(crashed + "> disk 2 sync\n> deliver beat_reply\n"),
              HasSubstr("no such message"));
}

TEST(ScenarioShared, AFollowerCampaignsBehindTheEndOfWhatItSupports) {
  EXPECT_EQ(problem(kRest + "> isolate 1\n> campaign 2\n> expect 2 role pre_candidate\n"
                            "> expect 2 promise 1 ended\n"),
            "");
}

TEST(ScenarioCommands, ATransferIsRefusedWithTheReason) {
  EXPECT_THAT(run(kHead + "> nodes 3\n  nothing\n> transfer 1 2\n").problems.back(),
              HasSubstr("node 1 refuses: this node does not lead"));
  EXPECT_THAT(problem("> nodes 3\n  nothing\n> transfer 1\n"), HasSubstr("to which one?"));
}

TEST(ScenarioCommands, TheSameTextGivesTheSameRun) {
  const std::string text = kHead + "> nodes 5 seed=7\n> run 3s full\n";
  EXPECT_EQ(run(text).rewritten, run(text).rewritten);
  EXPECT_NE(run(text).rewritten, run(kHead + "> nodes 5 seed=8\n> run 3s full\n").rewritten);
}

}  // namespace
}  // namespace leasehold::story
