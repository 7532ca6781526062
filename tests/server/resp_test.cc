// The request parser against every way in which bytes can arrive, and the replies' exact bytes.
#include <leasehold/base/random.h>
#include <leasehold/server/front/resp.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

struct Outcome {
  std::vector<Words> requests;
  std::string error;  ///< of the malformed request that ended it, if one did
  std::size_t left = 0;
};

/// Parses `bytes` as they arrive in pieces that end at `cuts`, each time from memory that has just
/// moved.
Outcome parse_in_pieces(std::string_view bytes, const std::vector<std::size_t>& cuts) {
  RequestParser parser;
  Outcome outcome;
  std::string buffer;
  std::size_t arrived = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t end = i < cuts.size() ? cuts[i] : bytes.size();
    buffer = buffer + std::string(bytes.substr(arrived, end - arrived));
    buffer.shrink_to_fit();
    arrived = end;
    for (;;) {
      const ParseStatus status = parser.parse(buffer);
      if (status == ParseStatus::incomplete) break;
      if (status == ParseStatus::malformed) {
        outcome.error = parser.error();
        return outcome;
      }
      outcome.requests.emplace_back(parser.args().begin(), parser.args().end());
      buffer.erase(0, parser.consumed());
    }
  }
  outcome.left = buffer.size();
  return outcome;
}

Outcome parse_all(std::string_view bytes) {
  return parse_in_pieces(bytes, {});
}

std::string request(const Words& words) {
  std::string out;
  append_array(out, words.size());
  for (const std::string& word : words) append_bulk(out, word);
  return out;
}

TEST(RequestParser, TakesArraysOfBulkStrings) {
  const Outcome outcome = parse_all("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n");
  EXPECT_THAT(outcome.requests, ElementsAre(Words{"SET", "k", ""}, Words{"PING"}));
  EXPECT_EQ(outcome.left, 0U);
}

TEST(RequestParser, TakesBinaryWords) {
  const std::string word("\r\n\0$*\xff", 6);
  EXPECT_THAT(parse_all(request({word, word})).requests, ElementsAre(Words{word, word}));
}

TEST(RequestParser, TakesInlineLinesWithQuotes) {
  EXPECT_THAT(parse_all("PING\r\nset k \"a \\x41\\n\\\"\"  'it\\'s' \n\r\n  \nGET k\n").requests,
              ElementsAre(Words{"PING"}, Words{"set", "k", "a A\n\"", "it's"}, Words{}, Words{},
                          Words{"GET", "k"}));
}

TEST(RequestParser, EmptyAndNullArraysAskForNothing) {
  EXPECT_THAT(parse_all("*0\r\n*-1\r\n*-10\r\n*-1000000000\r\n*1\r\n$4\r\nPING\r\n").requests,
              ElementsAre(Words{}, Words{}, Words{}, Words{}, Words{"PING"}));
}

TEST(RequestParser, EverySplitPointGivesTheSameRequests) {
  const std::string bytes = request({"SET", "key", "value\r\nwith line ends"}) + "set k 'a b'\r\n" +
                            "*0\r\n" + request({"GET", ""}) + "PING\n";
  const std::vector<Words> whole = parse_all(bytes).requests;
  ASSERT_EQ(whole.size(), 5U);
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (std::size_t second = first; second <= bytes.size(); ++second) {
      ASSERT_EQ(parse_in_pieces(bytes, {first, second}).requests, whole)
          << "cut at " << first << " and " << second;
    }
  }
}

TEST(RequestParser, ByteByByteGivesTheSameRequests) {
  const std::string bytes = request({"SET", "key", std::string(300, 'v')}) + "GET key\r\n";
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < bytes.size(); ++i) cuts.push_back(i);
  EXPECT_EQ(parse_in_pieces(bytes, cuts).requests, parse_all(bytes).requests);
}

TEST(RequestParser, EveryTruncationIsIncomplete) {
  const std::string bytes = request({"SET", "key", "value"});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Outcome outcome = parse_all(std::string_view(bytes).substr(0, size));
    EXPECT_THAT(outcome.requests, IsEmpty()) << size;
    EXPECT_EQ(outcome.error, "") << size;
    EXPECT_EQ(outcome.left, size);
  }
}

TEST(RequestParser, KnowsHowLongAnUnfinishedRequestIs) {
  RequestParser parser;
  ASSERT_EQ(parser.parse("*1\r\n$1000\r\nab"), ParseStatus::incomplete);
  EXPECT_EQ(parser.expected(), 4U + 7U + 1000U + 2U);
}

TEST(RequestParser, KnowsALineFromAnArray) {
  RequestParser parser;
  ASSERT_EQ(parser.parse("PING\r\n"), ParseStatus::complete);
  EXPECT_TRUE(parser.is_line());
  ASSERT_EQ(parser.parse("*1\r\n$4\r\nPING\r\n"), ParseStatus::complete);
  EXPECT_FALSE(parser.is_line());
}

TEST(RequestParser, AStrangerMaySendLittle) {
  const auto error_of = [](const std::string& bytes) {
    RequestParser parser;
    const ParseStatus status = parser.parse(bytes, kStrangerLimits);
    return status == ParseStatus::malformed ? parser.error() : "";
  };
  EXPECT_EQ(error_of("*10\r\n"), "");
  EXPECT_EQ(error_of("*11\r\n"), "Protocol error: unauthenticated multibulk length");
  EXPECT_EQ(error_of("*2\r\n$4\r\nAUTH\r\n$16384\r\n"), "");
  EXPECT_EQ(error_of("*2\r\n$4\r\nAUTH\r\n$16385\r\n"),
            "Protocol error: unauthenticated bulk length");
}

TEST(RequestParser, CountsWhatManyWordsCostAndGivesItBack) {
  RequestParser parser;
  std::string bytes = "*65536\r\n";
  for (int i = 0; i < 65535; ++i) bytes += "$0\r\n\r\n";
  ASSERT_EQ(parser.parse(bytes), ParseStatus::incomplete);
  const std::size_t unfinished = parser.held_bytes();
  EXPECT_GE(unfinished, 65535U * 2 * sizeof(std::size_t));
  parser.trim();
  EXPECT_EQ(parser.held_bytes(), unfinished) << "the request goes on";
  bytes += "$0\r\n\r\n";
  ASSERT_EQ(parser.parse(bytes), ParseStatus::complete);
  EXPECT_EQ(parser.args().size(), 65536U);
  parser.trim();
  EXPECT_LT(parser.held_bytes(), 64U << 10U);
  ASSERT_EQ(parser.parse("*1\r\n$4\r\nPING\r\n"), ParseStatus::complete);
  EXPECT_THAT(parser.args(), ElementsAre("PING"));
}

TEST(RequestParser, RefusesWhatIsNoRequest) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"*x\r\n", "invalid multibulk length"},
      {"*-0\r\n", "invalid multibulk length"},
      {"*-02\r\n", "invalid multibulk length"},
      {"*-9223372036854775809\r\n", "invalid multibulk length"},
      {"*01\r\n", "invalid multibulk length"},
      {"*+1\r\n", "invalid multibulk length"},
      {"*\r\n", "invalid multibulk length"},
      {"*1\rX", "invalid multibulk length"},
      {"*65537\r\n", "invalid multibulk length"},
      {"*99999999999999999999", "invalid multibulk length"},
      {"*1\r\n:1\r\n", "expected '$', got ':'"},
      {std::string("*1\r\n\0", 5), "expected '$', got byte 0"},
      {"*1\r\n$-1\r\n", "invalid bulk length"},
      {"*1\r\n$\r\n", "invalid bulk length"},
      {"*1\r\n$1 \r\n", "invalid bulk length"},
      {"*1\r\n$" + std::to_string(kBulkBytesMax + 1) + "\r\n", "invalid bulk length"},
      {"*1\r\n$1111111111111111111111", "invalid bulk length"},
      {"*1\r\n$1\r\nabc", "expected CRLF after a bulk string"},
      {"*1\r\n$1\r\na\rx", "expected CRLF after a bulk string"},
      {"set k \"open\r\n", "unbalanced quotes in request"},
      {"set k 'a'b\r\n", "unbalanced quotes in request"},
      {std::string(kInlineBytesMax, 'a'), "too big inline request"},
  };
  for (const auto& [bytes, error] : cases) {
    EXPECT_THAT(parse_all(bytes).error, HasSubstr(error)) << bytes.substr(0, 40);
    std::vector<std::size_t> cuts;
    if (bytes.size() < 100) {
      for (std::size_t i = 1; i < bytes.size(); ++i) cuts.push_back(i);
    }
    EXPECT_THAT(parse_in_pieces(bytes, cuts).error, HasSubstr(error)) << "byte by byte";
  }
}

TEST(RequestParser, TheLargestBulkAndTheMostWordsAreTaken) {
  const std::string large(kBulkBytesMax, 'v');
  EXPECT_THAT(parse_all(request({large})).requests, ElementsAre(Words{large}));
  EXPECT_EQ(parse_all(request(Words(kArgumentsMax, "k"))).requests.at(0).size(), kArgumentsMax);
}

TEST(RequestParser, AWholeRequestIsBounded) {
  const std::string large(kBulkBytesMax, 'v');
  EXPECT_THAT(parse_all(request({large, large})).error, HasSubstr("request larger than"));
}

TEST(RequestParser, IsAsGoodAsNewAfterAMalformedRequest) {
  RequestParser parser;
  ASSERT_EQ(parser.parse("*x\r\n"), ParseStatus::malformed);
  ASSERT_EQ(parser.parse("PING\r\n"), ParseStatus::complete);
  EXPECT_THAT(parser.args(), ElementsAre("PING"));
}

TEST(RequestParser, RandomBytesNeverBreakIt) {
  Random random(7);
  const std::string alphabet = "*$0123456789-\r\n ab'\"\\:";
  std::size_t requests = 0, errors = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    const std::size_t size = random.below(60);
    for (std::size_t i = 0; i < size; ++i) {
      const bool raw = random.chance(1, 50);
      bytes.push_back(raw ? static_cast<char>(random.below(256))
                          : alphabet[random.below(alphabet.size())]);
    }
    const std::size_t cut = random.below(size + 1);
    const Outcome whole = parse_all(bytes);
    const Outcome pieces = parse_in_pieces(bytes, {cut});
    ASSERT_EQ(whole.requests, pieces.requests);
    ASSERT_EQ(whole.error, pieces.error);
    requests += whole.requests.size();
    errors += whole.error.empty() ? 0 : 1;
  }
  // Both kinds of ending were reached often.
  EXPECT_GT(requests, 1000U);
  EXPECT_GT(errors, 1000U);
}

TEST(RequestParser, DamagedRequestsNeverBreakIt) {
  Random random(8);
  const std::string good = request({"SET", "key", "value"}) + request({"GET", "key"});
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    const std::uint64_t flips = 1 + random.below(3);
    for (std::uint64_t i = 0; i < flips; ++i) {
      const std::size_t at = random.below(bytes.size());
      bytes[at] = static_cast<char>(random.below(256));
    }
    const Outcome whole = parse_all(bytes);
    const Outcome pieces = parse_in_pieces(bytes, {random.below(bytes.size())});
    ASSERT_EQ(whole.requests, pieces.requests);
    ASSERT_EQ(whole.error, pieces.error);
  }
}

TEST(Replies, HaveTheBytesOfTheProtocol) {
  std::string out;
  append_simple(out, "OK");
  append_error(out, "ERR two\r\nlines");
  append_integer(out, -12);
  append_bulk(out, std::string_view("a\0b", 3));
  append_bulk(out, "");
  append_null(out, Protocol::resp2);
  append_null(out, Protocol::resp3);
  append_array(out, 2);
  append_map(out, 2, Protocol::resp2);
  append_map(out, 2, Protocol::resp3);
  using namespace std::string_view_literals;
  EXPECT_EQ(
      out,
      "+OK\r\n-ERR two  lines\r\n:-12\r\n$3\r\na\0b\r\n$0\r\n\r\n$-1\r\n_\r\n*2\r\n*4\r\n%2\r\n"sv);
}

}  // namespace
}  // namespace leasehold::server
