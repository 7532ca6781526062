#include <leasehold/bench/load/layout.h>
#include <leasehold/bench/load/options.h>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace leasehold::bench {
namespace {

LoadOptions usable() {
  LoadOptions options;
  options.servers = {"a:1"};
  return options;
}

std::string refusal_of(LoadOptions options) {
  const auto settled = settle(options);
  return settled ? "" : settled.error().message;
}

TEST(LoadOptions, AmountsHaveUnits) {
  EXPECT_EQ(parse_amount("512").value(), 512U);
  EXPECT_EQ(parse_amount("16k").value(), 16U << 10U);
  EXPECT_EQ(parse_amount("1M").value(), 1U << 20U);
  for (const char* text : {"", "k", "-1", "1G", "1 k", "99999999999999999999", "0x10"}) {
    EXPECT_FALSE(parse_amount(text).ok()) << text;
  }
}

TEST(LoadOptions, ReadModesChooseTheRoute) {
  LoadOptions options = usable();
  ASSERT_TRUE(take_read_mode("follower", options).ok());
  EXPECT_EQ(options.read_mode, "lease");
  EXPECT_EQ(options.route, Route::follower);
  ASSERT_TRUE(take_read_mode("stale=500ms", options).ok());
  EXPECT_EQ(options.read_mode, "stale 500ms");
  EXPECT_EQ(options.route, Route::any);
  ASSERT_TRUE(take_read_mode("quorum", options).ok());
  EXPECT_EQ(options.read_mode, "quorum");
  EXPECT_EQ(options.route, Route::leader);
  for (const char* text : {"", "stale", "stale=", "lease=1s", "fast"}) {
    EXPECT_FALSE(take_read_mode(text, options).ok()) << text;
  }
}

TEST(LoadOptions, ARouteCountsMoreThanThatOfTheReadMode) {
  for (const bool route_first : {true, false}) {
    LoadOptions options = usable();
    if (route_first) {
      ASSERT_TRUE(take_route("any", options).ok());
    }
    ASSERT_TRUE(take_read_mode("quorum", options).ok());
    if (!route_first) {
      ASSERT_TRUE(take_route("any", options).ok());
    }
    ASSERT_TRUE(settle(options).ok());
    EXPECT_EQ(options.route, Route::any);
  }
  LoadOptions options = usable();
  EXPECT_FALSE(take_route("nowhere", options).ok());
}

TEST(LoadOptions, WhatIsLeftOpenIsSet) {
  LoadOptions options = usable();
  ASSERT_TRUE(settle(options).ok());
  EXPECT_EQ(options.workload, "get");
  EXPECT_EQ(options.keys, 100'000U);
  EXPECT_EQ(options.connections, 1U);
  EXPECT_EQ(options.in_flight, 1U);
  EXPECT_EQ(options.duration_s, 10);
  EXPECT_EQ(options.warm_up_s, 2);
  EXPECT_TRUE(options.load);
}

TEST(LoadOptions, ASmokeRunIsShortUnlessTheUserSaysOtherwise) {
  LoadOptions options = usable();
  options.smoke = true;
  options.keys = 7;
  ASSERT_TRUE(settle(options).ok());
  EXPECT_EQ(options.workload, "ycsb-a");
  EXPECT_EQ(options.keys, 7U);
  EXPECT_EQ(options.duration_s, 2);
}

TEST(LoadOptions, LargeValuesHaveFewerKeys) {
  LoadOptions options = usable();
  options.value_bytes = kValueBytesMax;
  ASSERT_TRUE(settle(options).ok());
  EXPECT_EQ(options.keys, 256U);
}

TEST(LoadOptions, PureWritesLoadNothingFirst) {
  LoadOptions options = usable();
  ASSERT_TRUE(take_workload("set", options).ok());
  ASSERT_TRUE(settle(options).ok());
  EXPECT_FALSE(options.load);
}

TEST(LoadOptions, TwoOfConnectionsPipelineAndInFlightGiveTheThird) {
  struct Case {
    std::uint64_t connections, pipeline, in_flight;  // as given
    std::uint64_t settled_connections, settled_in_flight;
  };
  const Case cases[] = {
      {0, 0, 0, 1, 1},        {64, 0, 0, 64, 64},   {16, 32, 0, 16, 512}, {0, 0, 512, 64, 512},
      {0, 0, 4, 4, 4},        {0, 8, 512, 64, 512}, {8, 0, 512, 8, 512},  {16, 32, 512, 16, 512},
      {0, 0, 4096, 64, 4096}, {100, 0, 10, 10, 10},
  };
  for (const Case& one : cases) {
    LoadOptions options = usable();
    options.connections = one.connections;
    options.pipeline = one.pipeline;
    options.in_flight = one.in_flight;
    ASSERT_TRUE(settle(options).ok()) << one.connections << " " << one.pipeline;
    EXPECT_EQ(options.connections, one.settled_connections);
    EXPECT_EQ(options.in_flight, one.settled_in_flight);
  }
}

TEST(LoadOptions, WhatDoesNotFitIsRefusedByName) {
  const auto with = [](const auto& change) {
    LoadOptions options = usable();
    change(options);
    return refusal_of(options);
  };
  const auto names = [](const std::string& refusal, std::string_view name) {
    return refusal.find(name) != std::string::npos;
  };
  EXPECT_TRUE(names(with([](auto& o) { o.servers.clear(); }), "--servers"));
  EXPECT_TRUE(names(with([](auto& o) { o.value_bytes = 15; }), "--value-size"));
  EXPECT_TRUE(names(with([](auto& o) { o.value_bytes = kValueBytesMax + 1; }), "--value-size"));
  EXPECT_TRUE(names(with([](auto& o) { o.in_flight = 4097; }), "--in-flight"));
  EXPECT_TRUE(names(with([](auto& o) { o.connections = 4096, o.pipeline = 2; }), "--pipeline"));
  EXPECT_TRUE(names(with([](auto& o) { o.connections = 2, o.pipeline = 2, o.in_flight = 5; }),
                    "leave one of the three out"));
  EXPECT_TRUE(names(with([](auto& o) { o.rate = 10, o.pipeline = 2; }), "--pipeline"));
  EXPECT_TRUE(names(with([](auto& o) { o.in_flight = 4096, o.value_bytes = kValueBytesMax; }),
                    "4096 MiB of memory"));
  EXPECT_TRUE(names(with([](auto& o) { o.duration_s = -1; }), "--duration"));
}

// An open loop has no window of its own: large values lower the bound of what is under way.
TEST(LoadOptions, EtcdHasReadModesOfItsOwnAndNoLogin) {
  LoadOptions options = usable();
  options.etcd = true;
  EXPECT_EQ(refusal_of(options), "");
  ASSERT_TRUE(take_read_mode("serializable", options).ok());
  EXPECT_EQ(options.route, Route::any);
  EXPECT_EQ(refusal_of(options), "");
  ASSERT_TRUE(take_read_mode("linearizable", options).ok());
  EXPECT_EQ(options.route, Route::leader);
  EXPECT_EQ(refusal_of(options), "");
  options.etcd = false;
  EXPECT_NE(refusal_of(options).find("name its members by --etcd"), std::string::npos);
  options.etcd = true;
  ASSERT_TRUE(take_read_mode("quorum", options).ok());
  EXPECT_NE(refusal_of(options).find("is one of Leasehold"), std::string::npos);
  options.read_mode.clear();
  options.login.password = "secret";
  EXPECT_NE(refusal_of(options).find("neither TLS nor a login"), std::string::npos);
}

TEST(LoadOptions, AnOpenLoopOfLargeValuesHasASmallerBound) {
  LoadOptions options = usable();
  options.rate = 100;
  options.value_bytes = kValueBytesMax;
  ASSERT_TRUE(settle(options).ok());
  EXPECT_EQ(options.in_flight, 1024U);
}

client::RespValue reply_of_text(const std::string& bytes) {
  client::RespValue value;
  EXPECT_TRUE(client::parse_reply(bytes, value).ok());
  return value;
}

// Two groups; the master comes first.
const char* const kSlots =
    "*2\r\n"
    "*4\r\n:8192\r\n:16383\r\n*3\r\n$1\r\nb\r\n:2\r\n$1\r\nx\r\n*3\r\n$1\r\na\r\n:1\r\n$1\r\ny\r\n"
    "*4\r\n:0\r\n:8191\r\n*3\r\n$0\r\n\r\n:1\r\n$1\r\ny\r\n*3\r\n$1\r\nb\r\n:2\r\n$1\r\nx\r\n";

TEST(Layout, TheLeaderOfAKeyIsTheMasterOfItsSlot) {
  const auto layout = layout_from(reply_of_text(kSlots), "a:1", Route::leader);
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->parts.size(), 2U);
  EXPECT_EQ(layout->parts[0], (Part{0, 8191, {"a:1"}}));
  EXPECT_EQ(layout->parts[1], (Part{8192, 16383, {"b:2"}}));
  // Of Redis: CLUSTER KEYSLOT foo is 12182, and of bar 5061.
  EXPECT_EQ(layout->part_of("foo").servers[0], "b:2");
  EXPECT_EQ(layout->part_of("bar").servers[0], "a:1");
}

TEST(Layout, FollowersAreTheOthers) {
  const auto layout = layout_from(reply_of_text(kSlots), "a:1", Route::follower);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->part_of("foo").servers, (std::vector<std::string>{"a:1"}));
  EXPECT_EQ(layout->part_of("bar").servers, (std::vector<std::string>{"b:2"}));
  EXPECT_EQ(layout->servers(), (std::vector<std::string>{"b:2", "a:1"}));
}

TEST(Layout, AReplyOfNoUseIsNone) {
  for (const char* reply :
       {"-ERR This instance has cluster support disabled\r\n", "*0\r\n", "*1\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:0\r\n",
        // It knows itself alone, as a node of ours does without --client-addresses.
        "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\na\r\n:1\r\n"}) {
    EXPECT_FALSE(layout_from(reply_of_text(reply), "a:1", Route::leader)) << reply;
  }
}

TEST(Layout, WithoutALayoutTheRolesDecide) {
  const std::vector<std::string> servers = {"a:1", "b:2", "c:3"};
  const ServerRole master = role_from(reply_of_text("*2\r\n$6\r\nmaster\r\n:1\r\n"));
  const ServerRole slave = role_from(reply_of_text("*2\r\n$5\r\nslave\r\n:1\r\n"));
  const ServerRole silent = role_from(reply_of_text("-ERR unknown command\r\n"));
  const auto at = [&](const std::vector<ServerRole>& roles, Route route) {
    return layout_by_roles(roles, route, servers).servers();
  };
  EXPECT_EQ(at({slave, master, slave}, Route::leader), (std::vector<std::string>{"b:2"}));
  EXPECT_EQ(at({slave, master, silent}, Route::follower), (std::vector<std::string>{"a:1"}));
  // Servers that are not of one group, and a group without a leader.
  EXPECT_EQ(at({master, master, master}, Route::leader), servers);
  EXPECT_EQ(at({silent, silent, silent}, Route::leader), servers);
  EXPECT_EQ(at({slave, slave, slave}, Route::leader), servers);
}

TEST(LoadOptions, AHistoryIsOfLinearizableReadsOfTheRedisProtocol) {
  LoadOptions options = usable();
  options.history = "h";
  ASSERT_TRUE(settle(options).ok());
  EXPECT_EQ(options.judged_keys, 16U);

  LoadOptions few = usable();
  few.history = "h";
  few.keys = 3;
  ASSERT_TRUE(settle(few).ok());
  EXPECT_EQ(few.judged_keys, 3U);
  few.judged_keys = 4;
  EXPECT_NE(refusal_of(few).find("--judged-keys takes 1 to 3"), std::string::npos);

  LoadOptions etcd = usable();
  etcd.history = "h";
  etcd.etcd = true;
  EXPECT_NE(refusal_of(etcd).find("--history is for --servers"), std::string::npos);

  LoadOptions stale = usable();
  stale.history = "h";
  ASSERT_TRUE(take_read_mode("stale=1s", stale).ok());
  EXPECT_NE(refusal_of(stale).find("--read-mode stale"), std::string::npos);
  for (const char* mode : {"lease", "quorum", "log", "follower"}) {
    LoadOptions judged = usable();
    judged.history = "h";
    ASSERT_TRUE(take_read_mode(mode, judged).ok());
    EXPECT_EQ(refusal_of(judged), "") << mode;
  }

  LoadOptions alone = usable();
  alone.judged_keys = 4;
  EXPECT_NE(refusal_of(alone).find("--history"), std::string::npos);
}

}  // namespace
}  // namespace leasehold::bench
