// JSON objects of texts and numbers, and nothing else.
#include <leasehold/client/flat_json.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::client {
namespace {

TEST(FlatJson, ReadsTextsAndNumbers) {
  const auto fields = parse_flat_json(
      " { \"a\" : \"x\\n\\\"\\\\\\/\\u00e9\\uD83D\\ude00\" ,\n\"b\":-1.5e3,\"c\":0,\"\":\"\"} ");
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(fields.value().find("a")->second.text, "x\n\"\\/\u00e9\U0001F600");
  EXPECT_TRUE(fields.value().find("a")->second.is_text);
  EXPECT_EQ(fields.value().find("b")->second.text, "-1.5e3");
  EXPECT_EQ(fields.value().find("c")->second.whole(), 0U);
  EXPECT_EQ(fields.value().find("b")->second.whole(), std::nullopt);
  EXPECT_EQ(fields.value().find("a")->second.whole(), std::nullopt);
  EXPECT_TRUE(parse_flat_json("{}").value().empty());
}

TEST(FlatJson, RefusesAllElse) {
  for (const char* const bytes : {"",
                                  "7",
                                  "\"x\"",
                                  "[]",
                                  "{",
                                  "{}x",
                                  "{\"a\":1,}",
                                  "{\"a\" 1}",
                                  "{a:1}",
                                  "{\"a\":true}",
                                  "{\"a\":null}",
                                  "{\"a\":{}}",
                                  "{\"a\":[1]}",
                                  "{\"a\":1,\"a\":2}",
                                  "{\"a\":01}",
                                  "{\"a\":+1}",
                                  "{\"a\":.5}",
                                  "{\"a\":1.}",
                                  "{\"a\":-}",
                                  "{\"a\":1e}",
                                  "{\"a\":--1}",
                                  "{\"a\":\"x}",
                                  "{\"a\":\"\n\"}",
                                  "{\"a\":\"\\x\"}",
                                  "{\"a\":\"\\u12\"}",
                                  "{\"a\":\"\\ud800\"}",
                                  "{\"a\":\"\\ud800\\u0041\"}",
                                  "{\"a\":\"\\udc00\"}",
                                  "{\"a\":\"\xff\"}"}) {
    EXPECT_FALSE(parse_flat_json(bytes).ok()) << bytes;
  }
}

TEST(FlatJson, WhatItWritesItReads) {
  std::string every = "\u00e9\U0001F600";
  for (char byte = 0; byte < 0x7F; ++byte) every.push_back(byte);
  std::string bytes = "{\"a\":";
  append_json_text(bytes, every);
  bytes += "}";
  const auto fields = parse_flat_json(bytes);
  ASSERT_TRUE(fields.ok()) << bytes;
  EXPECT_EQ(fields.value().find("a")->second.text, every);
}

TEST(FlatJson, KnowsUtf8) {
  EXPECT_TRUE(is_utf8("a\u00e9\uFFFD\U0010FFFF"));
  for (const char* const bytes : {"\x80", "\xC1\x81", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80",
                                  "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"}) {
    EXPECT_FALSE(is_utf8(bytes));
  }
}

}  // namespace
}  // namespace leasehold::client
