// Inputs that chance alone would hardly find: commands.
#include <leasehold/base/random.h>
#include <leasehold/server/command_table.h>
#include <leasehold/server/resp.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/reply_length.h>

#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace leasehold::fuzz {
namespace {

using server::append_array;
using server::append_bulk;
using server::commands_begin;
using server::commands_end;

/// Words that mean something somewhere, in any order, behind every command of the table.
TEST(FuzzClient, EveryCommandWithAnyWords) {
  std::istringstream list(
      "a b 0 -1 1 2 3 9223372036854775807 * [a- MATCH COUNT NX XX GET EX PX ID ADDR ON OFF SKIP "
      "stale 1s quorum log lease FILTERBY PATTERN SETNAME LEASE TOKEN NAME HOLDER GRACE SOFT DELAY "
      "AFTER KEY PREFIX FROM VALUES KEEPTTL GT __keyspace@0__:a __keyevent@0__:*");
  std::vector<std::string> words{std::istream_iterator<std::string>(list), {}};
  words.insert(words.end(), {"", std::string("\0\r\n\xff", 4)});
  Random random(52);
  for (int i = 0; i < 4000; ++i) {
    std::string input(1, static_cast<char>(random.below(256)));
    for (std::uint64_t n = random.below(12) + 1; n > 0; --n) {
      const auto at = random.below(static_cast<std::uint64_t>(commands_end() - commands_begin()));
      const std::string_view name = commands_begin()[at].name;
      std::vector<std::string> request = {std::string(name.substr(0, name.find('|')))};
      if (name.find('|') != std::string_view::npos) {
        request.emplace_back(name.substr(name.find('|') + 1));
      }
      for (std::uint64_t w = random.below(5); w > 0; --w) {
        request.push_back(words[random.below(words.size())]);
      }
      append_array(input, request.size());
      for (const std::string& word : request) append_bulk(input, word);
    }
    if (random.chance(1, 3))
      input[random.below(input.size())] = static_cast<char>(random.below(256));
    take(input);
  }
}

TEST(FuzzClient, TheJudgeOfRepliesKnowsWrongOnes) {
  EXPECT_EQ(reply_length("+OK\r\n"), 5U);
  EXPECT_EQ(reply_length("*2\r\n$1\r\na\r\n*-1\r\nrest"), 16U);
  EXPECT_EQ(reply_length("%1\r\n_\r\n:1\r\n"), 11U);
  EXPECT_EQ(reply_length(">2\r\n+progress\r\n:1\r\nrest"), 19U);
  for (const char* wrong : {"", "OK\r\n", "+OK", "$2\r\na\r\n", "$1\r\nab\r\n", "*2\r\n:1\r\n",
                            ":x\r\n", "_x\r\n", "+a\nb\r\n", "*-2\r\n"}) {
    EXPECT_EQ(reply_length(wrong), 0U) << wrong;
  }
}

}  // namespace
}  // namespace leasehold::fuzz
