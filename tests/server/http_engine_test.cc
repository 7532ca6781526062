// Bytes that come as a request of HTTP, and those that go back.
#include <leasehold/base/random.h>
#include <leasehold/server/admin/http_engine.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpEngineTest : public ::testing::Test {
 protected:
  std::string respond(const std::string& head) { return engine_.respond(head); }

  HttpRequest seen_;
  int calls_ = 0;
  HttpAnswer answer_{200, "text/plain; charset=utf-8", std::string(3000, 'a')};
  HttpEngine engine_{[this](const HttpRequest& request) {
    seen_ = request;
    ++calls_;
    return answer_;
  }};
};

TEST_F(HttpEngineTest, APathAndItsQueryAreDecoded) {
  const std::string answer = respond(
      "GET /a%20b?group=1%2C2&group=9&x HTTP/1.1\r\nHost: here:1\r\nOrigin: http://there\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 3000\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n"));
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), answer_.body);
  EXPECT_EQ(seen_.path, "/a b");
  EXPECT_EQ(seen_.query.at("group"), "1,2");
  EXPECT_EQ(seen_.host, "here:1");
  EXPECT_EQ(seen_.origin, "http://there");
}

TEST_F(HttpEngineTest, HeadHasNoBody) {
  const std::string answer = respond("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST_F(HttpEngineTest, OtherMethodsAreRefusedAndNoBodyIsReadOrBelieved) {
  for (const char* head :
       {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
        "DELETE / HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS / HTTP/1.1\r\nHost: h\r\n\r\n"}) {
    EXPECT_THAT(respond(head), StartsWith("HTTP/1.1 405 ")) << head;
  }
  EXPECT_EQ(calls_, 0);
}

TEST_F(HttpEngineTest, WhatIsNoRequestIsABadOne) {
  for (const char* head : {"\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
                           "*1\r\n$4\r\nPING\r\n\r\n"}) {
    EXPECT_THAT(respond(head), StartsWith("HTTP/1.1 400 ")) << head;
  }
  EXPECT_EQ(calls_, 0);
}

TEST_F(HttpEngineTest, ThousandsOfRangesAreOneAnswer) {
  std::string ranges = "bytes=0-";
  for (int i = 0; i < 1000; ++i) ranges += ",0-";
  for (const std::string& wanted : {ranges, std::string("bytes=0-10"), std::string("bytes=9-1")}) {
    const std::string answer =
        respond("GET / HTTP/1.1\r\nHost: h\r\nRange: " + wanted + "\r\n\r\n");
    EXPECT_LT(answer.size(), 4000U) << wanted;
  }
  EXPECT_THAT(respond("GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=0-10\r\n\r\n"),
              StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpEngineTest, OnlyGzipIsUsedOfWhatIsOffered) {
  const std::string packed =
      respond("GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: br, gzip, deflate\r\n\r\n");
  EXPECT_THAT(packed, HasSubstr("\r\nContent-Encoding: gzip\r\n"));
  EXPECT_LT(packed.size(), 500U);
  EXPECT_THAT(respond("GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: br\r\n\r\n"),
              Not(HasSubstr("Content-Encoding")));
}

TEST_F(HttpEngineTest, AHeaderOfOursCannotBeSplit) {
  answer_.headers = {{"X-Ours", "a\r\nX-Theirs: b"}};
  EXPECT_THAT(respond("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Not(HasSubstr("\r\nX-Theirs")));
}

TEST_F(HttpEngineTest, WhateverComesIsAnsweredWithAStatus) {
  Random random(7);
  // Bytes of a request, and any others.
  const std::string known = "GETHADPOS /?&=%:;,-.\r\n\t\"HTP1.0bytes=Rangehost0123456789+";
  for (int i = 0; i < 3000; ++i) {
    std::string bytes;
    for (std::uint64_t left = random.below(60); left > 0; --left) {
      bytes.push_back(random.below(4) > 0 ? known[random.below(known.size())]
                                          : static_cast<char>(random.below(256)));
    }
    const bool framed = i % 2 == 0;
    const std::string answer =
        respond(framed ? "GET /" + bytes + " HTTP/1.1\r\nHost: h\r\n" + bytes + "\r\n\r\n"
                       : bytes + "\r\n\r\n");
    ASSERT_THAT(answer, StartsWith("HTTP/1.1 ")) << bytes;
    ASSERT_THAT(answer, HasSubstr("\r\n\r\n")) << bytes;
  }
}

}  // namespace
}  // namespace leasehold::server
