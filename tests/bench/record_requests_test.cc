#include <leasehold/bench/floors/record_requests.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::bench {
namespace {

using Kind = RecordRequest::Kind;

const std::string kSet = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nva\r\nl\r\n";

TEST(RecordRequests, ASetOfAnySizeIsARecord) {
  const RecordRequest request = first_request(kSet + "*1\r\n");
  EXPECT_EQ(request.kind, Kind::record);
  EXPECT_EQ(request.length, kSet.size());
  EXPECT_EQ(first_request("*3\r\n$3\r\nset\r\n$1\r\nk\r\n$0\r\n\r\n").kind, Kind::record);
}

TEST(RecordRequests, EveryBeginningIsIncomplete) {
  for (std::size_t length = 0; length < kSet.size(); ++length) {
    EXPECT_EQ(first_request(std::string_view(kSet).substr(0, length)).kind, Kind::incomplete)
        << length;
  }
}

// What redis-benchmark sends before its first SET; without an answer it waits forever.
TEST(RecordRequests, TheQuestionsOfRedisBenchmarkAreAnswered) {
  const std::string config = "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$4\r\nsave\r\n";
  const RecordRequest request = first_request(config);
  EXPECT_EQ(request.kind, Kind::other);
  EXPECT_EQ(request.length, config.size());
  EXPECT_EQ(request.reply, "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
  EXPECT_EQ(first_request("PING\r\n").reply, "+PONG\r\n");
  EXPECT_EQ(first_request("*1\r\n$4\r\nping\r\n").reply, "+PONG\r\n");
  EXPECT_EQ(first_request("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n").reply[0], '-');
}

TEST(RecordRequests, WhatIsNoRequestIsMalformed) {
  for (const char* bytes :
       {"*x\r\n", "*0\r\n", "*-1\r\n", "*1\r\n+OK\r\n", "*1\r\n$2\r\nSETxx", "*99999999\r\n",
        "*1\r\n$999999999999\r\n", "*1111111111111111111111111111"}) {
    EXPECT_EQ(first_request(bytes).kind, Kind::malformed) << bytes;
  }
  EXPECT_EQ(first_request(std::string(100'000, 'x')).kind, Kind::malformed);
}

}  // namespace
}  // namespace leasehold::bench
