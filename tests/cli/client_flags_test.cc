// The flags of the commands with a parser of their own.
#include <leasehold/cli/client_flags.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

Result<ClientFlags> parse(const Words& given) {
  return ClientFlags::parse(given, {"--servers", "--wait"}, {"--json"});
}

std::string refusal(const Words& given) {
  const auto flags = parse(given);
  if (flags) return "accepted";
  EXPECT_EQ(flags.error().code, ErrorCode::invalid_argument);
  return flags.error().message;
}

TEST(ClientFlags, StandAnywhereBetweenTheWords) {
  const auto flags = parse({"grant", "--servers", "a:1,b:2", "--json", "name", "--wait=5s"});
  ASSERT_TRUE(flags.ok());
  EXPECT_THAT(flags.value().words(), ElementsAre("grant", "name"));
  EXPECT_EQ(flags.value().text("--servers"), "a:1,b:2");
  EXPECT_EQ(flags.value().text("--wait"), "5s");
  EXPECT_TRUE(flags.value().has("--json"));
  EXPECT_THAT(flags.value().rest(), IsEmpty());
}

TEST(ClientFlags, MayBeGivenSeveralTimes) {
  const auto flags = parse({"--wait", "1s", "--wait=2s"});
  ASSERT_TRUE(flags.ok());
  EXPECT_EQ(flags.value().text("--wait"), "2s");
  EXPECT_THAT(flags.value().texts("--wait"), ElementsAre("1s", "2s"));
  EXPECT_THAT(flags.value().texts("--servers"), IsEmpty());
}

TEST(ClientFlags, WhatWasNotGivenIsEmpty) {
  const auto flags = parse({});
  ASSERT_TRUE(flags.ok());
  EXPECT_FALSE(flags.value().has("--json"));
  EXPECT_FALSE(flags.value().has("--servers"));
  EXPECT_EQ(flags.value().text("--servers"), "");
  EXPECT_EQ(flags.value().duration("--wait", 7s).value(), 7s);
}

TEST(ClientFlags, NothingBehindTwoDashesIsAFlag) {
  const auto flags = parse({"name", "--", "ls", "--json", "--", "--unknown"});
  ASSERT_TRUE(flags.ok());
  EXPECT_THAT(flags.value().words(), ElementsAre("name"));
  EXPECT_THAT(flags.value().rest(), ElementsAre("ls", "--json", "--", "--unknown"));
  EXPECT_FALSE(flags.value().has("--json"));
}

TEST(ClientFlags, AValueMayBeEmptyOrLookLikeAFlag) {
  EXPECT_EQ(parse({"--servers="}).value().text("--servers"), "");
  EXPECT_TRUE(parse({"--servers="}).value().has("--servers"));
  EXPECT_EQ(parse({"--servers", "--json"}).value().text("--servers"), "--json");
  EXPECT_FALSE(parse({"--servers", "--json"}).value().has("--json"));
  EXPECT_EQ(parse({"--servers=a=b"}).value().text("--servers"), "a=b");
}

TEST(ClientFlags, TheLastOneCounts) {
  EXPECT_EQ(parse({"--wait", "1s", "--wait=2s"}).value().text("--wait"), "2s");
}

TEST(ClientFlags, OthersAreRefused) {
  EXPECT_THAT(refusal({"--unknown"}), HasSubstr("unknown option '--unknown'"));
  EXPECT_THAT(refusal({"--json=1"}), HasSubstr("unknown option '--json=1'"));
  EXPECT_THAT(refusal({"-"}), HasSubstr("unknown option '-'"));
  EXPECT_THAT(refusal({"name", "--wait"}), HasSubstr("--wait needs a value"));
}

TEST(ClientFlags, DurationsSayWhichFlagIsWrong) {
  EXPECT_EQ(parse({"--wait", "250ms"}).value().duration("--wait", 7s).value(), 250ms);
  for (const char* text : {"", "5", "-5s", "soon", "99999999999999m"}) {
    const auto flags = parse({std::string("--wait=") + text});
    ASSERT_TRUE(flags.ok());
    const auto wait = flags.value().duration("--wait", 7s);
    ASSERT_FALSE(wait.ok()) << text;
    EXPECT_THAT(wait.error().message, HasSubstr("--wait: "));
  }
}

TEST(ClientFlags, HelpIsAskedForBeforeTheCommand) {
  EXPECT_TRUE(wants_help({"name", "--help"}));
  EXPECT_TRUE(wants_help({"-h"}));
  EXPECT_FALSE(wants_help({"name", "--", "ls", "--help"}));
  EXPECT_FALSE(wants_help({}));
}

}  // namespace
}  // namespace leasehold::cli
