// The page and what it asks for: its policy, who may read it, and what it says.
#include <leasehold/server/admin/status_page.h>
#include <leasehold/tests/server/admin_rig.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <string_view>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::map<raft::NodeId, std::string> kAddresses = {{raft::NodeId(1), "127.0.0.1:7301"},
                                                        {raft::NodeId(2), "10.0.0.2:7301"}};

std::string header(const HttpAnswer& answer, std::string_view name) {
  for (const auto& [known, value] : answer.headers) {
    if (known == name) return value;
  }
  return {};
}

HttpAnswer ask(AdminRig& rig, const std::string& origin) {
  AdminOptions options;
  options.listen = "127.0.0.1:7301";
  options.data_dir = "/";
  options.addresses = kAddresses;
  AdminRoutes routes(options, true, *rig.groups, rig.state, rig.sources(), rig.counts);
  HttpRequest request;
  request.path = "/status.json";
  request.host = "localhost";
  request.origin = origin;
  return routes.answer(request, rig.look);
}

TEST(StatusPage, ItIsCompleteInItself) {
  const std::string page = kStatusPage;
  EXPECT_TRUE(page.starts_with("<!doctype html>\n"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  for (const char* outside : {"src=", "href=", "url(", "@import", "<link", "<iframe", "style=\""}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
  // What a node says becomes text, and never markup or code.
  for (const char* markup : {"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(",
                             "Function(", "onclick"}) {
    EXPECT_THAT(page, Not(HasSubstr(markup)));
  }
}

TEST(StatusPage, ItsPolicyLetsItsOwnScriptRunAndNothingElse) {
  const std::string policy = page_policy(kAddresses);
  EXPECT_THAT(policy, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy, Not(HasSubstr("*")));
  EXPECT_THAT(policy, HasSubstr("; connect-src 'self' http://127.0.0.1:7301 https://127.0.0.1:7301 "
                                "http://10.0.0.2:7301 https://10.0.0.2:7301; "));
  // 32 bytes are 43 digits and a fill.
  const std::size_t begin = policy.find("sha256-") + 7;
  EXPECT_EQ(policy.find("='", begin), begin + 43);
  AdminRig rig;
  const HttpAnswer answer = rig.get("/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.type, "text/html; charset=utf-8");
  EXPECT_EQ(header(answer, "Content-Security-Policy"), page_policy({}));
}

TEST(StatusPage, OnlyPagesOfKnownNodesMayReadTheStatus) {
  AdminRig rig;
  for (const char* known : {"http://10.0.0.2:7301", "https://10.0.0.2:7301"}) {
    EXPECT_EQ(header(ask(rig, known), "Access-Control-Allow-Origin"), known);
  }
  for (const char* other : {"", "null", "http://evil.example", "http://10.0.0.2:7301.evil.example",
                            "http://10.0.0.2", "ftp://10.0.0.2:7301", "*"}) {
    const HttpAnswer answer = ask(rig, other);
    EXPECT_EQ(header(answer, "Access-Control-Allow-Origin"), "") << other;
    EXPECT_EQ(header(answer, "Access-Control-Allow-Credentials"), "") << other;
    EXPECT_EQ(header(answer, "Vary"), "Origin");
  }
}

TEST(StatusReport, ALeaderTellsOfItsLeaseAndItsMembers) {
  AdminRig rig;
  rig.look.statuses[0].members[1].heard_ago = std::chrono::milliseconds(40);
  rig.events.note_lease(1, raft::Term(7), true);
  const auto json = nlohmann::json::parse(ask(rig, "").body);
  EXPECT_EQ(json.at("node"), 1);
  EXPECT_EQ(json.at("role"), "leader");
  EXPECT_EQ(json.at("term"), 7);
  EXPECT_EQ(json.at("lease_left_ms"), 750);
  EXPECT_EQ(json.at("promise_left_ms"), 0);
  EXPECT_EQ(json.at("unmet"), nlohmann::json::array());
  EXPECT_EQ(json.at("members")[1].at("behind"), 10);
  EXPECT_EQ(json.at("members")[1].at("heard_ago_ms"), 40);
  EXPECT_EQ(json.at("members")[1].at("admin"), "10.0.0.2:7301");
  EXPECT_EQ(json.at("members")[2].at("admin"), "");
  EXPECT_FALSE(json.at("members")[2].contains("heard_ago_ms"));
  EXPECT_TRUE(json.at("members")[0].contains("behind")) << "what it has itself is known";
  EXPECT_FALSE(json.at("members")[2].contains("behind")) << "not heard since this leader leads";
  EXPECT_EQ(json.at("events")[0].at("text"), "holds the lease");
}

TEST(StatusReport, AFollowerTellsOfItsPromise) {
  AdminRig rig;
  node::NodeStatus& status = rig.look.statuses[0];
  status.role = raft::Role::follower;
  status.lease_left = lease::Duration(0);
  status.promise_left = std::chrono::microseconds(900'500);
  status.promise_to = raft::NodeId(3);
  const auto json = nlohmann::json::parse(ask(rig, "").body);
  EXPECT_EQ(json.at("promise_left_ms"), 900.5);
  EXPECT_EQ(json.at("promise_to"), 3);
  EXPECT_FALSE(json.at("members")[1].contains("behind"));
}

TEST(StatusReport, ThreadsThatStandStillLeaveTheRestOfTheReport) {
  AdminRig rig;
  rig.look = {};
  const auto json = nlohmann::json::parse(ask(rig, "").body);
  EXPECT_FALSE(json.contains("term"));
  EXPECT_EQ(json.at("unmet")[0].at("name"), "answers");
}

TEST(StatusReport, ItIsOfOneGroupThatIsThere) {
  AdminRig rig(3);
  rig.look.statuses[1].term = raft::Term(9);
  EXPECT_EQ(nlohmann::json::parse(rig.get("/status.json?group=2").body).at("term"), 9);
  EXPECT_EQ(nlohmann::json::parse(rig.get("/status.json").body).at("term"), 7);
  for (const char* none : {"0", "4", "1,2", "all", "x"}) {
    EXPECT_EQ(rig.get("/status.json?group=" + std::string(none)).status, 404) << none;
  }
}

TEST(StatusReport, BytesOfAnAddressThatAreNoTextAreReplaced) {
  AdminRig rig;
  rig.look.statuses[0].members[1].address = "\xff\"<script>";
  const std::string body = ask(rig, "").body;
  EXPECT_EQ(nlohmann::json::parse(body).at("members")[1].at("address"), "\xef\xbf\xbd\"<script>");
}

}  // namespace
}  // namespace leasehold::server
