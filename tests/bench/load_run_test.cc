#include <leasehold/bench/load/options.h>
#include <leasehold/bench/load/outcome.h>
#include <leasehold/bench/load/run_load.h>
#include <leasehold/kv/key_slot.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "answering_server.h"

namespace leasehold::bench {
namespace {

using Words = std::vector<std::string>;

const char* const kNoCluster = "-ERR This instance has cluster support disabled\r\n";

/// What a store without clusters answers; nothing is stored.
std::string plain_answer(const Words& words) {
  if (words[0] == "CLUSTER") return kNoCluster;
  if (words[0] == "SET") return "+OK\r\n";
  if (words[0] == "GET") return "$1\r\nv\r\n";
  if (words[0] != "MGET") return "-ERR unknown command\r\n";
  std::string reply = "*" + std::to_string(words.size() - 1) + "\r\n";
  for (std::size_t i = 1; i < words.size(); ++i) reply += "$-1\r\n";
  return reply;
}

LoadOptions short_run(const std::string& workload, std::vector<std::string> servers) {
  LoadOptions options;
  options.servers = std::move(servers);
  EXPECT_TRUE(take_workload(workload, options).ok());
  options.keys = 100;
  options.value_bytes = 16;
  options.in_flight = 4;
  options.duration_s = 0.2;
  options.warm_up_s = 0;
  options.quiet = true;
  return options;
}

struct Ran {
  std::string text;
  std::string news;
  bool stands = false;
};

Ran run(
    LoadOptions options, const std::function<bool()>& ended = [] { return false; }) {
  EXPECT_TRUE(settle(options).ok());
  std::ostringstream out;
  std::ostringstream news;
  const auto done = run_load(options, ended, out, news);
  EXPECT_TRUE(done.ok()) << done.error().message;
  return {out.str(), news.str(), done.ok() && done.value()};
}

bool has(const Ran& ran, const std::string& text) {
  return ran.text.find(text) != std::string::npos;
}

TEST(RunLoad, EveryWorkloadRunsAtAServerWithoutClusters) {
  AnsweringServer server(plain_answer);
  for (const char* workload : {"get", "set", "ycsb-a", "ycsb-d", "ycsb-e", "ycsb-f"}) {
    const Ran ran = run(short_run(workload, {server.address()}));
    EXPECT_TRUE(has(ran, "errors: none")) << workload << "\n" << ran.text;
    EXPECT_TRUE(has(ran, workload)) << ran.text;
  }
}

TEST(RunLoad, AllKeysAreWrittenFirstEachOnce) {
  std::mutex mutex;
  std::map<std::string, int> writes;
  AnsweringServer server([&](const Words& words) {
    const std::lock_guard lock(mutex);
    if (words[0] == "SET") {
      ++writes[words[1]];
      EXPECT_EQ(words[2].size(), 16U);
    }
    return plain_answer(words);
  });
  run(short_run("get", {server.address()}));
  EXPECT_EQ(writes.size(), 100U);
  for (const auto& [key, count] : writes) EXPECT_EQ(count, 1) << key;
}

TEST(RunLoad, AKeyThatCouldNotBeWrittenIsWrittenAgain) {
  std::mutex mutex;
  std::map<std::string, int> tries;
  AnsweringServer server([&](const Words& words) -> std::string {
    const std::lock_guard lock(mutex);
    if (words[0] == "SET" && ++tries[words[1]] == 1) return "-NOLEADER try again\r\n";
    return plain_answer(words);
  });
  const Ran ran = run(short_run("get", {server.address()}));
  EXPECT_EQ(tries.size(), 100U);
  for (const auto& [key, count] : tries) EXPECT_EQ(count, 2) << key;
  EXPECT_TRUE(has(ran, "errors: none")) << ran.text;
}

TEST(RunLoad, ErrorsAreCountedByKind) {
  std::atomic<int> asked{0};
  AnsweringServer server([&asked](const Words& words) -> std::string {
    if (words[0] != "GET") return plain_answer(words);
    switch (asked++ % 4) {
      case 0: return "-TRYAGAIN the leader changed\r\n";
      case 1: return "$-1\r\n";
      default: return plain_answer(words);
    }
  });
  const Ran ran = run(short_run("get", {server.address()}));
  EXPECT_TRUE(has(ran, " TRYAGAIN")) << ran.text;
  EXPECT_TRUE(has(ran, " missing key")) << ran.text;
}

TEST(RunLoad, AConnectionThatBreaksIsOpenedAgain) {
  std::atomic<int> asked{0};
  AnsweringServer server([&asked](const Words& words) -> std::string {
    if (words[0] == "GET" && ++asked % 500 == 0) return "";
    return plain_answer(words);
  });
  LoadOptions options = short_run("get", {server.address()});
  options.duration_s = 0.5;
  const Ran ran = run(options);
  EXPECT_TRUE(has(ran, " connection closed")) << ran.text;
  EXPECT_GT(asked, 1000);  // it went on after the first one
}

TEST(RunLoad, ARedirectionIsFollowedAndIsNoError) {
  std::atomic<int> served{0};
  AnsweringServer second([&served](const Words& words) {
    if (words[0] == "GET") ++served;
    return plain_answer(words);
  });
  AnsweringServer first([&second](const Words& words) -> std::string {
    if (words[0] != "GET") return plain_answer(words);
    return "-MOVED " + std::to_string(kv::slot_of(words[1])) + " " + second.address() + "\r\n";
  });
  LoadOptions options = short_run("get", {first.address()});
  options.keys = 1;
  const Ran ran = run(options);
  EXPECT_TRUE(has(ran, "errors: none")) << ran.text;
  EXPECT_TRUE(has(ran, "redirections followed")) << ran.text;
  EXPECT_GT(served, 10);
}

/// CLUSTER SLOTS with one group: the first address leads.
std::string slots_answer(const std::string& leader, const std::string& follower) {
  const auto node = [](const std::string& address) {
    return "*2\r\n$9\r\n127.0.0.1\r\n:" + address.substr(address.find(':') + 1) + "\r\n";
  };
  return "*1\r\n*4\r\n:0\r\n:16383\r\n" + node(leader) + node(follower);
}

TEST(RunLoad, OperationsFollowTheLeaderAndFollowerReadsTheOthers) {
  std::array<std::atomic<int>, 2> gets{};
  std::array<std::string, 2> addresses;
  std::atomic<std::size_t> leader{0};
  const auto node = [&](std::size_t number) {
    return [&, number](const Words& words) -> std::string {
      if (words[0] == "CLUSTER") return slots_answer(addresses[leader], addresses[1 - leader]);
      if (words[0] == "LEASEHOLD") return "+OK\r\n";
      if (words[0] == "GET") ++gets.at(number);
      return plain_answer(words);
    };
  };
  AnsweringServer first(node(0));
  AnsweringServer second(node(1));
  addresses = {first.address(), second.address()};
  LoadOptions options = short_run("get", {first.address(), second.address()});
  options.load = false;
  run(options);
  EXPECT_GT(gets[0], 0);
  EXPECT_EQ(gets[1], 0);
  gets[0] = 0;
  ASSERT_TRUE(take_read_mode("follower", options).ok());
  run(options);
  EXPECT_EQ(gets[0], 0);
  EXPECT_GT(gets[1], 0);
  // The leader changes while the load runs.
  ASSERT_TRUE(take_read_mode("lease", options).ok());
  options.duration_s = 60;
  gets[1] = 0;
  const Ran ran = run(options, [&] {
    if (gets[0] > 0) leader = 1;
    return gets[1] > 100;
  });
  EXPECT_TRUE(has(ran, "errors: none")) << ran.text;
  EXPECT_TRUE(has(ran, "ended early")) << ran.text;
}

TEST(RunLoad, AnOpenLoopKeepsItsSchedule) {
  AnsweringServer server(plain_answer);
  LoadOptions options = short_run("get", {server.address()});
  options.rate = 500;
  options.in_flight = 0;
  const Ran ran = run(options);
  EXPECT_TRUE(has(ran, "(client late)")) << ran.text;
  EXPECT_TRUE(has(ran, " 100 ")) << ran.text;  // 0.2 s of 500 a second
}

TEST(RunLoad, ARefusedReadModeAndASilentAddressAreErrorsWithTheReason) {
  AnsweringServer server(plain_answer);
  LoadOptions options = short_run("get", {server.address()});
  ASSERT_TRUE(take_read_mode("lease", options).ok());
  ASSERT_TRUE(settle(options).ok());
  std::ostringstream out;
  const auto refused = run_load(
      options, [] { return false; }, out, out);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("unknown command"), std::string::npos);

  options = short_run("get", {"127.0.0.1:1"});
  ASSERT_TRUE(settle(options).ok());
  const auto nobody = run_load(
      options, [] { return false; }, out, out);
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().code, ErrorCode::unavailable);
}

TEST(RunLoad, EveryConnectionSaysWhoItIsAndHowItReads) {
  std::mutex mutex;
  std::map<std::string, int> said;
  AnsweringServer server([&](const Words& words) -> std::string {
    const std::lock_guard lock(mutex);
    if (words[0] != "AUTH" && words[0] != "LEASEHOLD") return plain_answer(words);
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    ++said[text];
    return "+OK\r\n";
  });
  LoadOptions options = short_run("get", {server.address()});
  options.login = {"bench", "a secret"};
  ASSERT_TRUE(take_read_mode("stale=1s", options).ok());
  run(options);
  const std::map<std::string, int> expected = {{"AUTH bench a secret", 4},
                                               {"LEASEHOLD READMODE stale 1s", 4}};
  EXPECT_EQ(said, expected);
}

PhaseResult measured(std::uint64_t latency, std::uint64_t late, double busy) {
  PhaseResult result;
  for (int i = 0; i < 100; ++i) {
    result.total.latencies[0].record(latency);
    result.total.late.record(late);
  }
  result.elapsed_ns = 1'000'000'000;
  result.cpu_ns = static_cast<std::uint64_t>(busy * 1e9);
  return result;
}

TEST(Outcome, ARunInWhichTheClientWasTheBottleneckIsThrownAway) {
  LoadOptions closed;
  LoadOptions open;
  open.rate = 100;
  EXPECT_EQ(worthless_because(measured(1000, 0, 0.94), closed), "");
  EXPECT_NE(worthless_because(measured(1000, 0, 0.96), closed), "");
  EXPECT_EQ(worthless_because(measured(1000, 250, 0.96), open), "");
  EXPECT_NE(worthless_because(measured(1000, 251, 0.1), open), "");
  EXPECT_NE(worthless_because(PhaseResult(), closed), "");
}

}  // namespace
}  // namespace leasehold::bench
