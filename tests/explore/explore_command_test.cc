// The program leasehold_explore: what it prints, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leasehold/explore/explore_command.h>

#include <string>
#include <vector>

namespace leasehold::explore {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct CommandRun {
  int status;
  std::string out;
};

CommandRun run(const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = run_explore_command(arguments);
  testing::internal::GetCapturedStderr();
  return {status, testing::internal::GetCapturedStdout()};
}

TEST(ExploreCommand, TellsAViolationStepByStep) {
  const CommandRun bad = run({"--drift-percent", "50", "--quiet"});
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.out, AllOf(HasSubstr("but no quorum of live promises covers it, after 3 steps"),
                             HasSubstr("\nstep 1: the clocks of 1 to 3 run slow "),
                             HasSubstr("\nstep 2: 20 ms pass"), HasSubstr("\nstep 3: 20 ms pass"),
                             Not(HasSubstr("\nstep 4:")), Not(HasSubstr("depth ")),
                             EndsWith("\nsteps: rates slow fast fast, pass, pass\n")));
  // Which is how another search may begin.
  const CommandRun after =
      run({"--drift-percent", "50", "--quiet", "--after", "rates slow fast fast, pass"});
  EXPECT_EQ(after.status, 1);
  EXPECT_THAT(after.out, HasSubstr("covers it, after 1 steps"));
}

TEST(ExploreCommand, SaysHowFarItCame) {
  const CommandRun all = run({"--time", "1", "--no-drift"});
  EXPECT_EQ(all.status, 0);
  EXPECT_THAT(all.out, AllOf(StartsWith("depth  1: "),
                             HasSubstr("no violation: all states within the bounds, up to")));
  const CommandRun deep = run({"--time", "2", "--no-drift", "--depth", "3", "--quiet"});
  EXPECT_EQ(deep.status, 0);
  EXPECT_THAT(deep.out, StartsWith("no violation: all states up to 3 steps"));
  EXPECT_EQ(run({"--time", "2", "--no-drift", "--states", "10"}).status, 3);
}

TEST(ExploreCommand, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(run({"--tim", "2"}).status, 2);
  EXPECT_EQ(run({"--time"}).status, 2);
  EXPECT_EQ(run({"--time", "100"}).status, 2);
  EXPECT_EQ(run({"--time", "-1"}).status, 2);
  EXPECT_EQ(run({"--states", "0"}).status, 2);
  EXPECT_EQ(run({"--voters", "0"}).status, 2);
  EXPECT_EQ(run({"--voters", "4"}).status, 2);
  EXPECT_EQ(run({"--voters", "3", "--members", "2"}).status, 2);
  EXPECT_EQ(run({"--members", "4"}).status, 2);
  EXPECT_EQ(run({"--nodes", "6"}).status, 2);
  EXPECT_EQ(run({"--nodes", "0"}).status, 2);
  EXPECT_EQ(run({"--nodes", "2", "--one-away"}).status, 2);
  EXPECT_EQ(run({"--witness", "--nodes", "1"}).status, 2);
  EXPECT_EQ(run({"--rules", "--readers"}).status, 2);
  EXPECT_EQ(run({"--beats", "1"}).status, 2);
  EXPECT_EQ(run({"--groups", "2"}).status, 2);
  EXPECT_EQ(run({"--groups", "3", "--shared"}).status, 2);
  EXPECT_EQ(run({"--shared", "--rules"}).status, 2);
  EXPECT_EQ(run({"--shared", "--unbound"}).status, 2);
  EXPECT_EQ(run({"--shared", "--nodes", "1"}).status, 2);
  EXPECT_EQ(run({"--shared", "--groups", "2", "--settings", "1"}).status, 2);
  EXPECT_EQ(run({"--after"}).status, 2);
  EXPECT_EQ(run({"--after", "hear 2<1 append"}).status, 2);
  EXPECT_EQ(run({"--one-away", "--late-answer"}).status, 2);
  EXPECT_EQ(run({"--led-before", "--terms", "2"}).status, 2);
  EXPECT_EQ(run({"--uneven", "--led-before"}).status, 2);
  const CommandRun help = run({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, StartsWith("usage: leasehold explore"));
}

}  // namespace
}  // namespace leasehold::explore
