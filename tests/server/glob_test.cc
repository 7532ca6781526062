#include <leasehold/base/random.h>
#include <leasehold/server/front/glob.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::server {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t budget = kPatternStepsMax;
  const bool result = glob_matches(pattern, text, budget);
  EXPECT_GT(budget, 0U);
  return result;
}

TEST(Glob, EveryFormOfAPattern) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("**a*", "ba"));
  EXPECT_TRUE(matches("h?llo", "hello"));
  EXPECT_FALSE(matches("h?llo", "hllo"));
  EXPECT_TRUE(matches("h*llo", "heeeello"));
  EXPECT_TRUE(matches("h[ae]llo", "hallo"));
  EXPECT_TRUE(matches("h[aea]llo", "hallo"));
  EXPECT_FALSE(matches("h[ae]llo", "hillo"));
  EXPECT_TRUE(matches("h[^e]llo", "hallo"));
  EXPECT_FALSE(matches("h[^e]llo", "hello"));
  EXPECT_TRUE(matches("h[a-c]llo", "hbllo"));
  EXPECT_TRUE(matches("h[c-a]llo", "hbllo"));
  EXPECT_TRUE(matches("[\\]]", "]"));
  EXPECT_TRUE(matches("[a\\]a]", "a"));
  EXPECT_TRUE(matches("\\*", "*"));
  EXPECT_FALSE(matches("\\*", "a"));
  EXPECT_TRUE(matches("\\", "\\"));
  EXPECT_TRUE(matches("[ab", "b"));
  EXPECT_FALSE(matches("a[", "a"));
  EXPECT_FALSE(matches("*a*b*c", "aabbcb"));
}

/// In the shortest way; exponential.
bool twin(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return twin(pattern.substr(1), text) || (!text.empty() && twin(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         twin(pattern.substr(1), text.substr(1));
}

TEST(Glob, AgreesWithTheTwinOnStars) {
  Random random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string pattern, text;
    for (std::uint64_t i = random.below(7); i > 0; --i) pattern.push_back("ab?*"[random.below(4)]);
    for (std::uint64_t i = random.below(8); i > 0; --i) text.push_back("ab"[random.below(2)]);
    ASSERT_EQ(matches(pattern, text), twin(pattern, text)) << pattern << " " << text;
  }
}

TEST(Glob, AnyBytesEnd) {
  Random random(4);
  for (int round = 0; round < 50000; ++round) {
    std::string pattern, text;
    for (std::uint64_t i = random.below(9); i > 0; --i)
      pattern.push_back("a-[]^\\*?z"[random.below(9)]);
    for (std::uint64_t i = random.below(6); i > 0; --i) text.push_back("a-[]z"[random.below(5)]);
    matches(pattern, text);
  }
}

TEST(Glob, ADearPatternSpendsItsBudgetAndEnds) {
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "*a";
  pattern += "b";
  std::size_t budget = 100'000;
  glob_matches(pattern, std::string(65536, 'a'), budget);
  EXPECT_EQ(budget, 0U);
}

}  // namespace
}  // namespace leasehold::server
