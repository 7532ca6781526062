// What a timeline shows of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leasehold/story/scenario.h>
#include <leasehold/story/span.h>
#include <leasehold/story/timeline.h>

#include <string>
#include <vector>

namespace leasehold::story {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<Record> records_of(const std::string& commands) {
  const Result<ScenarioFile> file =
      parse_scenario("a", "# <A> & B\nSource: x\n> nodes 3 lease=1s\n" + commands);
  std::vector<Record> records;
  const ScenarioOutcome outcome =
      run_scenario(file.value(), [&records](const Record& r) { records.push_back(r); });
  EXPECT_FALSE(outcome.failed);
  return records;
}

Timeline timeline_of(const std::string& commands) {
  return make_timeline(records_of(commands), {}).value();
}

constexpr Duration ms(std::int64_t n) {
  return std::chrono::milliseconds(n);
}

const std::string kElect = "> campaign 1\n> settle\n";

TEST(Timeline, RolesFollowEachOtherWithoutAGap) {
  const Timeline timeline = timeline_of(kElect + "> run 300ms\n> crash 1\n> run 1s\n> restart 1\n");
  const Lane& lane = timeline.lanes[0];
  std::vector<std::string> roles;
  for (std::size_t i = 0; i < lane.roles.size(); ++i) {
    roles.push_back(lane.roles[i].what);
    if (i == 0) continue;
    EXPECT_EQ(lane.roles[i].from, lane.roles[i - 1].until);
  }
  EXPECT_THAT(roles, testing::ElementsAre("follower", "pre_candidate", "candidate", "leader",
                                          "down", "follower"));
}

TEST(Timeline, ARenewedPromiseIsOneWindowAndARestartBeginsAnother) {
  const Timeline timeline = timeline_of(kElect + "> run 300ms\n> crash 1\n> restart 2\n");
  const Lane& lane = timeline.lanes[1];
  ASSERT_EQ(lane.promises.size(), 2U);
  EXPECT_EQ(lane.promises[0].given, ms(600));
  EXPECT_EQ(lane.promises[0].renewals.size(), 2U);
  EXPECT_EQ(lane.promises[0].until, ms(900));  // the restart
  EXPECT_TRUE(lane.promises[1].restarted);
  EXPECT_EQ(lane.promises[1].until, ms(2000));  // by a clock that may be 10 % fast
}

TEST(Timeline, EachEdgeOfALeaseNamesTheAcknowledgementThatMovedIt) {
  const Timeline timeline = timeline_of(kElect + "> run 250ms\n");
  ASSERT_EQ(timeline.lanes[0].leases.size(), 1U);
  const LeaseWindow& lease = timeline.lanes[0].leases[0];
  ASSERT_EQ(lease.edges.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const LeaseEdge& edge = lease.edges[i];
    EXPECT_EQ(edge.round, Round(i + 1));
    EXPECT_EQ(edge.began, ms(600 + 100 * static_cast<std::int64_t>(i)));
    EXPECT_EQ(edge.until - edge.began, Duration(808'181'818));
  }
  EXPECT_EQ(lease.until, lease.edges.back().until);
}

TEST(Timeline, ALeaseThatIsGivenUpEndsThere) {
  const Timeline timeline = timeline_of("> preset 3 term=9\n> isolate 3\n" + kElect +
                                        "> run 200ms\n> heal\n> run 100ms\n");
  const Lane& lane = timeline.lanes[0];
  ASSERT_EQ(lane.leases.size(), 2U);
  EXPECT_EQ(lane.leases[0].until, ms(810));
  EXPECT_GT(lane.leases[0].edges.back().until, ms(1500));
}

TEST(Timeline, AnEmptyWindowSaysWhereTheRecordsAre) {
  TimelineOptions options;
  options.from = ms(700);
  options.until = ms(700);
  const auto timeline = make_timeline(records_of(kElect), options);
  ASSERT_FALSE(timeline.ok());
  EXPECT_THAT(timeline.error().message, HasSubstr("the records reach from 600ms"));
  EXPECT_FALSE(make_timeline({}, {}).ok());
}

TEST(Picture, TheSameRecordsGiveTheSameBytes) {
  const std::string commands = kElect + "> run 2s\n> pause 1\n> run 3s\n";
  EXPECT_EQ(draw_timeline(timeline_of(commands), {}), draw_timeline(timeline_of(commands), {}));
}

TEST(Picture, TextIsTextAndIsEscaped) {
  const std::string picture = draw_timeline(timeline_of(kElect + "> mark a<b\n> run 200ms\n"), {});
  EXPECT_THAT(picture, HasSubstr(">&lt;A&gt; &amp; B</text>"));
  EXPECT_THAT(picture, HasSubstr(">a&lt;b</text>"));
  EXPECT_THAT(picture, HasSubstr("lease until 1508.181ms</text>"));
  EXPECT_THAT(picture, HasSubstr("prefers-color-scheme:dark"));
}

TEST(Picture, TheLegendExplainsWhatIsThereAndNothingElse) {
  const std::string quiet = draw_timeline(timeline_of(kElect + "> run 200ms\n"), {});
  EXPECT_THAT(quiet, Not(HasSubstr("vote refused")));
  EXPECT_THAT(quiet, Not(HasSubstr("read by lease")));
  const std::string busy = draw_timeline(
      timeline_of(kElect + "> read 1 lease\n> forge 3->2 vote term=5\n> run 200ms\n"), {});
  EXPECT_THAT(busy, HasSubstr("vote refused"));
  EXPECT_THAT(busy, HasSubstr("read by lease"));
}

TEST(Span, IsWhatPeopleWrite) {
  EXPECT_EQ(parse_span("250us"), Duration(250'000));
  EXPECT_EQ(parse_span("12.5s"), ms(12'500));
  EXPECT_EQ(parse_span("3600s"), Duration(std::chrono::hours(1)));
  for (const char* wrong : {"", "s", "5", "-5s", "5 s", ".5s", "5.s", "1.2.3s", "3601s", "1.0001us",
                            "99999999999999999999s"}) {
    EXPECT_FALSE(parse_span(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace leasehold::story
