// A server of two groups: what it refuses while it knows too little of one of them.
#include <leasehold/tests/server/groups_fixture.h>

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(SessionGroups, ReadsInAllGroupsWaitForTheUsersAfterTheStart) {
  second_.grant_lease(std::chrono::hours(1));
  state_.users_known = false;
  const std::vector<std::vector<std::string>> commands = {
      {"GET", "foo"},
      {"KEYS", "*"},
      {"LEASEHOLD", "READ", "lease", "GET", "foo"},
      {"WATCH", "foo"}};
  for (const auto& words : commands) {
    EXPECT_EQ(send(words), "") << words[0];
    ASSERT_EQ(node_.reads(), 1U) << "the users are asked for";
    node_.end_read({});
    EXPECT_THAT(pump(), StartsWith("-NOLEADER")) << words[0];
  }
  EXPECT_EQ(send({"GET", "foo"}), "");
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "$-1\r\n");
  EXPECT_EQ(second_.reads(), 0U);
  EXPECT_EQ(feed("MULTI\r\nSET foo v\r\n"), "+OK\r\n+QUEUED\r\n");
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT")) << "its WATCH was refused";
}

TEST_F(SessionGroups, WhatWaitedForTheUsersInVainIsMissingInTheTransaction) {
  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  state_.users_known = false;
  EXPECT_EQ(send({"SET", "foo", "v"}), "");
  node_.end_read({});
  EXPECT_THAT(pump(), StartsWith("-NOLEADER"));
  state_.users_known = true;
  EXPECT_EQ(send({"SET", "foo", "w"}), "+QUEUED\r\n");
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));
}

TEST_F(SessionGroups, AnExecThatIsRefusedEndsTheTransaction) {
  node_.grant_lease(std::chrono::hours(1));
  for (const bool wrong : {true, false}) {
    EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
    EXPECT_EQ(send({"SET", "bar", "v"}), "+QUEUED\r\n");
    state_.users_known = wrong;
    if (wrong) {
      EXPECT_THAT(send({"EXEC", "x"}), StartsWith("-ERR wrong number"));
    } else {
      EXPECT_EQ(send({"EXEC"}), "");
      node_.end_read({});
      EXPECT_THAT(pump(), StartsWith("-NOLEADER"));
    }
    state_.users_known = true;
    EXPECT_EQ(send({"GET", "bar"}), "$-1\r\n");
    EXPECT_THAT(send({"EXEC"}), StartsWith("-ERR EXEC without MULTI"));
  }
  EXPECT_EQ(node_.proposals(), 0U);
}

TEST_F(SessionGroups, AGroupIsNotServedWithoutTheUsers) {
  node_.health().set_refused("its disk lies");
  for (const bool known : {true, false}) {
    state_.users_known = known;
    for (const char* command : {"GET foo", "SET foo v", "KEYS *", "SUBSCRIBE __keyspace@0__:foo",
                                "LEASEHOLD WATCH KEY foo"}) {
      // A subscriber waits for the users at first.
      std::string reply = feed(std::string(command) + "\r\n");
      if (node_.reads() > 0) {
        node_.end_read({});
        reply = pump();
      }
      EXPECT_THAT(reply, AllOf(StartsWith("-TRYAGAIN"), HasSubstr("of group 1"))) << command;
    }
    EXPECT_EQ(send({"LEASEHOLD", "GROUP", "2"}), "+OK\r\n");
    EXPECT_THAT(send({"LEASE.RENEW", "1"}), StartsWith("-TRYAGAIN"));
    EXPECT_EQ(send({"LEASEHOLD", "GROUP", "1"}), "+OK\r\n");
  }
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
}

TEST_F(SessionGroups, WhatIsOfAllGroupsIsRefusedIfOneOfThemIs) {
  for (FakeNode* node : {&node_, &second_}) node->grant_lease(std::chrono::hours(1));
  second_.health().set_refused("its disk lies");
  for (const char* command : {"KEYS *", "DBSIZE", "RANDOMKEY", "SUBSCRIBE __keyspace@0__:bar",
                              "PSUBSCRIBE __keyspace*"}) {
    EXPECT_THAT(feed(std::string(command) + "\r\n"),
                AllOf(StartsWith("-TRYAGAIN"), HasSubstr("of group 2")))
        << command;
  }
  EXPECT_EQ(send({"GET", "bar"}), "$-1\r\n");
  second_.health().set_refused("");
  EXPECT_EQ(send({"DBSIZE"}), ":0\r\n");
  node_.commit_ahead(1);
  EXPECT_EQ(send({"DBSIZE"}), "") << "the first group has not applied everything";
  second_.health().set_refused("its disk lies");
  node_.end_wait(node_.granted(raft::ReadBasis::lease));
  EXPECT_THAT(pump(), AllOf(StartsWith("-TRYAGAIN"), HasSubstr("of group 2")));
}

}  // namespace
}  // namespace leasehold::server
