#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leasehold/check/history_file.h>

#include <string>
#include <vector>

namespace leasehold::check {
namespace {

using testing::HasSubstr;

/// The first error, or "".
std::string read(const std::vector<std::string>& lines, History& history) {
  HistoryReader reader(history);
  for (const std::string& line : lines) {
    if (const auto taken = reader.take(line); !taken) return taken.error().message;
  }
  return "";
}

std::string error_of(const std::string& line) {
  History history;
  return read({R"({"op":"del","key":1,"start":1,"end":2})", line}, history);
}

TEST(HistoryFile, ReadsEveryOperation) {
  History history;
  ASSERT_EQ(
      read({R"({"v":1})", R"({"client":3,"op":"put","key":"a","value":"x y","start":-5,"end":7})",
            R"({ "op" : "get", "key":"a", "value":null, "start":1, "end":2 })", "",
            R"({"op":"del","key":"a","ok":false,"start":1,"end":2})",
            R"({"op":"cas","key":"b","expect":null,"value":17,"ok":true,"start":1,"end":2})",
            R"({"op":"append","key":"b","value":"8","start":3,"end":null})",
            R"({"op":"get","key":"b","start":3,"end":null})"},
           history),
      "");
  ASSERT_EQ(history.operations.size(), 5U);
  EXPECT_EQ(describe(history.operations[0], &history),
            "line 2: client 3 writes key a := x y [-5 .. 7]");
  EXPECT_EQ(describe(history.operations[1], &history),
            "line 3: client 0 reads key a = nothing [1 .. 2]");
  EXPECT_EQ(describe(history.operations[2], &history),
            "line 5: client 0 removes key a, nothing there [1 .. 2]");
  EXPECT_EQ(describe(history.operations[3], &history),
            "line 6: client 0 changes key b from nothing to 17, done [1 .. 2]");
  EXPECT_EQ(describe(history.operations[4], &history),
            "line 7: client 0 appends 8 to key b [3 .. never]");
}

TEST(HistoryFile, ANumberIsTheStringOfItsDigits) {
  Texts texts;
  EXPECT_EQ(texts.number_of("17"), 17U);
  EXPECT_EQ(texts.text_of(17), "17");
  for (const char* text : {"0", "017", "", "-3", "99999999999999999999", "1a"}) {
    const std::uint64_t number = texts.number_of(text);
    EXPECT_GT(number, std::uint64_t{1} << 62U);
    EXPECT_EQ(texts.text_of(number), text);
    EXPECT_EQ(texts.number_of(text), number);
  }
  EXPECT_EQ(texts.joined(texts.number_of("1"), texts.number_of("7")), 17U);
  EXPECT_EQ(texts.text_of(texts.joined(Operation::kNothing, texts.number_of("x"))), "x");
}

TEST(HistoryFile, EscapesAreUndone) {
  History history;
  ASSERT_EQ(read({R"({"op":"put","key":"\u00e9\ud83d\ude00\"\\\n","value":"v","start":1,"end":2})"},
                 history),
            "");
  EXPECT_EQ(history.keys.text_of(history.operations[0].key), "\xc3\xa9\xf0\x9f\x98\x80\"\\\n");
}

TEST(HistoryFile, WhatIsWrittenIsReadAgain) {
  History history;
  const std::vector<std::string> lines = {
      R"({"client":3,"op":"put","key":"a\"","value":"\u0001","start":5,"end":7})",
      R"({"client":0,"op":"get","key":"a\"","value":null,"start":5,"end":7})",
      R"({"client":1,"op":"cas","key":"k","expect":null,"value":"4","ok":false,"start":5,"end":7})",
      R"({"client":1,"op":"del","key":"k","start":5,"end":null})"};
  ASSERT_EQ(read(lines, history), "");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(line_of(history.operations[i], history), lines[i]);
  }
}

TEST(HistoryFile, ErrorsNameTheLineAndWhatIsAllowed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"get a", "line 2: a line is one JSON object"},
      {R"({"op":"putt","key":1,"start":1,"end":2})",
       "line 2: `op` is \"putt\"; allowed: get, put, del, cas, append"},
      {R"({"op":"get","kee":1})", "`kee` is no member of an operation; there are: client op key"},
      {R"({"op":"get","op":"put"})", "`op` is there twice"},
      {R"({"op":"get"})", "`key` has to be"},
      {R"({"op":"get","key":1,"value":1,"start":5,"end":4})", "`end` is before `start`"},
      {R"({"op":"get","key":1,"value":1,"start":5})", "null if the answer never came"},
      {R"({"op":"get","key":1,"start":5,"end":6})", "`value` has to be"},
      {R"({"op":"put","key":1,"value":null,"start":5,"end":6})", "`value` has to be"},
      {R"({"op":"put","key":1,"value":1.5,"start":5,"end":6})", "a whole number of 64 bits"},
      {R"({"op":"put","key":1,"value":1,"ok":true,"start":5,"end":6})", "only a cas and a del"},
      {R"({"op":"cas","key":1,"value":1,"expect":2,"start":5,"end":6})", "needs `ok`"},
      {R"({"op":"cas","key":1,"value":1,"ok":true,"start":5,"end":6})", "needs `expect`"},
      {R"({"op":"get","key":1,"value":1,"expect":2,"start":5,"end":6})", "only a cas"},
      {R"({"op":"get","key":1,"value":"x,"start":5,"end":6})", "a comma or the closing brace"},
      {R"({"op":"get","key":1,"value":"x)", "a string is not closed"},
      {R"({"op":"get","key":"\x","value":1,"start":5,"end":6})", "no such escape"},
      {R"({"op":"get","key":1,"value":1,"start":5,"end":6} x)", "something follows"},
      {R"({"v":1})", "only the first line"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(error_of(one.first), HasSubstr(one.second)) << one.first;
    EXPECT_THAT(error_of(one.first), HasSubstr("line 2: ")) << one.first;
  }
  History history;
  EXPECT_THAT(read({R"({"v":2})"}, history), HasSubstr("version 2"));
}

}  // namespace
}  // namespace leasehold::check
