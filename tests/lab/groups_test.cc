// Two groups in one visit: their leases rest on one set of beats between the processes.
#include <leasehold/lab/lab.h>
#include <leasehold/lab/rehearsal.h>
#include <leasehold/lab/scenario_visit.h>

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

constexpr const char* kQuiet = "seed=7&groups=2&reads=0&writes=0";

std::string step_at(const std::string& verb, std::uint64_t node, const std::string& rest = "") {
  return verb + "." + std::to_string(node) + rest;
}

/// A run, with all that has happened in it.
class TwoGroups {
 public:
  explicit TwoGroups(const std::string& link) : lab_(parse_visit(link).value()) {}

  void run(Duration end) {
    lab_.run(end);
    for (Record& record : lab_.take_records()) records_.push_back(std::move(record));
  }
  void act(const std::string& words) {
    const std::string text = std::to_string(lab_.now() / milliseconds(1)) + "." + words;
    const Result<Step> step = parse_step(text, 3, 2);
    ASSERT_TRUE(step.ok()) << text;
    ASSERT_TRUE(lab_.add(step.value()).ok());
    run(lab_.now());
  }
  /// Group 1 or 2: the node that was elected last.
  std::uint64_t leader(std::uint64_t group) const {
    std::uint64_t leader = 0;
    for (const Record& record : of(Kind::role, group)) {
      if (record.what == "leader") leader = record.node.value();
    }
    return leader;
  }
  /// Those of a group, from `begin` on. Records of the first one, and between processes, name none.
  std::vector<Record> of(Kind kind, std::uint64_t group, Duration begin = Duration{0}) const {
    std::vector<Record> found;
    for (const Record& record : records_) {
      const std::uint64_t own = std::max<std::uint64_t>(1, record.group.value());
      if (record.kind == kind && own == group && record.at >= begin) found.push_back(record);
    }
    return found;
  }
  /// The end of the newest lease that the node had told by now.
  Duration lease_end(std::uint64_t node, std::uint64_t group) const {
    Duration end{0};
    for (const Record& record : of(Kind::lease, group)) {
      if (record.node == raft::NodeId(node)) end = record.until.value();
    }
    return end;
  }
  /// The same node leads both groups.
  void unite() {
    const std::uint64_t one = leader(1);
    if (leader(2) != one) act(step_at("transfer", leader(2), "b." + std::to_string(one)));
    run(lab_.now() + milliseconds(1000));
    ASSERT_EQ(leader(2), one);
    ASSERT_EQ(leader(1), one);
  }
  const Lab& lab() const { return lab_; }
  const std::vector<Record>& records() const { return records_; }

 private:
  Lab lab_;
  std::vector<Record> records_;
};

bool is_beat(const Record& record) {
  return record.what.starts_with("beat");
}

TEST(TwoGroups, HaveALeaderAndALeaseEachThatBeatsMove) {
  TwoGroups groups(kQuiet);
  groups.run(milliseconds(3000));
  for (const std::uint64_t group : {1U, 2U}) {
    const std::uint64_t leader = groups.leader(group);
    ASSERT_NE(leader, 0U) << group;
    EXPECT_GT(groups.lease_end(leader, group), milliseconds(3000)) << group;
    std::size_t moved = 0;
    for (const Record& lease : groups.of(Kind::lease, group, milliseconds(2000))) {
      EXPECT_EQ(lease.what, "beat");
      EXPECT_EQ(lease.node, raft::NodeId(leader));
      ++moved;
    }
    EXPECT_GE(moved, 9U) << "a beat each 100 ms";
    EXPECT_GE(groups.of(Kind::promise, group, milliseconds(2000)).size(), 9U);
  }
}

TEST(TwoGroups, SendNothingWhileTheyRest) {
  TwoGroups groups(kQuiet);
  groups.run(milliseconds(4000));
  EXPECT_TRUE(groups.of(Kind::sent, 2, milliseconds(2000)).empty());
  const std::vector<Record> sent = groups.of(Kind::sent, 1, milliseconds(2000));
  EXPECT_GE(sent.size(), 200U) << "6 beats and 6 answers each 100 ms";
  EXPECT_TRUE(std::all_of(sent.begin(), sent.end(), is_beat));
  const std::vector<Record> came = groups.of(Kind::delivered, 1, milliseconds(2000));
  EXPECT_GE(came.size(), 200U);
  for (const Record& record : came) EXPECT_TRUE(record.from.has_value());
}

TEST(TwoGroups, BothLeasesEndWithTheBeatsOfTheirHost) {
  TwoGroups groups(kQuiet);
  groups.run(milliseconds(3000));
  groups.unite();
  const std::uint64_t host = groups.leader(1);
  groups.act(step_at("alone", host));
  const Duration cut = groups.lab().now();
  groups.run(cut + milliseconds(4000));
  for (const std::uint64_t group : {1U, 2U}) {
    EXPECT_LT(groups.lease_end(host, group), cut + milliseconds(1000)) << group;
    EXPECT_NE(groups.leader(group), host) << group;
    EXPECT_GT(groups.lease_end(groups.leader(group), group), cut + milliseconds(4000)) << group;
  }
  EXPECT_EQ(groups.lab().violation(), "");
}

TEST(TwoGroups, AreWrittenAndReadApart) {
  TwoGroups groups(kQuiet);
  groups.run(milliseconds(3000));
  groups.act(step_at("write", groups.leader(1)));
  groups.act(step_at("write", groups.leader(2), "b"));
  groups.act(step_at("write", groups.leader(2), "b"));
  groups.run(milliseconds(3500));
  const std::uint64_t other = groups.leader(2) % 3 + 1;
  groups.act(step_at("read", groups.leader(1), ".lease"));
  for (const char* mode : {"lease", "quorum", "log"}) {
    groups.act(step_at("read", groups.leader(2), std::string("b.") + mode));
  }
  groups.act(step_at("read", other, "b.lease"));
  groups.run(milliseconds(4000));
  const std::vector<Record> first = groups.of(Kind::read, 1);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].text, "x = 1");
  const std::vector<Record> second = groups.of(Kind::read, 2);
  ASSERT_EQ(second.size(), 4U);
  std::vector<std::string> bases;
  for (const Record& read : second) {
    EXPECT_EQ(read.text, "x = 2") << read.what << " " << read.why;
    bases.push_back(read.what);
  }
  EXPECT_THAT(bases, testing::UnorderedElementsAre("off_thread", "quorum", "log", "leader"));
  EXPECT_EQ(groups.lab().violation(), "");
}

TEST(TwoGroups, KeepWhatWasWrittenWhenAllProcessesStartAgain) {
  TwoGroups groups(kQuiet);
  groups.run(milliseconds(3000));
  groups.act(step_at("write", groups.leader(2), "b"));
  groups.run(milliseconds(3200));
  for (const char* words : {"kill.1", "kill.2", "kill.3", "restart.1", "restart.2", "restart.3"}) {
    groups.act(words);
  }
  groups.run(milliseconds(6000));
  groups.act(step_at("read", groups.leader(2), "b.quorum"));
  groups.run(milliseconds(6500));
  ASSERT_EQ(groups.of(Kind::read, 2).size(), 1U);
  EXPECT_EQ(groups.of(Kind::read, 2)[0].text, "x = 1");
}

TEST(TwoGroups, AClockBeyondItsBoundIsFoundInTheSecondOne) {
  TwoGroups groups(kQuiet);
  groups.run(milliseconds(3000));
  groups.unite();
  const std::uint64_t host = groups.leader(2);
  for (std::uint64_t node = 1; node <= 3; ++node) {
    groups.act(step_at("drift", node, node == host ? ".-900000" : ".900000"));
  }
  groups.act(step_at("alone", host));
  groups.run(milliseconds(9000));
  std::vector<std::string> oracles;
  for (const Record& record : groups.records()) {
    if (record.kind == Kind::mark && record.what == "violation") oracles.push_back(record.why);
  }
  EXPECT_THAT(oracles, testing::Contains("side_two_leases"));
  EXPECT_THAT(oracles, testing::Contains("two_leases")) << "the run goes on";
}

TEST(TwoGroups, AreInSomeRehearsals) {
  std::size_t two = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) two += draw_visit(seed).groups - 1;
  EXPECT_GE(two, 30U);
  EXPECT_LE(two, 70U);
}

TEST(TwoGroups, GoThroughALinkAndNoScenario) {
  const std::string steps = "1500.write.1b~1600.read.2b.quorum~1700.transfer.3b.1~1800.write.1";
  const Result<Visit> visit = parse_visit("groups=2&steps=" + steps);
  ASSERT_TRUE(visit.ok());
  EXPECT_EQ(visit.value().steps[0].group, raft::GroupId(2));
  EXPECT_EQ(visit.value().steps[3].group, raft::GroupId(1));
  const std::string text = visit_text(visit.value());
  EXPECT_THAT(text, HasSubstr("&groups=2&"));
  EXPECT_THAT(text, HasSubstr(steps));
  EXPECT_EQ(parse_visit(text).value(), visit.value());
  EXPECT_THAT(visit_text(Visit()), testing::Not(HasSubstr("groups")));
  const auto scenario = scenario_of_visit(visit.value(), milliseconds(3000));
  ASSERT_FALSE(scenario.ok());
  EXPECT_THAT(scenario.error().message, HasSubstr("two groups"));
}

}  // namespace
}  // namespace leasehold::lab
