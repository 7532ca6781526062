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

std::vector<Record> marks_of(const std::vector<Record>& records, const std::string& what) {
  std::vector<Record> marks = of_kind(records, Kind::mark);
  std::erase_if(marks, [&what](const Record& mark) { return mark.what != what; });
  return marks;
}

std::vector<std::string> texts_of(const std::vector<Record>& records) {
  std::vector<std::string> texts;
  for (const Record& record : records) texts.push_back(record.text);
  return texts;
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
    const Rehearsal rehearsal = rehearse(seed);
    Lab lab(rehearsal.visit);
    for (Duration at{0}; at < milliseconds(5000); at += milliseconds(1)) lab.run(at);
    lab.run(std::chrono::seconds(20));
    EXPECT_EQ(lab.hash(), rehearsal.hash) << seed;
  }
}

TEST(Lab, AStepThatComesAtItsInstantIsAStepThatWasKnown) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Rehearsal rehearsal = rehearse(seed);
    const Visit& known = rehearsal.visit;
    Visit live = known;
    live.steps.clear();
    Lab lab(live);
    for (const Step& step : known.steps) {
      lab.run(step.at);
      ASSERT_TRUE(lab.add(step).ok());
    }
    lab.run(std::chrono::seconds(20));
    EXPECT_EQ(lab.hash(), rehearsal.hash) << seed;
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
  std::size_t changed = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Lab lab(draw_visit(seed));
    const std::vector<Record> records = records_of(lab, std::chrono::seconds(20));
    ASSERT_EQ(lab.violation(), "") << visit_text(lab.visit());
    if (!marks_of(records, "group").empty()) ++changed;
  }
  EXPECT_GT(changed, 40U) << "few of them change their members";
}

TEST(Lab, MessagesUnderTheVisitorsHandsBreakNoRule) {
  std::set<Verb> handled;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Rehearsal rehearsal = rehearse(seed);
    ASSERT_EQ(rehearsal.violation, "") << visit_text(rehearsal.visit);
    ASSERT_EQ(rehearsal.refusal, "") << visit_text(rehearsal.visit);
    for (const Step& step : rehearsal.visit.steps) {
      if (is_about_message(step.verb)) handled.insert(step.verb);
    }
    const Result<Visit> read = parse_visit(visit_text(rehearsal.visit));
    ASSERT_TRUE(read.ok()) << read.error().message;
    ASSERT_EQ(read.value(), rehearsal.visit);
  }
  EXPECT_EQ(handled.size(), 3U);
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

// ---- Members ----

/// Node 3 leads; node 4 is added and promoted.
constexpr const char* kFourVote = "seed=7&spare=1&steps=1500.add.4~2000.promote.4";

TEST(Lab, ASpareNodeLearnsAndThenVotes) {
  Lab lab(visit_of(kFourVote));
  const std::vector<Record> records = records_of(lab, milliseconds(2500));
  EXPECT_THAT(texts_of(marks_of(records, "group")),
              testing::ElementsAre("voters 1,2,3 learners 4", "voters 1,2,3,4 outgoing 1,2,3",
                                   "voters 1,2,3,4"));
  EXPECT_TRUE(marks_of(records, "refused").empty());
  EXPECT_EQ(newest_leader(records), raft::NodeId(3));
  EXPECT_EQ(lab.violation(), "");
}

TEST(Lab, WhoWasAddedIsNeededAndServes) {
  // Three of four are a majority: without the vote of node 4 nobody leads when node 3 is dead.
  Lab lab(visit_of(std::string(kFourVote) + "~2500.kill.3~5000.read.4.quorum~5500.kill.4"));
  const std::vector<Record> joined = records_of(lab, milliseconds(5400));
  const std::vector<Record> leaders = of_kind(joined, Kind::role);
  EXPECT_TRUE(std::any_of(leaders.begin(), leaders.end(), [](const Record& role) {
    return role.what == "leader" && role.at > milliseconds(2500);
  }));
  const std::vector<Record> reads = of_kind(joined, Kind::read);
  EXPECT_TRUE(std::any_of(reads.begin(), reads.end(), [](const Record& read) {
    return read.node == raft::NodeId(4) && read.at > milliseconds(5000) && read.why.empty();
  }));
  EXPECT_EQ(newest_leader(records_of(lab, milliseconds(9000))), raft::kNobody);
  const std::vector<Record> alone = of_kind(records_of(lab, milliseconds(10000)), Kind::read);
  EXPECT_TRUE(std::all_of(alone.begin(), alone.end(),
                          [](const Record& read) { return read.why == "refused"; }));
  EXPECT_EQ(lab.violation(), "");
}

TEST(Lab, ALeaderThatIsRemovedIsFollowedByAnother) {
  Lab lab(visit_of("seed=7&steps=1500.remove.3~4000.read.3.lease"));
  const std::vector<Record> records = records_of(lab, milliseconds(6000));
  EXPECT_THAT(texts_of(marks_of(records, "group")),
              testing::ElementsAre("voters 1,2 outgoing 1,2,3", "voters 1,2"));
  const raft::NodeId next = newest_leader(records);
  EXPECT_NE(next, raft::kNobody);
  EXPECT_NE(next, raft::NodeId(3));
  std::size_t served = 0;
  for (const Record& read : of_kind(records, Kind::read)) {
    EXPECT_NE(read.why, "stale");
    if (read.at > milliseconds(4000) && read.why.empty()) ++served;
  }
  EXPECT_GT(served, 20U);
  EXPECT_EQ(lab.violation(), "");
}

TEST(Lab, AReplayOfMembersIsTheSameRun) {
  const Visit visit = visit_of(std::string(kFourVote) + "~2020.remove.1~3000.remove.1~4000.kill.3");
  const Duration end = milliseconds(7000);
  const std::uint64_t hash = hash_after(visit, end);
  Lab lab(visit_of(visit_text(visit)));
  for (Duration at{0}; at <= end; at += milliseconds(7)) lab.run(at);
  lab.run(end);
  EXPECT_EQ(lab.hash(), hash);
  EXPECT_NE(hash_after(visit_of(kFourVote), end), hash);
}

TEST(Lab, NobodyNoticesASpareNode) {
  Lab lab(visit_of("seed=7&spare=2"));
  const std::vector<Record> records = records_of(lab, milliseconds(5000));
  for (const Record& record : records) {
    if (record.kind != Kind::sent && record.kind != Kind::role) continue;
    EXPECT_LE(record.node.value(), 3U);
    EXPECT_LE(record.peer.value(), 3U);
  }
  EXPECT_TRUE(marks_of(records, "group").empty());
}

/// What is said to the last of these steps.
std::string refusal_of(const std::string& steps) {
  Lab lab(visit_of("seed=7&spare=1&steps=" + steps));
  const std::vector<Record> refused = marks_of(records_of(lab, milliseconds(5000)), "refused");
  return refused.empty() ? "begun" : refused.back().text;
}

TEST(Lab, WhatTheCoreRefusesIsTold) {
  EXPECT_EQ(refusal_of("1500.add.4"), "begun");
  EXPECT_EQ(refusal_of("1500.add.4.3"), "begun");
  EXPECT_THAT(refusal_of("1500.add.4.1"), HasSubstr("add 4: this node does not lead; ask node 3"));
  EXPECT_THAT(refusal_of("1500.add.4.4"), HasSubstr("does not lead"));
  EXPECT_THAT(refusal_of("1500.add.2"), HasSubstr("exactly these members already"));
  EXPECT_THAT(refusal_of("1500.remove.4"), HasSubstr("exactly these members already"));
  EXPECT_THAT(refusal_of("1500.promote.4"), HasSubstr("promote 4: node 4 is not a member yet"));
  EXPECT_THAT(refusal_of("1500.remove.1~1510.remove.2"), HasSubstr("is not complete"));
  EXPECT_THAT(refusal_of("1400.alone.4~1500.add.4~2500.promote.4"), HasSubstr("node 4 lacks"));
  EXPECT_THAT(refusal_of("100.add.4"), HasSubstr("add 4: nobody leads"));
  EXPECT_THAT(refusal_of("1400.kill.2~1500.add.4.2"), HasSubstr("no process runs at node 2"));
}

TEST(Lab, AChangeThatItsLeaderCannotEndIsTold) {
  Lab lab(visit_of("seed=7&steps=1500.alone.3~1500.remove.1.3"));
  const std::vector<Record> unknown = marks_of(records_of(lab, milliseconds(9000)), "unknown");
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_THAT(unknown[0].text, HasSubstr("remove 1: begun, and not seen to end"));
  EXPECT_EQ(unknown[0].peer, raft::NodeId(3));
  EXPECT_EQ(lab.violation(), "");
}

}  // namespace
}  // namespace leasehold::lab
