// Trace files: what is written is read again, and everything else is refused with its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/story/scenario.h>
#include <leasehold/story/trace_file.h>

#include <string>
#include <vector>

namespace leasehold::story {
namespace {

using testing::HasSubstr;

const std::string kRun = R"({"at":0,"kind":"run","v":1,"number":3,"text":"t"})";

std::string refusal(const std::string& line) {
  const Result<Record> record = decode_record(line);
  return record ? "" : record.error().message;
}

std::vector<Record> records_of_a_run() {
  const Result<ScenarioFile> file = parse_scenario(
      "a",
      "# A \"quoted\" title\nSource: x\n> nodes 3\n> drift 2 -3%\n> run 1s\n> propose 1 x\n"
      "> crash 1\n> run 3s\n> read 2 lease\n> mark a\\b\n> run 1s\n");
  std::vector<Record> records;
  run_scenario(file.value(), [&records](const Record& r) { records.push_back(r); });
  return records;
}

TEST(TraceFile, EveryRecordOfARunIsReadAsItWasWritten) {
  const std::vector<Record> records = records_of_a_run();
  ASSERT_GT(records.size(), 100U);
  std::string text;
  for (const Record& record : records) {
    const Result<Record> again = decode_record(encode_record(record));
    ASSERT_TRUE(again.ok()) << encode_record(record) << again.error().message;
    EXPECT_EQ(again.value(), record) << encode_record(record);
    text += encode_record(record) + "\n";
  }
  const auto all = decode_trace("t.jsonl", text);
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all.value(), records);
}

TEST(TraceFile, TheBytesArePinned) {
  Record record;
  record.at = Duration(696'000'000);
  record.kind = Kind::lease;
  record.node = NodeId(1);
  record.peer = NodeId(3);
  record.term = Term(1);
  record.round = Round(1);
  record.from = Duration(646'000'000);
  record.until = Duration(1'454'181'819);
  record.why = "gained";
  EXPECT_EQ(encode_record(record),
            R"({"at":696000000,"kind":"lease","node":1,"peer":3,"term":1,"round":1,)"
            R"("from":646000000,"until":1454181819,"why":"gained"})");
  Record mark;
  mark.text = "a \"b\" \\ \n";
  EXPECT_EQ(encode_record(mark), R"({"at":0,"kind":"mark","text":"a \"b\" \\ \u000a"})");
  Record clock;
  clock.kind = Kind::clock;
  clock.holder_ppm = -5;
  EXPECT_EQ(encode_record(clock), R"({"at":0,"kind":"clock","holder_ppm":-5,"promise_ppm":0})");
}

TEST(TraceFile, WhatIsNotARecordIsRefused) {
  EXPECT_THAT(refusal(""), HasSubstr("one JSON object"));
  EXPECT_THAT(refusal("[]"), HasSubstr("one JSON object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("a name in quotes"));
  EXPECT_THAT(refusal(R"({"at":1})"), HasSubstr("`kind` is missing"));
  EXPECT_THAT(refusal(R"({"kind":"mark"})"), HasSubstr("`at` is missing"));
  EXPECT_THAT(refusal(R"({"at":1,"kind":"party"})"), HasSubstr("there are run, start"));
  EXPECT_THAT(refusal(R"({"at":1,"kind":"mark","colour":3})"), HasSubstr("no member `colour`"));
  EXPECT_THAT(refusal(R"({"at":1,"at":2,"kind":"mark"})"), HasSubstr("stands twice"));
  EXPECT_THAT(refusal(R"({"at":-1,"kind":"mark"})"), HasSubstr("below zero"));
  EXPECT_THAT(refusal(R"({"at":1.5,"kind":"mark"})"), HasSubstr("ends with }"));
  EXPECT_THAT(refusal(R"({"at":007,"kind":"mark"})"), HasSubstr("not a name that takes"));
  EXPECT_THAT(refusal(R"({"at":1,"kind":"mark","text":"\u0041"})"), HasSubstr("is a string"));
  EXPECT_THAT(refusal(R"({"at":1,"kind":"mark"} )"), HasSubstr("and the line"));
}

TEST(TraceFile, AFileBeginsWithItsVersionAndTimeNeverMovesBack) {
  const auto message = [](const std::string& text) {
    const auto records = decode_trace("t", text);
    return records ? std::string() : records.error().message;
  };
  EXPECT_EQ(message(kRun + "\n"), "");
  EXPECT_THAT(message(""), HasSubstr("t is empty"));
  EXPECT_THAT(message(R"({"at":0,"kind":"mark"})"), HasSubstr("t:1: a trace begins"));
  EXPECT_THAT(message(kRun + "\n" + kRun), HasSubstr("t:2: a trace begins"));
  EXPECT_THAT(message(R"({"at":0,"kind":"run","v":2,"number":3})"), HasSubstr("version 2"));
  EXPECT_THAT(message(kRun + "\n{\"at\":5,\"kind\":\"mark\"}\n{\"at\":4,\"kind\":\"mark\"}"),
              HasSubstr("t:3: time moves back"));
}

// One flipped, lost or doubled byte anywhere: a record or a refusal, never anything else.
TEST(TraceFile, DamagedLinesAreReadOrRefused) {
  Random random(1);
  std::size_t refused = 0;
  for (const Record& record : records_of_a_run()) {
    std::string line = encode_record(record);
    const auto at = static_cast<std::size_t>(random.below(line.size()));
    switch (random.below(3)) {
      case 0: line[at] = static_cast<char>(random.below(256)); break;
      case 1: line.erase(at, 1); break;
      default: line.insert(at, 1, line[at]);
    }
    const Result<Record> again = decode_record(line);
    if (!again) {
      ++refused;
      continue;
    }
    EXPECT_TRUE(decode_record(encode_record(again.value())).ok()) << line;
  }
  EXPECT_GT(refused, 50U);
}

}  // namespace
}  // namespace leasehold::story
