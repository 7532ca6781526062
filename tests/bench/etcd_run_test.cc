#include <leasehold/bench/load/etcd_client.h>
#include <leasehold/bench/load/options.h>
#include <leasehold/bench/load/run_load.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "etcd_frames.h"

namespace leasehold::bench {
namespace {

/// As a group of one would: `member` leads if it is `leader`.
std::string etcd_answer(const SeenCall& call, std::uint8_t member, std::uint8_t leader) {
  const std::string path = call.header(":path");
  if (path == "/etcdserverpb.Maintenance/Status") {
    return good_reply(call.stream, status_message(member, "3.4.23", leader));
  }
  return good_reply(call.stream, path == "/etcdserverpb.KV/Range" ? kOneKey : "");
}

std::string alone(const SeenCall& call, bool&) {
  return etcd_answer(call, 1, 1);
}

LoadOptions short_load(const std::string& workload, std::vector<std::string> servers) {
  LoadOptions options;
  options.servers = std::move(servers);
  options.etcd = true;
  EXPECT_TRUE(take_workload(workload, options).ok());
  options.keys = 100;
  options.value_bytes = 16;
  options.in_flight = 4;
  options.duration_s = 0.2;
  options.warm_up_s = 0;
  options.quiet = true;
  return options;
}

Result<bool> run_text(LoadOptions options, std::string& text) {
  EXPECT_TRUE(settle(options).ok());
  std::ostringstream out;
  std::ostringstream news;
  const auto done = run_load(
      options, [] { return false; }, out, news);
  text = out.str();
  return done;
}

std::string error_of(const LoadOptions& options) {
  std::string text;
  const auto done = run_text(options, text);
  return done.ok() ? "no error" : done.error().message;
}

TEST(EtcdLoad, EveryWorkloadRuns) {
  EtcdServer server(alone);
  for (const char* workload : {"get", "set", "ycsb-a", "ycsb-d", "ycsb-e", "ycsb-f"}) {
    std::string text;
    ASSERT_TRUE(run_text(short_load(workload, {server.address()}), text).ok());
    EXPECT_NE(text.find("errors: none"), std::string::npos) << workload << "\n" << text;
    EXPECT_EQ(text.find("\nall                       0"), std::string::npos) << text;
  }
}

TEST(EtcdLoad, OperationsGoToTheMemberThatLeadsAndSerializableReadsToAll) {
  std::array<std::atomic<int>, 2> reads{};
  const auto member = [&reads](std::uint8_t number) {
    return [&reads, number](const SeenCall& call, bool&) {
      const bool read = call.header(":path") == "/etcdserverpb.KV/Range";
      // The question at the start, whether a key may be read, is serializable too: it is not
      // counted.
      if (read && call.message.find("key:0000000000") == std::string::npos) {
        ++reads.at(number - 1U);
      }
      return etcd_answer(call, number, 2);
    };
  };
  EtcdServer first(member(1));
  EtcdServer second(member(2));
  LoadOptions options = short_load("get", {first.address(), second.address()});
  options.load = false;
  std::string text;
  ASSERT_TRUE(run_text(options, text).ok());
  EXPECT_EQ(reads[0], 0);
  EXPECT_GT(reads[1], 0);
  ASSERT_TRUE(take_read_mode("serializable", options).ok());
  ASSERT_TRUE(run_text(options, text).ok());
  EXPECT_GT(reads[0], 0);
}

TEST(EtcdLoad, AServerThatSaysGoodbyeIsDialledAgainWithoutAnError) {
  std::atomic<int> asked{0};
  std::atomic<int> goodbyes{0};
  EtcdServer server([&](const SeenCall& call, bool&) {
    std::string reply = etcd_answer(call, 1, 1);
    if (call.header(":path") != "/etcdserverpb.KV/Range" || ++asked % 200 != 0) return reply;
    ++goodbyes;
    return reply + go_away(call.stream);
  });
  LoadOptions options = short_load("get", {server.address()});
  options.in_flight = 1;
  options.load = false;
  std::string text;
  ASSERT_TRUE(run_text(options, text).ok());
  EXPECT_NE(text.find("errors: none"), std::string::npos) << text;
  EXPECT_GT(goodbyes, 1) << text;
}

TEST(EtcdLoad, ErrorsAreCountedByKindAndBrokenConnectionsToo) {
  std::atomic<int> asked{0};
  EtcdServer server([&asked](const SeenCall& call, bool& hang_up) {
    if (call.header(":path") != "/etcdserverpb.KV/Range") return etcd_answer(call, 1, 1);
    const int number = asked++;
    if (number % 4 == 1) return error_reply(call.stream, "14", "etcdserver: leader changed");
    if (number % 4 == 2) return good_reply(call.stream, kNoKey);
    if (number % 100 == 99) hang_up = true;
    return hang_up ? opening(call.stream) : etcd_answer(call, 1, 1);
  });
  LoadOptions options = short_load("get", {server.address()});
  options.load = false;
  options.duration_s = 0.5;
  std::string text;
  ASSERT_TRUE(run_text(options, text).ok());
  for (const char* kind : {" UNAVAILABLE", " missing key", " connection closed"}) {
    EXPECT_NE(text.find(kind), std::string::npos) << text;
  }
}

TEST(EtcdLoad, WhatIsNotEtcdIsAnErrorThatSaysWhatToDo) {
  EtcdServer old([](const SeenCall& call, bool& hang_up) {
    if (call.header(":path") != "/etcdserverpb.Maintenance/Status") return alone(call, hang_up);
    return good_reply(call.stream, status_message(1, "4.0.1", 1));
  });
  EXPECT_NE(error_of(short_load("get", {old.address()})).find("etcd 4.0.1 answers"),
            std::string::npos);
  EtcdServer other([](const SeenCall& call, bool&) {
    return error_reply(call.stream, "12", "unknown service etcdserverpb.KV");
  });
  EXPECT_NE(error_of(short_load("get", {other.address()})).find("does not offer etcd's v3 API"),
            std::string::npos);
  EtcdServer guarded([](const SeenCall& call, bool&) {
    return error_reply(call.stream, "3", "etcdserver: user name is empty");
  });
  EXPECT_NE(error_of(short_load("get", {guarded.address()})).find("authentication is off"),
            std::string::npos);
  EtcdServer silent([](const SeenCall&, bool& hang_up) {
    hang_up = true;
    return std::string();
  });
  EXPECT_NE(error_of(short_load("get", {silent.address()})).find("without TLS"), std::string::npos);
  EXPECT_NE(error_of(short_load("get", {"127.0.0.1:1"})).find("refused"), std::string::npos);
}

TEST(EtcdServers, TheLeaderIsTheMemberThatAnyOfThemNames) {
  const std::vector<std::string> servers = {"a:1", "b:1", "c:1"};
  const std::vector<std::string> b = {"b:1"};
  const std::vector<std::string> others = {"a:1", "c:1"};
  std::vector<EtcdMember> members = {{"3.4", 5, 6}, {"3.4", 6, 6}, {"3.4", 7, 6}};
  EXPECT_EQ(etcd_servers(servers, members, true), b);
  EXPECT_EQ(etcd_servers(servers, members, false), others);
  // One is away, one knows no leader.
  members = {EtcdMember(), {"3.4", 6, 6}, {"3.4", 7, 0}};
  EXPECT_EQ(etcd_servers(servers, members, true), b);
  EXPECT_EQ(etcd_servers(servers, members, false), std::vector<std::string>{"c:1"});
  // The leader is none of those that were named.
  members = {{"3.4", 5, 9}, {"3.4", 6, 9}, {"3.4", 7, 9}};
  EXPECT_EQ(etcd_servers(servers, members, true), servers);
}

}  // namespace
}  // namespace leasehold::bench
