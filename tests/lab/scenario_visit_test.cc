// Scenario files and visits: what of each the other can say.
#include <leasehold/lab/lab.h>
#include <leasehold/lab/rehearsal.h>
#include <leasehold/lab/scenario_visit.h>
#include <leasehold/tests/story/random_command.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace leasehold::lab {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

story::ScenarioFile file_of(const std::string& commands) {
  auto file = story::parse_scenario("story", "# A story\n\nSource: a test.\n\n" + commands);
  LEASEHOLD_ASSERT(file.ok());
  return file.value();
}

AskedVisit asked(const std::string& commands) {
  Result<AskedVisit> visit = visit_of_scenario(file_of(commands));
  EXPECT_TRUE(visit.ok()) << visit.error().message;
  return visit.ok() ? visit.value() : AskedVisit();
}

std::vector<std::string> steps_of(const Visit& visit) {
  std::vector<std::string> steps;
  for (const Step& step : visit.steps) steps.push_back(step_text(step));
  return steps;
}

Visit link(const std::string& text) {
  Result<Visit> visit = parse_visit(text);
  LEASEHOLD_ASSERT(visit.ok());
  return visit.value();
}

std::string refused(const std::string& visit, Duration until = milliseconds(5000)) {
  const Result<std::string> written = scenario_of_visit(link(visit), until);
  return written.ok() ? "written" : written.error().message;
}

std::vector<std::uint64_t> leaders(const std::vector<story::Record>& records) {
  std::vector<std::uint64_t> found;
  for (const story::Record& record : records) {
    const bool leads = record.kind == story::Kind::role && record.what == "leader";
    if (leads) found.push_back(record.node.value());
  }
  return found;
}

TEST(ScenarioVisit, EachWordWithACounterpartBecomesAStepAtItsTime) {
  const AskedVisit visit = asked(
      "> nodes 5 lease=2s heartbeat=150ms election=400ms rtt=60ms margin=20ms drift=5% delay=7ms "
      "seed=9\n> run 1500ms full\n> propose 1 a b\n> read 2 quorum\n> pause 3\n> disk 4 stall\n"
      "> run 300ms\n> resume 3\n> disk 4 sync\n> cut 1-2 3->4\n> isolate 5\n> run 1s\n> heal\n"
      "> drift 2 -8.3%\n> drift 3 +40% beyond\n> transfer 1 2\n> crash 1\n> run 2s\n> restart 1\n");
  EXPECT_THAT(visit.without, IsEmpty());
  EXPECT_EQ(visit.until, milliseconds(4800));
  EXPECT_EQ(visit.visit.nodes, 5U);
  EXPECT_EQ(visit.visit.seed, 9U);
  EXPECT_EQ(visit.visit.timing.lease, milliseconds(2000));
  EXPECT_EQ(visit.visit.timing.max_clock_drift_ppm, 50'000);
  EXPECT_EQ(visit.visit.delay, milliseconds(7));
  EXPECT_EQ(visit.visit.reads, Duration{0});
  EXPECT_THAT(
      steps_of(visit.visit),
      ElementsAre("1500.write.1", "1500.write.1", "1500.read.2.quorum", "1500.pause.3.300",
                  "1500.slow.4.300", "1800.cut.1.2", "1800.one_way.3.4", "1800.alone.5",
                  "2800.join.1.2", "2800.join.1.5", "2800.join.2.5", "2800.join.3.4",
                  "2800.join.3.5", "2800.join.4.5", "2800.drift.2.-83000", "2800.drift.3.400000",
                  "2800.transfer.1.2", "2800.kill.1", "4800.restart.1"));
}

TEST(ScenarioVisit, WhatHasNoCounterpartIsNamedWithItsLineAndReason) {
  const AskedVisit visit = asked(
      "> nodes 3\n> campaign 1\n> deliver all\n> run 1s\n> drift 1 +5% holder\n> forge 1->2 vote\n"
      "> delay 9ms\n> read 1 lease\n> expect 1 role leader\n> show state\n> run 250us\n"
      "> pause 9\n> resume 9\n> fly 1\n> resume 2\n> restart 1 drift=5%\n");
  EXPECT_THAT(
      visit.without,
      ElementsAre("line 6 `campaign 1`: in the lab a node campaigns when its own timer falls",
                  "line 7 `deliver all`: in the lab messages arrive when they are due",
                  "line 9 `drift 1 +5% holder`: both clocks of a node of the lab run alike",
                  "line 10 `forge 1->2 vote`: in the lab every message was sent by a node",
                  "line 11 `delay 9ms`: in the lab the way of a message is one number, from the "
                  "start",
                  "line 15 `run 250us`: the lab counts whole milliseconds",
                  HasSubstr("line 16 `pause 9`: "), "line 17 `resume 9`: it is not paused",
                  "line 18 `fly 1`: the lab knows no `fly`", "line 19 `resume 2`: it is not paused",
                  HasSubstr("line 20 `restart 1 drift=5%`: ")));
  EXPECT_THAT(visit.left_out,
              ElementsAre(HasSubstr("line 13 `expect"), HasSubstr("line 14 `show")));
  EXPECT_THAT(steps_of(visit.visit), ElementsAre("1000.read.1.lease"));
}

TEST(ScenarioVisit, AGroupThatTheLabHasNotIsRefusedWithItsLine) {
  const auto refusal = [](const std::string& commands) {
    const Result<AskedVisit> visit = visit_of_scenario(file_of(commands));
    return visit.ok() ? "taken" : visit.error().message;
  };
  EXPECT_THAT(refusal("> nodes 4\n"), HasSubstr("line 5 `nodes 4`: nodes is 3, 5 or 7"));
  EXPECT_THAT(refusal("> nodes 3 shared\n"), HasSubstr("share no promises"));
  EXPECT_THAT(refusal("> nodes 3 lease=100ms\n"), HasSubstr("line 5 `nodes 3 lease=100ms`"));
  EXPECT_THAT(refusal("> nodes 3 lease=1.5us\n"), HasSubstr("line 5"));
  EXPECT_THAT(refusal("> nodes 3 seed=1&reads=5\n"), HasSubstr("stands twice"));
  EXPECT_THAT(refusal("> run 1s\n"), HasSubstr("the first command is `nodes N`"));
}

TEST(ScenarioVisit, CommandsInAnyOrderGiveAVisit) {
  const std::vector<std::string> commands = {"> run 70s\n",      "> pause 1\n",     "> resume 1\n",
                                             "> disk 1 stall\n", "> disk 1 sync\n", "> crash 1\n",
                                             "> restart 1\n",    "> heal\n",        "> isolate 2\n",
                                             "> cut 1-2\n",      "> propose 1 x\n"};
  for (const std::string& first : commands) {
    for (const std::string& second : commands) {
      const AskedVisit visit = asked("> nodes 3\n" + first + second + commands[0] + first);
      EXPECT_EQ(parse_visit(visit_text(visit.visit)).value(), visit.visit);
    }
  }
}

TEST(ScenarioVisit, RandomScenariosGiveAVisitOrAReasonForEachLine) {
  std::size_t visits = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    story::Cast cast;
    cast.lies = true;
    std::string text = "> " + (seed % 4 == 0 ? story::random_group(random) : "nodes 3") + "\n";
    for (int i = 0; i < 40; ++i) text += "> " + story::random_command(random, cast) + "\n";
    const story::ScenarioFile file = file_of(text);
    const Result<AskedVisit> visit = visit_of_scenario(file);
    if (!visit) {
      EXPECT_THAT(visit.error().message, HasSubstr("line 5 `nodes")) << text;
      continue;
    }
    ++visits;
    EXPECT_EQ(parse_visit(visit_text(visit.value().visit)).value(), visit.value().visit);
    for (const std::string& one : visit.value().without) EXPECT_THAT(one, HasSubstr("line "));
  }
  EXPECT_GT(visits, 300U);
}

TEST(ScenarioVisit, AVisitIsWrittenAsAScenarioThatRunsAsItSays) {
  const Visit visit =
      link("seed=7&steps=1500.kill.3~3000.restart.3~3500.write.1~3600.read.1.lease");
  const Result<std::string> text = scenario_of_visit(visit, milliseconds(4000));
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto file = story::parse_scenario("written", text.value());
  ASSERT_TRUE(file.ok()) << file.error().message;
  std::vector<story::Record> records;
  const auto outcome = story::run_scenario(
      file.value(), [&records](const story::Record& record) { records.push_back(record); });
  EXPECT_THAT(outcome.problems, IsEmpty());
  EXPECT_EQ(outcome.rewritten, text.value());
  Lab lab(visit);
  lab.run(milliseconds(4000));
  EXPECT_EQ(leaders(records), leaders(lab.take_records()));
  EXPECT_THAT(text.value(), HasSubstr("these lead one after another: node 3, 1."));
  // And back.
  const Result<AskedVisit> back = visit_of_scenario(file.value());
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_THAT(back.value().without, IsEmpty());
  EXPECT_EQ(back.value().visit.steps, visit.steps);
  EXPECT_EQ(back.value().visit.timing, visit.timing);
  EXPECT_EQ(back.value().until, milliseconds(4000));
}

TEST(ScenarioVisit, StepsThatNoScenarioCanSayAreRefusedWithTheReason) {
  EXPECT_THAT(refused("steps=1500.jump.1.300"), HasSubstr("1500.jump.1.300 has no counterpart"));
  EXPECT_THAT(refused("steps=1500.suspend.1.300"), HasSubstr("its machines do not sleep"));
  EXPECT_THAT(refused("steps=1500.read.1.log"), HasSubstr("by lease or by quorum"));
  EXPECT_THAT(refused("steps=1500.pause.1.300~1600.write.1"), HasSubstr("stands still"));
  EXPECT_THAT(refused("steps=1500.slow.1.300~1600.kill.1"), HasSubstr("what a crash loses"));
  EXPECT_THAT(refused("steps=1500.drop.1.999"), HasSubstr("it has sent"));
  EXPECT_THAT(refused("steps=1500.remove.1"), HasSubstr("its members stay the same"));
  EXPECT_THAT(refused("groups=2"), HasSubstr("two groups has no scenario file"));
  EXPECT_THAT(refused("spare=1"), HasSubstr("choose no spare nodes"));
  EXPECT_THAT(refused("known=1&steps=1500.kill.1"), HasSubstr("choose that ends are not known"));
  EXPECT_THAT(refused("", milliseconds(60'001)), HasSubstr("more than 60 s"));
  // What comes later does not matter.
  EXPECT_EQ(refused("steps=5001.jump.1.300"), "written");
}

/// A step on the first append of node 3 to node 1 that is under way behind 1500 ms.
std::string step_on_append(const std::string& verb, const std::string& more = "") {
  Lab lab(link("seed=7"));
  for (lab.run(milliseconds(1500)); lab.now() < milliseconds(1700);
       lab.run(lab.now() + milliseconds(1))) {
    for (const sim::SimNetwork::Flight& flight : lab.flights()) {
      if (flight.from != raft::NodeId(3) || flight.to != raft::NodeId(1)) continue;
      return std::to_string(lab.now() / milliseconds(1)) + "." + verb + ".3." +
             std::to_string(flight.number) + more;
    }
  }
  return "none is under way";
}

TEST(ScenarioVisit, AMessageThatIsDroppedIsWrittenByItsLinkAndType) {
  const std::string step = step_on_append("drop");
  const Visit visit = link("seed=7&steps=" + step);
  const Result<std::string> text = scenario_of_visit(visit, milliseconds(2500));
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_THAT(text.value(), HasSubstr("> drop 3->1 append\n"));
  const auto file = story::parse_scenario("written", text.value());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_THAT(story::run_scenario(file.value(), nullptr).problems, IsEmpty());
  EXPECT_THAT(refused("seed=7&steps=" + step_on_append("delay", ".50")),
              HasSubstr("the same time"));
  EXPECT_THAT(refused("seed=7&steps=" + step_on_append("twice", ".50")), HasSubstr("a copy"));
}

TEST(ScenarioVisit, AMessageThatAScenarioDropsIsFoundUnderWay) {
  // Without any load the same run as here, up to the step.
  const std::string group = "> nodes 3 seed=7 delay=15ms\n> run 415ms\n";
  const AskedVisit visit = asked(group + "> drop 3->1 append\n> run 500ms\n");
  EXPECT_THAT(visit.without, IsEmpty());
  ASSERT_EQ(visit.visit.steps.size(), 1U);
  EXPECT_EQ(visit.visit.steps[0].verb, Verb::drop);
  EXPECT_EQ(visit.visit.steps[0].node, raft::NodeId(3));
  Lab lab(visit.visit);
  lab.run(milliseconds(900));
  EXPECT_EQ(lab.refusal(), "");
  EXPECT_THAT(asked(group + "> drop 1->2 timeout_now\n").without,
              ElementsAre(HasSubstr("no such message is under way then")));
  EXPECT_THAT(asked(group + "> drop all\n").without,
              ElementsAre(HasSubstr("by its link and its type")));
}

TEST(ScenarioVisit, DrawnVisitsComeBackFromTheirScenario) {
  std::size_t written = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Visit visit = draw_visit(seed);
    visit.known_deaths = 0;
    const std::uint64_t founders = visit.nodes;
    visit.spare = 0;
    visit.groups = 1;
    for (Step& step : visit.steps) step.group = raft::GroupId(1);
    std::erase_if(visit.steps, [founders](const Step& step) {
      const bool members = step.verb == Verb::add || step.verb == Verb::promote ||
                           step.verb == Verb::remove || step.node.value() > founders;
      return members || step.at > milliseconds(6000) || step.verb == Verb::suspend ||
             step.mode == raft::ReadMode::log || step.verb == Verb::slow;
    });
    const Result<std::string> text = scenario_of_visit(visit, milliseconds(6000));
    if (!text) {
      EXPECT_THAT(text.error().message, HasSubstr("stands still")) << seed;
      continue;
    }
    ++written;
    const auto file = story::parse_scenario("written", text.value());
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_THAT(story::run_scenario(file.value(), nullptr).problems, IsEmpty()) << seed;
    const Result<AskedVisit> back = visit_of_scenario(file.value());
    ASSERT_TRUE(back.ok()) << seed << " " << back.error().message;
    EXPECT_THAT(back.value().without, IsEmpty()) << seed;
    EXPECT_EQ(back.value().visit.timing, visit.timing);
  }
  EXPECT_GT(written, 25U);
}

}  // namespace
}  // namespace leasehold::lab
