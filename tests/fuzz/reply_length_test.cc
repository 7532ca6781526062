#include <leasehold/tests/fuzz/reply_length.h>

#include <gtest/gtest.h>

namespace leasehold::fuzz {
namespace {

TEST(ReplyLength, KnowsWrongReplies) {
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
