// Nodes with replicas of two groups, whose promises rest on the same beats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leasehold/story/scenario.h>
#include <leasehold/story/timeline.h>
#include <leasehold/story/trace_file.h>

#include <string>
#include <vector>

namespace leasehold::story {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Told {
  std::string output;   ///< each command, and below it what it prints
  std::string problem;  ///< why the last command was refused; empty: it was not
  std::vector<Record> records;
};

Told told_of(const std::string& commands) {
  const Result<ScenarioFile> file = parse_scenario("a", "# T\nSource: x\n" + commands);
  Told told;
  if (!file) {
    told.problem = file.error().message;
    return told;
  }
  const ScenarioOutcome outcome =
      run_scenario(file.value(), [&told](const Record& r) { told.records.push_back(r); });
  told.output = outcome.rewritten;
  if (outcome.failed) told.problem = outcome.problems.back();
  return told;
}

/// What the last command prints.
std::string last_output(const std::string& commands) {
  const Told told = told_of(commands);
  EXPECT_EQ(told.problem, "");
  return told.output.substr(told.output.rfind("\n> ") + 1);
}

const std::string kNodes =
    "> nodes 3 shared groups=2 lease=1s heartbeat=100ms election=50ms drift=10%\n";
/// Node 1 leads both groups, and all promises are bound.
const std::string kBound =
    kNodes + "> beat 1\n> settle\n> campaign 1\n> settle\n> campaign 1b\n> settle\n";
/// As kBound, but those of the second group are bound to nothing.
const std::string kHalfBound =
    kNodes + "> campaign 1b\n> settle\n> beat 1\n> settle\n> campaign 1\n> settle\n";

TEST(ScenarioGroups, AReplicaIsCalledByItsNodeAndALetter) {
  EXPECT_THAT(last_output(kBound + "> show state\n"),
              AllOf(HasSubstr("node 1: leader, term 1, vote 1 committed"),
                    HasSubstr("node 1b: leader, term 1, vote 1b committed"),
                    HasSubstr("node 3b: follower, term 1, vote 1b committed")));
  EXPECT_EQ(told_of(kBound + "> expect 2b promise 1b live\n> expect 3 promise 1 live\n").problem,
            "");
  const std::string three = "> nodes 2 shared groups=3\n> ";
  EXPECT_THAT(last_output(three + "show lease 2 2c\n"), HasSubstr("node 2: none\n  node 2c: none"));
}

TEST(ScenarioGroups, AWrongReplicaSaysWhichThereAre) {
  EXPECT_THAT(told_of("> nodes 3 groups=2\n").problem, HasSubstr("`nodes N shared groups=2`"));
  EXPECT_THAT(told_of("> nodes 3 shared groups=4\n").problem, HasSubstr("1 to 3 groups"));
  EXPECT_THAT(told_of("> nodes 3 shared groups=0\n").problem, HasSubstr("1 to 3 groups"));
  EXPECT_THAT(told_of("> nodes 3 shared\n> campaign 1b\n").problem,
              HasSubstr("`1b` is not a node; allowed: 1 to 3"));
  for (const char* const wrong : {"1c", "1a", "4b", "b", "1bb", "1B", "1-"}) {
    EXPECT_THAT(told_of(kNodes + "> campaign " + wrong + "\n").problem,
                AllOf(HasSubstr(wrong), HasSubstr("allowed: 1 to 3, and 1b to 3b")));
  }
  EXPECT_THAT(told_of(kNodes + "> crash 1b\n").problem, HasSubstr("allowed: 1 to 3"));
  EXPECT_THAT(told_of(kNodes + "> crash 1\n> tick 1b\n").problem,
              HasSubstr("`restart 1` starts it"));
  EXPECT_THAT(told_of(kBound + "> transfer 1b 2\n").problem,
              HasSubstr("2 is of another group than 1b"));
  EXPECT_THAT(told_of(kBound + "> cut 1b-2b\n").problem, HasSubstr("a link is of all groups"));
  EXPECT_THAT(told_of(kBound + "> deliver 1->2b\n").problem, HasSubstr("between two groups"));
  EXPECT_THAT(told_of(kBound + "> forge 1b->2 vote term=2\n").problem, HasSubstr("is not a link"));
}

TEST(ScenarioGroups, ALinkNamesTheMessagesOfOneGroup) {
  const std::string sent = kBound + "> advance 100ms\n> beat 1\n> propose 1 a\n> propose 1b b\n";
  const auto left = [&sent](const std::string& command) {
    return last_output(sent + "> " + command + "\n> show messages\n");
  };
  EXPECT_THAT(left("drop 1b->2b"), AllOf(HasSubstr("1->2 beat"), HasSubstr("1->2 append"),
                                         Not(HasSubstr("1b->2b")), HasSubstr("1b->3b append")));
  EXPECT_THAT(left("drop *->2b"), AllOf(HasSubstr("1->2 append"), Not(HasSubstr("1b->2b"))));
  // What goes between the processes is on the links of the first group.
  EXPECT_THAT(left("drop 1->2"), AllOf(Not(HasSubstr("1->2 ")), HasSubstr("1b->2b append")));
  EXPECT_THAT(left("drop append"), AllOf(Not(HasSubstr("append")), HasSubstr("1->3 beat")));
}

// Mutant: an unbound group lets go. Node 2 still rests on the process of node 1, so node 3 does not
// lead beside that.
TEST(ScenarioGroups, ACampaignInOneGroupEndsNoPromiseOfAnother) {
  const std::string lapsed = kHalfBound +
                             "> cut 1-3\n> advance 500ms\n> beat 1\n> settle\n> advance 600ms\n"
                             "> beat 1\n> settle\n> expect 2b promise 1b ended\n";
  const std::string rests = "> campaign 2b\n> settle\n> expect 2b role leader\n> show promise 2\n";
  EXPECT_THAT(last_output(lapsed + rests), HasSubstr("epoch 1.0, until 2200ms"));
  EXPECT_EQ(told_of(lapsed + rests + "> campaign 3\n> settle\n> expect 1 lease valid\n").problem,
            "");
}

// Both rest on the end of one support. The first that relies on it makes a new epoch, which ends
// nothing that lives.
TEST(ScenarioGroups, OneEpochServesBothGroups) {
  const std::string silent =
      kBound + "> isolate 1\n> campaign 2b\n> settle\n> expect 2b role leader\n";
  EXPECT_EQ(told_of(silent + "> expect 2 promise 1 ended\n").problem, "");
  const std::string heard = "> heal\n> beat 1\n> deliver beat\n> show messages\n";
  EXPECT_THAT(last_output(silent + heard), HasSubstr("2->1 beat_reply: beat 2, epoch 1.1"));
}

TEST(ScenarioGroups, AReleaseEndsThePromisesOfItsGroup) {
  const std::string moved = kBound + "> transfer 1b 2b\n> deliver timeout_now\n> deliver vote\n" +
                            "> drop append vote_reply\n> advance 100ms\n> beat 1\n";
  const Told told =
      told_of(moved + "> settle\n> expect 3b promise none\n> expect 3 promise 1 live\n");
  EXPECT_EQ(told.problem, "");
  EXPECT_THAT(told.output, HasSubstr("1->3 #"));
  EXPECT_THAT(told.output, HasSubstr(", leads group 2 no more in term 1"));
  EXPECT_THAT(told.output, HasSubstr("node 3b's promise to node 1b is void: the leader has left"));
}

TEST(ScenarioGroups, AProcessEndsWithAllItsReplicas) {
  const Told told =
      told_of(kBound + "> disk 2 stall\n> propose 1 a\n> propose 1b b\n> deliver append\n" +
              "> restart 2\n> show log 2 2b\n> show promise 2 2b\n> show lease 1b\n");
  EXPECT_EQ(told.problem, "");
  EXPECT_THAT(told.output, HasSubstr("node 2: 1:-\n  node 2b: 1:-\n"));
  EXPECT_THAT(told.output, HasSubstr("node 2: to node 1, term 1, until 1200ms, remembers 1000ms\n"
                                     "  node 2b: to node 1b, term 1, until 1200ms, remembers"));
}

// The oracle looks at each group by itself: leaders of two groups are no fault.
TEST(ScenarioGroups, TwoLeasesOfOneGroupEndAScenario) {
  EXPECT_EQ(told_of(kNodes + "> campaign 1\n> settle\n> campaign 2b\n> settle\n"
                             "> expect 1 lease valid\n> expect 2b lease valid\n")
                .problem,
            "");
  EXPECT_THAT(told_of(kNodes + "> campaign 1b\n> settle\n> run 200ms\n> drift 1 -60% beyond\n"
                               "> isolate 1\n> run 3s\n")
                  .problem,
              HasSubstr("node 1b and node 3b both hold a valid lease"));
  EXPECT_THAT(told_of(kNodes + "> forge 1b->2b append term=5\n> restart 2\n"
                               "> forge 3b->2b append term=5\n")
                  .problem,
              HasSubstr("node 1b and node 3b both lead term 5"));
}

TEST(ScenarioGroups, AHistoryIsOfOneGroup) {
  const std::string preset = kNodes + "> preset 1b term=7 log=1,1,6\n";
  EXPECT_EQ(told_of(preset + "> preset 2 term=6 log=1,2,6\n> expect 1b log 1 1 6\n").problem, "");
  EXPECT_EQ(told_of(preset + "> expect 1 log empty\n> expect 1b term 7\n").problem, "");
  EXPECT_THAT(told_of(preset + "> preset 2b term=6 log=1,2,6\n").problem,
              HasSubstr("node 1b has an entry of this log"));
}

TEST(ScenarioGroups, ATraceAndAPictureKeepThemApart) {
  const std::vector<Record> records = told_of(kBound + "> run 300ms\n").records;
  std::size_t of_second = 0;
  for (const Record& record : records) {
    const Result<Record> again = decode_record(encode_record(record));
    ASSERT_TRUE(again.ok()) << encode_record(record) << again.error().message;
    EXPECT_EQ(again.value(), record);
    if (record.group == GroupId(2)) ++of_second;
  }
  EXPECT_GT(of_second, 20U);
  const Result<Timeline> timeline = make_timeline(records, {});
  ASSERT_TRUE(timeline.ok());
  ASSERT_EQ(timeline.value().lanes.size(), 6U);
  for (const std::size_t lane : {std::size_t{0}, std::size_t{1}}) {
    EXPECT_EQ(timeline.value().lanes[lane].node, NodeId(1));
    EXPECT_EQ(timeline.value().lanes[lane].leases.size(), 1U);
  }
  const std::string picture = draw_timeline(timeline.value(), {});
  EXPECT_THAT(picture, AllOf(HasSubstr(">node 1</text>"), HasSubstr(">node 3b</text>"),
                             HasSubstr("promise to 1b until")));
}

TEST(ScenarioGroups, APictureHasABoundedNumberOfLanes) {
  std::vector<Record> records = told_of(kBound).records;
  records.back().group = GroupId(1'000'000'000'000);
  const Result<Timeline> timeline = make_timeline(records, {});
  ASSERT_FALSE(timeline.ok());
  EXPECT_THAT(timeline.error().message, HasSubstr("at most 64 lanes"));
}

}  // namespace
}  // namespace leasehold::story
