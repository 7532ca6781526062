// Histories that the clients of a load record, and what the checker says of them.
#include <leasehold/bench/load/options.h>
#include <leasehold/bench/load/run_load.h>
#include <leasehold/bench/open_loop.h>
#include <leasehold/bench/recorder.h>
#include <leasehold/bench/workload.h>
#include <leasehold/check/history_file.h>
#include <leasehold/check/linearizability.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "answering_server.h"

namespace leasehold::bench {
namespace {

using Words = std::vector<std::string>;

std::string path_of(const std::string& name) {
  return testing::TempDir() + "judged_load_test_" + name + ".jsonl";
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::filesystem::remove(path);
  return lines;
}

check::History history_of(const std::vector<std::string>& lines) {
  check::History history;
  check::HistoryReader reader(history);
  for (const std::string& line : lines) {
    const auto taken = reader.take(line);
    EXPECT_TRUE(taken.ok()) << line;
  }
  return history;
}

check::Verdict verdict_of(const std::string& path) {
  check::History history = history_of(lines_of(path));
  EXPECT_FALSE(history.operations.empty());
  return check::check_linearizable(history).verdict;
}

std::unique_ptr<Recorder> recorder_at(const std::string& path, std::uint64_t keys) {
  auto recorder = Recorder::create(path, keys);
  EXPECT_TRUE(recorder.ok());
  return std::move(recorder).value();
}

std::string text_of(const Recorder::Front& front) {
  return {front.data(), front.size()};
}

TEST(Recorder, ALineSaysWhatWasAskedAndAnswered) {
  const std::string path = path_of("lines");
  const auto recorder = recorder_at(path, 10);
  const Recorder::Front front = recorder->next_front();
  recorder->wrote(recorder->begin_write(1, 2, front, 100), 200);
  recorder->read(recorder->begin_read(3, 2, 150), "a value that is longer", 250);
  recorder->read(recorder->begin_read(3, 4, 160), "\"\\\x01\xff", 170);
  recorder->read_nothing(recorder->begin_read(3, 9, 300), 310);
  ASSERT_TRUE(recorder->write_file().ok());
  const auto line = [](int client, const char* op, int key, const std::string& value,
                       const char* start_end) {
    return "{\"client\":" + std::to_string(client) + ",\"op\":\"" + op + "\",\"key\":\"" +
           key_name(static_cast<std::uint64_t>(key)) + "\",\"value\":" + value + start_end + "}";
  };
  EXPECT_EQ(lines_of(path),
            (std::vector<std::string>{
                line(1, "put", 2, "\"" + text_of(front) + "\"", R"(,"start":100,"end":200)"),
                line(3, "get", 2, "\"a value that is \"", R"(,"start":150,"end":250)"),
                line(3, "get", 4, R"("\u0022\u005c\u0001\u00ff")", R"(,"start":160,"end":170)"),
                line(3, "get", 9, "null", R"(,"start":300,"end":310)")}));
}

TEST(Recorder, WhatWasNotExecutedIsLeftOutAndWhatNobodyKnowsHasNoEnd) {
  const std::string path = path_of("outcomes");
  const auto recorder = recorder_at(path, 1);
  recorder->begin_read(0, 0, 1);  // no answer: it says nothing
  recorder->failed(recorder->begin_read(0, 0, 2), "UNKNOWNOUTCOME of a read");
  for (const char* refused : {"NOLEADER", "TRYAGAIN later", "MOVED 1 a:2", "CLUSTERDOWN"}) {
    recorder->failed(recorder->begin_write(0, 0, recorder->next_front(), 3), refused);
  }
  recorder->begin_write(0, 0, recorder->next_front(), 10);
  recorder->failed(recorder->begin_write(0, 0, recorder->next_front(), 11), "UNKNOWNOUTCOME x");
  recorder->failed(recorder->begin_write(0, 0, recorder->next_front(), 12), "ERR of some server");
  ASSERT_TRUE(recorder->write_file().ok());
  const check::History history = history_of(lines_of(path));
  ASSERT_EQ(history.operations.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(history.operations[i].kind, check::OperationKind::write);
    EXPECT_EQ(history.operations[i].invoked_ns, static_cast<std::int64_t>(10 + i));
    EXPECT_FALSE(history.operations[i].returned());
  }
}

TEST(Recorder, NoTwoProcessesWriteTheSameValue) {
  const auto one = recorder_at(path_of("one"), 1);
  const auto other = recorder_at(path_of("other"), 1);
  std::set<std::string> values;
  for (int i = 0; i < 100; ++i) {
    values.insert(text_of(one->next_front()));
    values.insert(text_of(other->next_front()));
  }
  EXPECT_EQ(values.size(), 200U);
  for (const char* name : {"one", "other"}) std::filesystem::remove(path_of(name));
}

TEST(Recorder, APathThatCannotBeWrittenIsAnErrorBeforeTheRun) {
  const auto recorder = Recorder::create("/no such folder/history", 1);
  ASSERT_FALSE(recorder.ok());
  EXPECT_EQ(recorder.error().code, ErrorCode::io);
  EXPECT_NE(recorder.error().message.find("/no such folder/history"), std::string::npos);
}

/// A store of strings. With `old_every`, each so-manieth read of a key that was written twice is
/// answered with what it held before. With `lost_every`, such a write is acknowledged and lost.
class Store {
 public:
  explicit Store(int old_every = 0, int lost_every = 0)
      : old_every_(old_every), lost_every_(lost_every) {}

  std::string answer(const Words& words) {
    if (words[0] == "CLUSTER") return "-ERR This instance has cluster support disabled\r\n";
    std::vector<std::string>& values = values_[words[1]];
    if (words[0] == "SET") {
      if (lost_every_ == 0 || ++writes_ % lost_every_ != 0) values.push_back(words[2]);
      return "+OK\r\n";
    }
    if (words[0] != "GET") return "-ERR unknown command\r\n";
    if (values.empty()) return "$-1\r\n";
    const bool old = old_every_ > 0 && values.size() > 1 && ++reads_ % old_every_ == 0;
    const std::string& value = old ? values[values.size() - 2] : values.back();
    return "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
  }

 private:
  int old_every_;
  int lost_every_;
  int reads_ = 0;
  int writes_ = 0;
  std::map<std::string, std::vector<std::string>> values_;
};

/// A run of `leasehold bench` at `store`; the path of its history.
std::string run_at(Store& store, const std::string& workload, const std::string& name,
                   std::uint64_t judged_keys = 4) {
  AnsweringServer server([&store](const Words& words) { return store.answer(words); });
  LoadOptions options;
  options.servers = {server.address()};
  EXPECT_TRUE(take_workload(workload, options).ok());
  EXPECT_TRUE(take_distribution("uniform", options).ok());
  options.keys = 20;
  options.value_bytes = 32;
  options.in_flight = 4;
  options.duration_s = 0.2;
  options.warm_up_s = 0;
  options.quiet = true;
  options.history = path_of(name);
  options.judged_keys = judged_keys;
  EXPECT_TRUE(settle(options).ok());
  std::ostringstream out;
  const auto done = run_load(
      options, [] { return false; }, out, out);
  EXPECT_TRUE(done.ok()) << done.error().message;
  EXPECT_NE(out.str().find("leasehold check " + options.history), std::string::npos) << out.str();
  return options.history;
}

TEST(JudgedLoad, AStoreThatKeepsItsWordIsLinearizable) {
  for (const char* workload : {"get", "set", "ycsb-a", "ycsb-f"}) {
    Store store;
    EXPECT_EQ(verdict_of(run_at(store, workload, "good")), check::Verdict::linearizable)
        << workload;
  }
}

TEST(JudgedLoad, AnOldValueIsFoundOut) {
  for (const char* workload : {"ycsb-a", "ycsb-f"}) {
    Store store(50);
    EXPECT_EQ(verdict_of(run_at(store, workload, "old")), check::Verdict::violation) << workload;
  }
}

TEST(JudgedLoad, ALostWriteIsFoundOutWithoutAnyReadInTheLoad) {
  Store store(0, 1);
  EXPECT_EQ(verdict_of(run_at(store, "set", "lost")), check::Verdict::violation);
}

TEST(JudgedLoad, OnlyTheJudgedKeysAreRecordedAndTheirValuesStayAsLong) {
  Store store;
  std::set<std::string> keys;
  check::History history = history_of(lines_of(run_at(store, "ycsb-a", "keys", 3)));
  for (const auto& operation : history.operations) {
    keys.insert(history.keys.text_of(operation.key));
  }
  EXPECT_EQ(keys, (std::set<std::string>{key_name(0), key_name(1), key_name(2)}));
  for (const std::uint64_t key : {0U, 1U, 2U, 3U}) {
    EXPECT_EQ(store.answer({"GET", key_name(key)}).substr(0, 5), "$32\r\n");
  }
}

TEST(JudgedLoad, RunsAtTheSameServersAreOneHistory) {
  Store store;
  std::vector<std::string> lines;
  for (const char* workload : {"ycsb-a", "get", "set"}) {
    for (const std::string& line : lines_of(run_at(store, workload, "joined"))) {
      lines.push_back(line);
    }
  }
  check::History history = history_of(lines);
  EXPECT_EQ(check::check_linearizable(history).verdict, check::Verdict::linearizable);
}

/// Blocks of bench_client's closed loop, each of sets and then of gets.
check::Verdict judge_closed_loop(Store& store, const std::string& name) {
  AnsweringServer server([&store](const Words& words) { return store.answer(words); });
  auto socket = connect_tcp(server.address());
  EXPECT_TRUE(socket.ok());
  Workload workload;
  workload.keys = 4;
  workload.value_bytes = 40;
  const auto recorder = recorder_at(path_of(name), 2);
  Random random(1);
  for (int block = 0; block < 4; ++block) {
    for (const Operation operation : {Operation::set, Operation::get}) {
      workload.operation = operation;
      const auto looped = closed_loop(socket.value(), workload, 50, 5, random, recorder.get());
      EXPECT_TRUE(looped.ok());
      EXPECT_EQ(looped.value().failures, 0U) << looped.value().first_failure;
    }
  }
  EXPECT_TRUE(recorder->write_file().ok());
  return verdict_of(path_of(name));
}

TEST(JudgedLoad, OneRequestAfterTheOtherIsJudgedToo) {
  Store good;
  EXPECT_EQ(judge_closed_loop(good, "loop"), check::Verdict::linearizable);
  Store old(20);
  EXPECT_EQ(judge_closed_loop(old, "old_loop"), check::Verdict::violation);
}

/// Reads, and sets besides, on schedules that do not wait for each other.
check::Verdict judge_open_loop(Store& store, const std::string& name) {
  AnsweringServer server([&store](const Words& words) { return store.answer(words); });
  const auto recorder = recorder_at(path_of(name), 2);
  OpenLoopOptions options;
  options.address = server.address();
  options.workload.keys = 4;
  options.workload.value_bytes = 40;
  options.rate = 2000;
  options.write_rate = 1000;
  options.warmup_ms = 50;
  options.duration_ms = 100;
  options.connections = 2;
  options.recorder = recorder.get();
  const auto looped = open_loop(options);
  EXPECT_TRUE(looped.ok());
  // Of 448 in the warm-up and behind it, at four keys, half are judged.
  EXPECT_GT(recorder->size(), 150U);
  EXPECT_LT(recorder->size(), 300U);
  EXPECT_TRUE(recorder->write_file().ok());
  return verdict_of(path_of(name));
}

TEST(JudgedLoad, ALoadOnAScheduleIsJudgedToo) {
  Store good;
  EXPECT_EQ(judge_open_loop(good, "open"), check::Verdict::linearizable);
  Store old(20);
  EXPECT_EQ(judge_open_loop(old, "old_open"), check::Verdict::violation);
  Store lost(0, 3);
  EXPECT_EQ(judge_open_loop(lost, "lost_open"), check::Verdict::violation);
}

}  // namespace
}  // namespace leasehold::bench
