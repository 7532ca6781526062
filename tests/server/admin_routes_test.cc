// What the admin port answers, without a socket.
#include <leasehold/server/admin/readiness.h>
#include <leasehold/tests/server/admin_rig.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// The conditions of /readyz that are not met.
std::vector<std::string> unmet(AdminRig& rig, int expected_status) {
  const HttpAnswer answer = rig.get("/readyz");
  EXPECT_EQ(answer.status, expected_status);
  const auto json = nlohmann::json::parse(answer.body);
  EXPECT_EQ(json.at("ready").get<bool>(), expected_status == 200);
  std::vector<std::string> names;
  for (const auto& condition : json.at("conditions")) {
    if (condition.at("met").get<bool>()) {
      EXPECT_EQ(condition.at("detail"), "");
    } else {
      EXPECT_NE(condition.at("detail"), "");
      names.push_back(condition.at("name"));
    }
  }
  return names;
}

TEST(AdminRoutes, ANodeThatServesIsReady) {
  AdminRig rig;
  EXPECT_EQ(unmet(rig, 200), std::vector<std::string>{});
}

TEST(AdminRoutes, WhatKeepsANodeFromServingIsNamed) {
  AdminRig rig(3);
  rig.look.statuses[1].leader = raft::kNobody;
  EXPECT_EQ(unmet(rig, 503), std::vector<std::string>{"leader_known"});
  EXPECT_THAT(rig.get("/readyz").body,
              HasSubstr("no leader is known in 1 of 3 groups, the first is 2"));
  rig.look.statuses[0].formed = false;
  EXPECT_EQ(unmet(rig, 503), (std::vector<std::string>{"formed", "leader_known"}));
  rig.look.statuses.assign(3, leading_status());
  rig.look.statuses[2].disk_full = true;
  EXPECT_EQ(unmet(rig, 503), std::vector<std::string>{"disk_space"});
  rig.look.statuses.assign(3, leading_status());
  rig.nodes[2]->health().set_refused("damaged");
  EXPECT_EQ(unmet(rig, 503), std::vector<std::string>{"state_sound"});
}

TEST(AdminRoutes, AGroupThatIsElsewhereDoesNotCount) {
  GroupPlace place(false, {raft::NodeId(2)});
  AdminRig rig(3, true, {}, &place);
  rig.look.statuses[2] = {};
  EXPECT_EQ(unmet(rig, 200), std::vector<std::string>{});
  EXPECT_THAT(rig.get("/metrics").body, AllOf(HasSubstr("\nleasehold_groups 2\n"),
                                              HasSubstr("\nleasehold_groups_unformed 0\n"),
                                              HasSubstr("\nleasehold_groups_without_leader 0\n")));
  place.set_here(true);
  EXPECT_EQ(unmet(rig, 503), (std::vector<std::string>{"formed", "leader_known"}));
}

TEST(AdminRoutes, AThousandEntriesBehindIsStillReady) {
  AdminRig rig;
  rig.look.statuses[0].commit = raft::Index(40 + kReadyLagMax);
  EXPECT_EQ(unmet(rig, 200), std::vector<std::string>{});
  rig.look.statuses[0].commit = raft::Index(41 + kReadyLagMax);
  EXPECT_EQ(unmet(rig, 503), std::vector<std::string>{"caught_up"});
}

TEST(AdminRoutes, ANodeThatDrainsIsAliveAndNotReady) {
  AdminRig rig;
  rig.state.draining = true;
  EXPECT_EQ(unmet(rig, 503), std::vector<std::string>{"not_draining"});
  EXPECT_EQ(rig.get("/healthz").status, 200);
  EXPECT_THAT(rig.get("/metrics").body, HasSubstr("\nleasehold_draining 1\n"));
}

TEST(AdminRoutes, ANodeWhoseThreadsStandStillIsNotAlive) {
  AdminRig rig;
  rig.look = {};
  EXPECT_EQ(rig.get("/healthz").status, 503);
  EXPECT_EQ(unmet(rig, 503), std::vector<std::string>{"answers"});
  const std::string page = rig.get("/metrics").body;
  EXPECT_THAT(page, HasSubstr("\nleasehold_groups_answer 0\n"));
  // What is not known is left out, and not 0.
  EXPECT_THAT(page, Not(HasSubstr("\nleasehold_raft_term{")));
  EXPECT_THAT(page, Not(HasSubstr("\nleasehold_groups_led ")));
  EXPECT_THAT(page, Not(HasSubstr("\nleasehold_proposals_total ")));
}

TEST(AdminRoutes, APageOfTheWebDoesNotReachANodeByANameOfItsOwn) {
  AdminRig rig;
  for (const char* good :
       {"", "localhost", "LocalHost:7301", "127.0.0.1:80", "[::1]:7301", "10.1.2.3"}) {
    EXPECT_EQ(rig.get("/metrics", good).status, 200) << good;
  }
  for (const char* bad : {"evil.example:7301", "localhost.evil.example",
                          "127.0.0.1.evil.example:7301", "[evil", ":", "[]", "a b"}) {
    EXPECT_EQ(rig.get("/metrics", bad).status, 421) << bad;
    EXPECT_EQ(rig.get("/", bad).status, 421) << bad;
  }
  EXPECT_EQ(rig.counts.foreign, 14U);
  // Beyond loopback a node has a name that it does not know.
  AdminRig beyond(1, false);
  EXPECT_EQ(beyond.get("/metrics", "node1.example:7301").status, 200);
}

TEST(AdminRoutes, WhatIsNotThereIsNotFoundAndSaysWhatIs) {
  AdminRig rig;
  for (const char* path : {"/metrics/", "/Metrics", "//metrics", "/../metrics", "/x"}) {
    const HttpAnswer answer = rig.get(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_THAT(answer.body, HasSubstr("/readyz"));
    EXPECT_THAT(answer.body, Not(HasSubstr("//")));
  }
}

}  // namespace
}  // namespace leasehold::server
