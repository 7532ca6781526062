// One message under the visitor's hands: it is lost, delayed, or arrives twice; or it is not there.
#include <leasehold/lab/lab.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace leasehold::lab {
namespace {

using std::chrono::milliseconds;
using story::Kind;
using story::Record;
using testing::HasSubstr;

Visit quiet_visit(const std::string& steps = "") {
  Result<Visit> visit = parse_visit("seed=7&reads=0&writes=0&steps=" + steps);
  LEASEHOLD_ASSERT(visit.ok());
  return visit.value();
}

/// The first heartbeat of node 3, the leader, to node 1 behind this instant, and when it is seen.
struct Chosen {
  Duration at{0};
  sim::SimNetwork::Flight flight;
};

Chosen heartbeat_behind(Duration from) {
  Lab lab(quiet_visit());
  for (lab.run(from); lab.now() < from + milliseconds(200); lab.run(lab.now() + milliseconds(1))) {
    for (const sim::SimNetwork::Flight& flight : lab.flights()) {
      const bool append = std::holds_alternative<raft::AppendRequest>(*flight.message);
      if (!append || flight.from != raft::NodeId(3) || flight.to != raft::NodeId(1)) continue;
      Chosen chosen{lab.now(), flight};
      chosen.flight.message = nullptr;
      return chosen;
    }
  }
  ADD_FAILURE() << "no heartbeat is under way";
  return {};
}

std::string step_on(const Chosen& chosen, const std::string& verb, const std::string& more = "") {
  return std::to_string(chosen.at / milliseconds(1)) + "." + verb + ".3." +
         std::to_string(chosen.flight.number) + more;
}

std::vector<Record> played(const std::string& steps, Duration end) {
  Lab lab(quiet_visit(steps));
  lab.run(end);
  EXPECT_EQ(lab.violation(), "");
  EXPECT_EQ(lab.refusal(), "");
  return lab.take_records();
}

/// Of messages from node 3 to node 1: when they arrived there, or were lost.
std::vector<Duration> instants(const std::vector<Record>& records, Kind kind, Duration from) {
  std::vector<Duration> found;
  for (const Record& record : records) {
    const bool arrives =
        kind == Kind::delivered && record.node == raft::NodeId(1) && record.peer == raft::NodeId(3);
    const bool lost =
        kind == Kind::lost && record.node == raft::NodeId(3) && record.peer == raft::NodeId(1);
    if (record.kind == kind && (arrives || lost) && record.at >= from) found.push_back(record.at);
  }
  return found;
}

std::vector<Record> hand_marks(const std::vector<Record>& records, const std::string& what) {
  std::vector<Record> marks;
  std::copy_if(records.begin(), records.end(), std::back_inserter(marks),
               [&what](const Record& one) { return one.kind == Kind::mark && one.what == what; });
  return marks;
}

TEST(Messages, OneThatIsDroppedIsLostAtOnceAndOthersArrive) {
  const Chosen chosen = heartbeat_behind(milliseconds(1500));
  const std::vector<Record> records = played(step_on(chosen, "drop"), milliseconds(1900));
  EXPECT_THAT(instants(records, Kind::lost, Duration{0}), testing::ElementsAre(chosen.at));
  const std::vector<Duration> arrived = instants(records, Kind::delivered, chosen.at);
  EXPECT_THAT(arrived, testing::Not(testing::Contains(chosen.flight.arrival.since_origin())));
  EXPECT_GE(arrived.size(), 2U);
  const std::vector<Record> marks = hand_marks(records, "dropped");
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(marks[0].peer, raft::NodeId(1));
  EXPECT_EQ(marks[0].number, chosen.flight.number);
  EXPECT_THAT(marks[0].text, HasSubstr("append: "));
}

TEST(Messages, OneThatIsDelayedArrivesLaterAndIsOvertaken) {
  const Chosen chosen = heartbeat_behind(milliseconds(1500));
  const Duration due = chosen.flight.arrival.since_origin() + milliseconds(250);
  const std::vector<Record> records = played(step_on(chosen, "delay", ".250"), milliseconds(1900));
  const std::vector<Duration> arrived = instants(records, Kind::delivered, chosen.at);
  EXPECT_THAT(arrived, testing::Not(testing::Contains(chosen.flight.arrival.since_origin())));
  EXPECT_THAT(arrived, testing::Contains(due));
  EXPECT_LT(arrived.front(), due) << "nothing has overtaken it";
  EXPECT_TRUE(instants(records, Kind::lost, Duration{0}).empty());
  ASSERT_EQ(hand_marks(records, "delayed").size(), 1U);
  EXPECT_EQ(*hand_marks(records, "delayed")[0].until, due);
}

TEST(Messages, OneMayBeDelayedOnceMoreAndThenBeDropped) {
  const Chosen chosen = heartbeat_behind(milliseconds(1500));
  const Duration plain = chosen.flight.arrival.since_origin();
  const std::string twice =
      step_on(chosen, "delay", ".100") + "~" + step_on(chosen, "delay", ".50");
  const std::vector<Duration> late =
      instants(played(twice, milliseconds(1900)), Kind::delivered, chosen.at);
  EXPECT_THAT(late, testing::Contains(plain + milliseconds(150)));
  EXPECT_THAT(late, testing::Not(testing::Contains(plain + milliseconds(100))));
  const std::vector<Record> lost =
      played(twice + "~" + step_on(chosen, "drop"), milliseconds(1900));
  EXPECT_THAT(instants(lost, Kind::delivered, chosen.at),
              testing::Not(testing::Contains(plain + milliseconds(150))));
}

TEST(Messages, OneThatArrivesTwiceArrivesTwice) {
  const Chosen chosen = heartbeat_behind(milliseconds(1500));
  const Duration plain = chosen.flight.arrival.since_origin();
  const std::vector<Record> records = played(step_on(chosen, "twice", ".30"), milliseconds(1900));
  const std::vector<Duration> arrived = instants(records, Kind::delivered, chosen.at);
  EXPECT_THAT(arrived, testing::Contains(plain));
  EXPECT_THAT(arrived, testing::Contains(plain + milliseconds(30)));
  ASSERT_EQ(hand_marks(records, "twice").size(), 1U);
  EXPECT_EQ(*hand_marks(records, "twice")[0].until, plain + milliseconds(30));
}

TEST(Messages, TheNumberIsThatOfTheRecord) {
  const Chosen chosen = heartbeat_behind(milliseconds(1500));
  Lab lab(quiet_visit());
  lab.run(chosen.at);
  const std::vector<Record> records = lab.take_records();
  const auto sent = std::find_if(records.rbegin(), records.rend(), [&chosen](const Record& one) {
    return one.kind == Kind::sent && one.node == raft::NodeId(3) &&
           one.number == chosen.flight.number;
  });
  ASSERT_NE(sent, records.rend());
  EXPECT_EQ(sent->peer, raft::NodeId(1));
  EXPECT_EQ(sent->what, "append");
}

TEST(Messages, ACutTakesADelayedOne) {
  const Chosen chosen = heartbeat_behind(milliseconds(1500));
  const std::string at = std::to_string(chosen.at / milliseconds(1));
  const std::vector<Record> records =
      played(step_on(chosen, "delay", ".250") + "~" + at + ".cut.3.1", milliseconds(1900));
  EXPECT_THAT(instants(records, Kind::lost, Duration{0}),
              testing::Contains(chosen.flight.arrival.since_origin() + milliseconds(250)));
}

// ---- What is not there ----

TEST(Messages, OneThatIsNotUnderWayIsRefusedAtOnce) {
  const Chosen chosen = heartbeat_behind(milliseconds(1500));
  Lab lab(quiet_visit());
  lab.run(chosen.flight.arrival.since_origin() + milliseconds(1));
  const auto add = [&lab](const std::string& verb, std::uint64_t number, const std::string& more) {
    const std::string at = std::to_string(lab.now() / milliseconds(1) + 1);
    lab.run(lab.now() + milliseconds(1));
    const auto step = parse_step(at + "." + verb + ".3." + std::to_string(number) + more, 3);
    LEASEHOLD_ASSERT(step.ok());
    lab.run(step.value().at);
    const Result<void> added = lab.add(step.value());
    return added.ok() ? "taken" : added.error().message;
  };
  lab.run(milliseconds(lab.now() / milliseconds(1) + 1));
  EXPECT_THAT(add("drop", chosen.flight.number, ""), HasSubstr("is not under way: it has arrived"));
  EXPECT_THAT(add("delay", 999'999, ".5"),
              HasSubstr("message 999999 of node 3 is not under way: it "
                        "has sent "));
  EXPECT_TRUE(lab.visit().steps.empty());
  EXPECT_EQ(lab.refusal(), "");
}

TEST(Messages, AVisitThatNamesOneThatIsNotThereIsRefusedWhenItComesToIt) {
  const Chosen chosen = heartbeat_behind(milliseconds(1500));
  const std::string drop = step_on(chosen, "drop");
  Lab lab(quiet_visit(drop + "~" + drop));
  lab.run(chosen.at - milliseconds(1));
  EXPECT_EQ(lab.refusal(), "");
  lab.run(milliseconds(1900));
  EXPECT_THAT(lab.refusal(), HasSubstr("the step " + drop + ": message "));
  EXPECT_EQ(hand_marks(lab.take_records(), "refused").size(), 1U);
}

}  // namespace
}  // namespace leasehold::lab
