// The lab: one visit is one run, whatever the way in which it is played; and what a visitor sees.
#include <leasehold/lab/lab.h>
#include <leasehold/lab/rehearsal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace leasehold::lab {
namespace {

using std::chrono::milliseconds;
using story::Kind;
using story::Record;
using testing::HasSubstr;

Visit visit_of(const std::string& text) {
  Result<Visit> visit = parse_visit(text);
  LEASEHOLD_ASSERT(visit.ok());
  return visit.value();
}

Step step_of(const std::string& text) {
  Result<Step> step = parse_step(text, 7);
  LEASEHOLD_ASSERT(step.ok());
  return step.value();
}

std::vector<Record> records_of(Lab& lab, Duration end) {
  lab.run(end);
  return lab.take_records();
}

std::vector<Record> of_kind(const std::vector<Record>& records, Kind kind) {
  std::vector<Record> found;
  std::copy_if(records.begin(), records.end(), std::back_inserter(found),
               [kind](const Record& record) { return record.kind == kind; });
  return found;
}

raft::NodeId newest_leader(const std::vector<Record>& records) {
  raft::NodeId leader = raft::kNobody;
  for (const Record& record : of_kind(records, Kind::role)) {
    if (record.what == "leader") leader = record.node;
  }
  return leader;
}

std::uint64_t hash_after(const Visit& visit, Duration end) {
  Lab lab(visit);
  lab.run(end);
  return lab.hash();
}

// ---- One visit is one run ----

TEST(Lab, PortionsOfTimeChangeNothing) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Lab lab(draw_visit(seed));
    for (Duration at{0}; at < milliseconds(5000); at += milliseconds(1)) lab.run(at);
    lab.run(std::chrono::seconds(20));
    EXPECT_EQ(lab.hash(), rehearse(seed)) << seed;
  }
}

TEST(Lab, AStepThatComesAtItsInstantIsAStepThatWasKnown) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Visit known = draw_visit(seed);
    Visit live = known;
    live.steps.clear();
    Lab lab(live);
    for (const Step& step : known.steps) {
      lab.run(step.at);
      ASSERT_TRUE(lab.add(step).ok());
    }
    lab.run(std::chrono::seconds(20));
    EXPECT_EQ(lab.hash(), rehearse(seed)) << seed;
    EXPECT_EQ(lab.visit(), known);
  }
}

TEST(Lab, AnotherSeedOrStepIsAnotherRun) {
  const Duration end = milliseconds(3000);
  const std::uint64_t plain = hash_after(visit_of("seed=1"), end);
  EXPECT_EQ(hash_after(visit_of("seed=1"), end), plain);
  EXPECT_NE(hash_after(visit_of("seed=2"), end), plain);
  EXPECT_NE(hash_after(visit_of("seed=1&steps=2000.write.1"), end), plain);
  EXPECT_NE(hash_after(visit_of("seed=1&lease=1010"), end), plain);
}

TEST(Lab, StepsInThePastAreRefused) {
  Lab lab(visit_of("seed=1&steps=500.write.1"));
  lab.run(milliseconds(100));
  EXPECT_FALSE(lab.add(step_of("99.kill.1")).ok());
  EXPECT_FALSE(lab.add(step_of("400.kill.1")).ok()) << "it stands behind a later one";
  EXPECT_TRUE(lab.add(step_of("600.kill.1")).ok());
}

// ---- Within the bounds of the settings nothing is found ----

TEST(Lab, RehearsalsBreakNoRule) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Lab lab(draw_visit(seed));
    lab.run(std::chrono::seconds(20));
    ASSERT_EQ(lab.violation(), "") << visit_text(lab.visit());
  }
}

TEST(Lab, AClockThatIsWorseThanItsBoundIsFound) {
  // The holder's clock stands nearly still, and all others are in a hurry.
  Lab lab(visit_of("seed=7"));
  const raft::NodeId leader = newest_leader(records_of(lab, milliseconds(1500)));
  ASSERT_NE(leader, raft::kNobody);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const bool holds = raft::NodeId(i) == leader;
    const std::string rate = holds ? "-900000" : "900000";
    ASSERT_TRUE(lab.add(step_of("1500.drift." + std::to_string(i) + "." + rate)).ok());
  }
  ASSERT_TRUE(lab.add(step_of("1500.alone." + std::to_string(leader.value()))).ok());
  const std::vector<Record> records = records_of(lab, milliseconds(4000));
  EXPECT_THAT(lab.violation(), HasSubstr("lease"));
  // The run goes on, and shows what comes of it: a reader gets an old value.
  std::vector<std::string> found;
  for (const Record& mark : of_kind(records, Kind::mark)) {
    if (mark.what == "violation") found.push_back(mark.why);
  }
  EXPECT_THAT(found, testing::Contains("two_leases"));
  EXPECT_THAT(found, testing::Contains("stale_read"));
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), found.size())
      << "each oracle tells one finding";
}

// ---- What a visitor sees ----

TEST(Lab, TheLeaseMovesWhenItsLeaderDies) {
  Lab lab(visit_of("seed=7"));
  const std::vector<Record> first = records_of(lab, milliseconds(2000));
  const raft::NodeId leader = newest_leader(first);
  ASSERT_NE(leader, raft::kNobody);
  const std::vector<Record> leases = of_kind(first, Kind::lease);
  ASSERT_FALSE(leases.empty());
  EXPECT_EQ(leases.back().node, leader);
  ASSERT_TRUE(lab.add(step_of("2000.kill." + std::to_string(leader.value()))).ok());
  const std::vector<Record> then = records_of(lab, milliseconds(5000));
  EXPECT_FALSE(of_kind(then, Kind::crash).empty());
  const raft::NodeId next = newest_leader(then);
  ASSERT_NE(next, raft::kNobody);
  EXPECT_NE(next, leader);
  const std::vector<Record> moved = of_kind(then, Kind::lease);
  ASSERT_FALSE(moved.empty());
  // The old lease was over by then.
  EXPECT_EQ(moved.front().node, next);
  EXPECT_GE(moved.front().at, *leases.back().until);
}

TEST(Lab, TheEdgeOfALeaseNamesItsAcknowledgement) {
  Lab lab(visit_of("seed=3"));
  const std::vector<Record> records = records_of(lab, milliseconds(3000));
  const Duration usable = lab.visit().timing.usable(lab.visit().timing.lease);
  std::size_t tied = 0;
  for (const Record& lease : of_kind(records, Kind::lease)) {
    const auto arrival =
        std::find_if(records.begin(), records.end(), [&lease](const Record& record) {
          return record.kind == Kind::delivered && record.what == "append_reply" &&
                 record.at == lease.at && record.peer == lease.peer && record.round == lease.round;
        });
    if (arrival != records.end()) ++tied;
    // Its clock is right: U behind the send, in true time, too.
    ASSERT_TRUE(lease.from && lease.until);
    EXPECT_EQ(*lease.until - *lease.from, usable);
  }
  EXPECT_GT(tied, 10U);
}

TEST(Lab, ReadsSayHowTheyWereJustified) {
  Lab lab(visit_of("seed=7&reads=0&writes=0"));
  const raft::NodeId leader = newest_leader(records_of(lab, milliseconds(1500)));
  ASSERT_NE(leader, raft::kNobody);
  const std::string at = std::to_string(leader.value());
  const std::string other = std::to_string(leader.value() % 3 + 1);
  for (const std::string& read : {at + ".lease", at + ".quorum", at + ".log", other + ".lease"}) {
    ASSERT_TRUE(lab.add(step_of("1500.read." + read)).ok());
  }
  std::vector<std::string> bases;
  for (const Record& read : of_kind(records_of(lab, milliseconds(2500)), Kind::read)) {
    EXPECT_EQ(read.why, "");
    bases.push_back(read.what);
  }
  EXPECT_THAT(bases, testing::UnorderedElementsAre("off_thread", "quorum", "log", "leader"));
}

TEST(Lab, AWriteIsReadBack) {
  Lab lab(visit_of("seed=7&reads=0&writes=0&steps=1500.write.1~1700.write.2~2000.read.3.quorum"));
  const std::vector<Record> records = records_of(lab, milliseconds(3000));
  const std::vector<Record> reads = of_kind(records, Kind::read);
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_EQ(reads[0].text, "x = 2");
}

TEST(Lab, ADeadNodeAnswersNobody) {
  Lab lab(visit_of("seed=7&reads=0&writes=0&steps=1500.kill.1~1600.read.1.lease~1600.kill.1"));
  const std::vector<Record> records = records_of(lab, milliseconds(2000));
  const std::vector<Record> reads = of_kind(records, Kind::read);
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_EQ(reads[0].why, "refused");
  const std::vector<Record> marks = of_kind(records, Kind::mark);
  EXPECT_TRUE(std::any_of(marks.begin(), marks.end(), [](const Record& mark) {
    return mark.what == "unused" && mark.text == "kill";
  }));
}

TEST(Lab, ClocksRunAsTheVisitorSays) {
  Lab lab(visit_of("seed=1&steps=1000.drift.1.50000~1500.jump.2.300"));
  const std::vector<Record> clocks = of_kind(records_of(lab, milliseconds(2000)), Kind::clock);
  ASSERT_EQ(clocks.size(), 6U);
  EXPECT_EQ(clocks[3].holder_ppm, 50'000);
  // For a millisecond, 300 times faster than it should be.
  EXPECT_EQ(clocks[4].holder_ppm, 300'000'000);
  EXPECT_EQ(clocks[5].holder_ppm, 0);
  EXPECT_EQ(clocks[5].at - clocks[4].at, milliseconds(1));
}

TEST(Lab, ADurablePointFollowsEachWrite) {
  Lab lab(visit_of("seed=7&reads=0"));
  std::size_t durable = 0;
  for (const Record& mark : of_kind(records_of(lab, milliseconds(3000)), Kind::mark)) {
    if (mark.what == "durable") ++durable;
  }
  // At least five writes and the first entry of the term, on three nodes.
  EXPECT_GE(durable, 18U);
}

/// Of the leader, when the process of node 3 dies, until another one leads.
Duration time_without_leader(const std::string& link) {
  Lab lab(visit_of(link));
  Duration led{0};
  for (const Record& record : of_kind(records_of(lab, milliseconds(6000)), Kind::role)) {
    if (record.what == "leader") led = record.at;
  }
  EXPECT_EQ(lab.violation(), "");
  return led - milliseconds(1500);
}

TEST(Lab, AKnownEndEndsThePromisesAndAnUnknownOneDoesNot) {
  const Duration known = time_without_leader("seed=7&known=1&steps=1500.kill.3");
  const Duration unknown = time_without_leader("seed=7&steps=1500.kill.3");
  EXPECT_GT(known, Duration{0});
  EXPECT_LT(known, milliseconds(800));
  EXPECT_GT(unknown, milliseconds(1000));
}

TEST(Lab, NobodyLearnsOfTheEndOfAMachine) {
  Lab lab(visit_of("seed=7&known=1&steps=1500.power.3"));
  EXPECT_TRUE(of_kind(records_of(lab, milliseconds(3000)), Kind::notice).empty());
}

TEST(Lab, ANoticeTravelsOnALinkThatCarries) {
  Lab lab(visit_of("seed=7&known=1&steps=1400.cut.3.1~1500.kill.3"));
  const std::vector<Record> notices = of_kind(records_of(lab, milliseconds(3000)), Kind::notice);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].node, raft::NodeId(2));
  EXPECT_EQ(notices[0].peer, raft::NodeId(3));
  EXPECT_EQ(notices[0].at, milliseconds(1515));
}

}  // namespace
}  // namespace leasehold::lab
