#include <leasehold/bench/load/reply.h>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace leasehold::bench {
namespace {

using Kind = ReplyView::Kind;

const char* const kReplies[] = {
    "+OK\r\n",
    "-TRYAGAIN the leader changed\r\n",
    ":12\r\n",
    "$5\r\nva\r\nl\r\n",
    "$0\r\n\r\n",
    "$-1\r\n",
    "_\r\n",
    "*-1\r\n",
    "*0\r\n",
    "*2\r\n$1\r\na\r\n$-1\r\n",
    "*2\r\n*1\r\n:1\r\n+x\r\n",
    "%1\r\n+a\r\n:1\r\n",
    "#t\r\n",
};

TEST(FirstReply, EveryReplyHasItsLengthAndEveryBeginningOfItNone) {
  for (const std::string reply : kReplies) {
    const auto whole = first_reply(reply + "$3\r\nnext");
    ASSERT_TRUE(whole.ok()) << reply;
    EXPECT_EQ(whole.value().length, reply.size()) << reply;
    for (std::size_t length = 0; length < reply.size(); ++length) {
      const auto part = first_reply(std::string_view(reply).substr(0, length));
      ASSERT_TRUE(part.ok()) << reply << " " << length;
      EXPECT_EQ(part.value().kind, Kind::incomplete) << reply << " " << length;
    }
  }
}

TEST(FirstReply, ErrorsAndNullsAreKnown) {
  EXPECT_EQ(first_reply("-MOVED 1 h:2\r\n").value().kind, Kind::error);
  EXPECT_EQ(first_reply("-MOVED 1 h:2\r\n").value().text, "MOVED 1 h:2");
  EXPECT_EQ(first_reply("$-1\r\n").value().kind, Kind::null);
  EXPECT_EQ(first_reply("_\r\n").value().kind, Kind::null);
  EXPECT_EQ(first_reply("$2\r\n-1\r\n").value().kind, Kind::value);
  EXPECT_EQ(first_reply("*1\r\n$-1\r\n").value().kind, Kind::value);
}

TEST(FirstReply, TheBytesOfAStringAreItsText) {
  EXPECT_EQ(first_reply("$5\r\nva\r\nl\r\n").value().text, "va\r\nl");
  EXPECT_EQ(first_reply("$2\r\nab\r\n$2\r\ncd\r\n").value().text, "ab");
  EXPECT_EQ(first_reply("$0\r\n\r\n").value().text, "");
  EXPECT_EQ(first_reply("$-1\r\n").value().text, "");
}

TEST(FirstReply, WhatIsNoReplyIsRefused) {
  const std::string deep = [] {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "*1\r\n";
    return text;
  }();
  for (const std::string& bytes :
       {std::string("HTTP/1.1 200 OK\r\n"), std::string("$x\r\n"), std::string("$-2\r\n"),
        std::string("$1\r\nabc"), std::string("*99999999\r\n"), std::string("$99999999999\r\n"),
        "+" + std::string(100'000, 'x'), deep}) {
    EXPECT_FALSE(first_reply(bytes).ok()) << bytes.substr(0, 30);
  }
}

TEST(ErrorWord, IsTheFirstOneIfItCanBeRead) {
  EXPECT_EQ(error_word("TRYAGAIN the leader changed"), "TRYAGAIN");
  EXPECT_EQ(error_word("ERR"), "ERR");
  EXPECT_EQ(error_word(""), "unreadable");
  EXPECT_EQ(error_word("\x01\x02 x"), "unreadable");
  EXPECT_EQ(error_word(std::string(100, 'X')).size(), 32U);
}

}  // namespace
}  // namespace leasehold::bench
