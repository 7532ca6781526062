// What people see: tables, colours, and the sentence that says what a node waits for.
#include <leasehold/cli/manual.h>
#include <leasehold/cli/nearest_word.h>
#include <leasehold/cli/status_command.h>
#include <leasehold/server/start_watch.h>
#include <leasehold/tests/server/fake_node.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <string>
#include <vector>

namespace leasehold::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

node::NodeStatus three_members() {
  node::NodeStatus status;
  status.id = raft::NodeId(1);
  status.formed = true;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    status.members.push_back(
        {raft::NodeId(i), "host" + std::to_string(i) + ":7", true, i == 1, {}});
  }
  return status;
}

TEST(WaitingText, NamesTheMembersThatHaveNotConfirmed) {
  node::NodeStatus status = three_members();
  status.formed = false;
  status.missing = {raft::NodeId(1), raft::NodeId(2), raft::NodeId(3)};
  status.members[1].connected = true;
  EXPECT_EQ(server::waiting_text(status),
            "waiting for members 2 (host2:7, connected) and 3 (host3:7, not reached) to confirm "
            "the group; every member is started with the same --peers and --cluster");
  status.missing = {raft::NodeId(3)};
  EXPECT_THAT(server::waiting_text(status), HasSubstr("waiting for member 3 (host3:7"));
  status.problem = "refused node 3";
  EXPECT_THAT(server::waiting_text(status), HasSubstr("The last refusal: refused node 3"));
  status.missing = {raft::NodeId(1)};
  EXPECT_EQ(server::waiting_text(status), "") << "nobody waits for himself";
}

TEST(WaitingText, CountsTheVotersThatALeaderNeeds) {
  node::NodeStatus status = three_members();
  EXPECT_EQ(server::waiting_text(status),
            "no leader: 1 of 3 voters reached, 2 are needed; start or connect 2 (host2:7, not "
            "reached) and 3 (host3:7, not reached)");
  status.members[2].connected = true;
  EXPECT_THAT(server::waiting_text(status), HasSubstr("an election is under way"));
  status.leader = raft::NodeId(3);
  EXPECT_EQ(server::waiting_text(status), "");
}

// It was said by the next look, when the group had formed meanwhile and the log said so.
TEST(StartWatchTest, DescribesTheStateWhenTheNodeAnswers) {
  std::string log;
  server::FakeNode node;
  std::atomic<bool> leader_known = false;
  server::StartWatch watch(node, leader_known, [&log](const std::string& text) { log += text; });
  node::NodeStatus status = three_members();
  status.formed = false;
  status.missing = {raft::NodeId(3)};
  watch.look();
  node.end_status(status);
  EXPECT_THAT(log, HasSubstr("waiting for member 3"));
  log.clear();
  watch.look();
  status.formed = true;
  node.end_status(status);
  watch.look();
  node.end_status(status);
  EXPECT_EQ(log, "");
}

TEST(NearestWord, IsNamedForASlip) {
  const std::vector<std::string> known = {"serve", "status", "get", "put", "del", "restore"};
  EXPECT_EQ(did_you_mean("stauts", known), "; did you mean status?");
  EXPECT_EQ(did_you_mean("statu", known), "; did you mean status?");
  EXPECT_EQ(did_you_mean("servee", known), "; did you mean serve?");
  EXPECT_EQ(did_you_mean("gte", known), "; did you mean get?");
  EXPECT_EQ(did_you_mean("x", known), "");
  EXPECT_EQ(did_you_mean("frobnicate", known), "");
  EXPECT_EQ(did_you_mean(std::string(100000, 's'), known), "");
  EXPECT_EQ(edits_between("", "abc"), 3U);
  EXPECT_EQ(edits_between("ab", "ba"), 1U);
}

TEST(StatusTable, IsAlignedWithAndWithoutColours) {
  ClusterStatus status;
  status.nodes.push_back({{"server", "a:1"},
                          {"id", 1},
                          {"role", "leader"},
                          {"term", 3},
                          {"leader", 1},
                          {"commit", 10},
                          {"applied", 10},
                          {"lease_left", 750.2},
                          {"formed", true},
                          {"members", nlohmann::ordered_json::array()}});
  status.nodes.push_back({{"server", "b:22"}, {"error", "out of reach"}});
  EXPECT_THAT(
      status_table(status, false),
      ElementsAre(
          "server  id  role         term  leader  commit  applied  lease left  members",
          "a:1     1   leader       3     1       10      10       750 ms",
          "b:22    -   unreachable  -     -       -       -        -           out of reach"));
  const auto painted_lines = status_table(status, true);
  EXPECT_EQ(painted_lines[1].substr(0, 8), "\x1b[32ma:1");
  EXPECT_EQ(painted_lines[2].substr(0, 8), "\x1b[31mb:2");
}

TEST(Terminal, PaintsOnlyWhenItMay) {
  EXPECT_EQ(server::painted("x", server::Paint::red, true), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(server::painted("x", server::Paint::red, false), "x");
  EXPECT_EQ(server::painted("x", server::Paint::plain, true), "x");
  EXPECT_TRUE(server::use_color(server::Color::always, -1));
  EXPECT_FALSE(server::use_color(server::Color::never, 1));
  EXPECT_FALSE(server::use_color(server::Color::automatic, -1)) << "no terminal";
}

TEST(Manual, FlagsOfAUsageText) {
  const auto flags = flags_of_usage(
      "usage: x [options]\n  --seed N   the seed\n             goes on --here\n  --quiet  says "
      "nothing\n  --help     this\n");
  ASSERT_EQ(flags.size(), 2U);
  EXPECT_EQ(flags[0].name, "--seed");
  EXPECT_EQ(flags[0].value, "N");
  EXPECT_EQ(flags[0].help, "the seed");
  EXPECT_EQ(flags[1].name, "--quiet");
  EXPECT_EQ(flags[1].value, "");
}

TEST(Manual, LinesThatLookLikeRequestsAreText) {
  const std::string page = man_page(
      {{"x", "does x", {{"--flag", "V", ".starts with a dot", "", {}, false}}, ".end"}}, "1.0");
  EXPECT_THAT(page, HasSubstr("\n\\&.starts with a dot"));
  EXPECT_THAT(page, HasSubstr("\n\\&.end"));
}

}  // namespace
}  // namespace leasehold::cli
