// Links of the lab: their one form, and what is refused.
#include <leasehold/lab/rehearsal.h>
#include <leasehold/lab/visit.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace leasehold::lab {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

std::string refusal(const std::string& text) {
  const Result<Visit> visit = parse_visit(text);
  return visit.ok() ? "taken" : visit.error().message;
}

TEST(Visit, AnEmptyLinkIsTheDefaultVisit) {
  const Result<Visit> visit = parse_visit("");
  ASSERT_TRUE(visit.ok());
  EXPECT_EQ(visit.value(), Visit());
}

TEST(Visit, ItsTextIsReadAsTheSameVisit) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Visit visit = draw_visit(seed);
    const Result<Visit> read = parse_visit(visit_text(visit));
    ASSERT_TRUE(read.ok()) << read.error().message;
    ASSERT_EQ(read.value(), visit) << visit_text(visit);
  }
}

TEST(Visit, NamesMayBeInAnyOrder) {
  const Result<Visit> visit =
      parse_visit("steps=1500.kill.5~1500.read.2.log&nodes=5&drift=50000&seed=9");
  ASSERT_TRUE(visit.ok()) << visit.error().message;
  EXPECT_EQ(visit.value().seed, 9U);
  EXPECT_EQ(visit.value().timing.max_clock_drift_ppm, 50'000);
  ASSERT_EQ(visit.value().steps.size(), 2U);
  EXPECT_EQ(visit.value().steps[0].node, raft::NodeId(5));
  EXPECT_EQ(visit.value().steps[1].mode, raft::ReadMode::log);
  EXPECT_EQ(visit.value().steps[1].at, milliseconds(1500));
}

TEST(Visit, SpareNodesStandBehindTheGroup) {
  const Result<Visit> visit =
      parse_visit("steps=1500.add.5~1600.promote.5.2~1700.remove.2.2&spare=2");
  ASSERT_TRUE(visit.ok()) << visit.error().message;
  EXPECT_EQ(visit.value().all(), 5U);
  EXPECT_EQ(visit.value().steps[0].peer, raft::kNobody);
  EXPECT_EQ(visit.value().steps[1].peer, raft::NodeId(2));
  EXPECT_THAT(visit_text(visit.value()), HasSubstr("nodes=3&spare=2&"));
  EXPECT_THAT(visit_text(visit.value()),
              HasSubstr("steps=1500.add.5~1600.promote.5.2~1700.remove.2.2"));
  // Links of visits without any are as they have always been.
  EXPECT_THAT(visit_text(Visit()), testing::Not(HasSubstr("spare")));
}

TEST(Visit, TimingThatBreaksAnInequalityIsRefusedWithItsNumbers) {
  EXPECT_THAT(refusal("lease=1000&drift=100000&margin=900"), HasSubstr("unsafe lease"));
  EXPECT_THAT(refusal("lease=1000&heartbeat=300"), HasSubstr("unavailable lease"));
  EXPECT_THAT(refusal("lease=1000&heartbeat=100&rtt=700"), HasSubstr("900 ms"));
}

TEST(Visit, OnlyTheVariantWithoutTheCheckTakesUncheckedNumbers) {
  EXPECT_THAT(refusal("unchecked=1"), HasSubstr("this core checks its numbers"));
  EXPECT_THAT(refusal("unchecked=1&margin=-150"), HasSubstr("leasehold_lab_unchecked"));
  EXPECT_THAT(refusal("margin=-1"), HasSubstr("margin is -1 ms; it must be zero or more"));
  EXPECT_EQ(refusal("unchecked=0"), "taken");
  EXPECT_THAT(visit_text(Visit()), testing::Not(HasSubstr("unchecked")));
}

TEST(Visit, RefusesWhatIsNoVisit) {
  EXPECT_THAT(refusal("sed=1"), HasSubstr("nothing is called \"sed\""));
  EXPECT_THAT(refusal("seed"), HasSubstr("seed is \"\""));
  EXPECT_THAT(refusal("seed=1&seed=1"), HasSubstr("stands twice"));
  EXPECT_THAT(refusal("seed=99999999999999999999"), HasSubstr("from 0 to 999999999"));
  EXPECT_THAT(refusal("seed=-1"), HasSubstr("from 0"));
  EXPECT_THAT(refusal("nodes=4"), HasSubstr("3, 5 or 7"));
  EXPECT_THAT(refusal("spare=3"), HasSubstr("from 0 to 2"));
  EXPECT_THAT(refusal("spare=-1"), HasSubstr("from 0 to 2"));
  EXPECT_THAT(refusal("groups=0"), HasSubstr("from 1 to 2"));
  EXPECT_THAT(refusal("groups=3"), HasSubstr("from 1 to 2"));
  EXPECT_THAT(refusal("groups=2&spare=1"), HasSubstr("no spare node"));
  EXPECT_THAT(refusal("steps=1.write.1b"), HasSubstr("the node of a step"));
  EXPECT_THAT(refusal("groups=2&steps=1.kill.1b"), HasSubstr("the node of a step"));
  EXPECT_THAT(refusal("groups=2&steps=1.write.b"), HasSubstr("the node of a step"));
  EXPECT_THAT(refusal("groups=2&steps=1.write.4b"), HasSubstr("from 1 to 3"));
  EXPECT_THAT(refusal("groups=2&steps=1.remove.1"), HasSubstr("one group"));
  EXPECT_THAT(refusal("groups=2&steps=1.drop.1.3"), HasSubstr("handled in a visit of one group"));
  EXPECT_THAT(refusal("delay=0"), HasSubstr("from 1"));
  EXPECT_THAT(refusal("reads=4"), HasSubstr("at least 5 ms apart"));
  EXPECT_THAT(refusal("writes=1"), HasSubstr("at least 5 ms apart"));
  EXPECT_THAT(refusal("heartbeat=4"), HasSubstr("at least 5 ms apart"));
  EXPECT_EQ(refusal("reads=0&writes=5&heartbeat=5"), "taken");
  EXPECT_THAT(refusal("lease=1e3"), HasSubstr("1e3"));
}

TEST(Visit, RefusesStepsThatAreNone) {
  EXPECT_THAT(refusal("steps=kill.1"), HasSubstr("is no step"));
  EXPECT_THAT(refusal("steps=1.kil.1"), HasSubstr("no step is called \"kil\""));
  EXPECT_THAT(refusal("steps=1.kill.4"), HasSubstr("from 1 to 3"));
  EXPECT_THAT(refusal("steps=1.kill.0"), HasSubstr("from 1 to 3"));
  EXPECT_THAT(refusal("steps=1.kill.1.2"), HasSubstr("takes 3 words"));
  EXPECT_THAT(refusal("steps=1.cut.1"), HasSubstr("takes 4 words"));
  EXPECT_THAT(refusal("steps=1.add.4"), HasSubstr("from 1 to 3"));
  EXPECT_THAT(refusal("spare=1&steps=1.add.5"), HasSubstr("from 1 to 4"));
  EXPECT_THAT(refusal("steps=1.remove.1.4"), HasSubstr("from 1 to 3"));
  EXPECT_THAT(refusal("steps=1.remove.1.2.3"), HasSubstr("takes 3 or 4 words"));
  EXPECT_THAT(refusal("steps=1.promote.1."), HasSubstr("the other node of a step"));
  EXPECT_THAT(refusal("steps=1.cut.1.1"), HasSubstr("two different nodes"));
  EXPECT_THAT(refusal("steps=1.read.1.stale"), HasSubstr("lease, quorum or log"));
  EXPECT_THAT(refusal("steps=1.pause.1.0"), HasSubstr("from 1 to 60000"));
  EXPECT_THAT(refusal("steps=1.drift.1.-1000000"), HasSubstr("from -900000"));
  EXPECT_THAT(refusal("steps=1.drop.1"), HasSubstr("drop takes 4 words"));
  EXPECT_THAT(refusal("steps=1.drop.1.0"), HasSubstr("the number of a message is \"0\""));
  EXPECT_THAT(refusal("steps=1.drop.4.1"), HasSubstr("from 1 to 3"));
  EXPECT_THAT(refusal("steps=1.delay.1.1"), HasSubstr("delay takes 5 words"));
  EXPECT_THAT(refusal("steps=1.delay.1.x.5"), HasSubstr("the number of a message is \"x\""));
  EXPECT_THAT(refusal("steps=1.twice.1.1.60001"), HasSubstr("from 1 to 60000"));
  EXPECT_EQ(refusal("steps=1.drop.1.7~2.delay.1.8.50~3.twice.3.999999999.60000"), "taken");
  EXPECT_THAT(refusal("steps=2.kill.1~1.kill.2"), HasSubstr("in the order of their times"));
  EXPECT_THAT(refusal("steps=600001.kill.1"), HasSubstr("from 0 to 600000"));
  EXPECT_THAT(refusal("steps=1.kill.1~"), HasSubstr("is no step"));
  std::string many = "steps=1.write.1";
  for (std::size_t i = 0; i < Visit::kStepsMax; ++i) many += "~1.write.1";
  EXPECT_THAT(refusal(many), HasSubstr("at most 500 steps"));
}

}  // namespace
}  // namespace leasehold::lab
