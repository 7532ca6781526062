// Replies of the server, as the client's side reads them back.
#include <leasehold/client/resp_client.h>
#include <leasehold/server/front/resp.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::server {
namespace {

using client::RespClient;
using client::RespValue;

RespValue parsed(const std::string& bytes) {
  RespValue value;
  const auto length = parse_reply(bytes, value);
  EXPECT_TRUE(length.ok() && length.value() == bytes.size()) << bytes;
  return value;
}

TEST(Replies, AreReadBack) {
  EXPECT_EQ(parsed("+OK\r\n").text, "OK");
  EXPECT_TRUE(parsed("-NOLEADER x\r\n").is_error("NOLEADER"));
  EXPECT_EQ(parsed(":-5\r\n").integer, -5);
  EXPECT_EQ(parsed("$0\r\n\r\n").kind, RespValue::Kind::bulk);
  EXPECT_EQ(parsed("$-1\r\n").kind, RespValue::Kind::null);
  EXPECT_EQ(parsed("_\r\n").kind, RespValue::Kind::null);
  EXPECT_EQ(parsed("*2\r\n:1\r\n*1\r\n$1\r\nx\r\n").items.at(1).items.at(0).text, "x");
  EXPECT_EQ(parsed("%1\r\n+a\r\n:1\r\n").items.size(), 2U);
}

TEST(Replies, PushesAreToldFromThem) {
  std::string bytes;
  append_push(bytes, 2, Protocol::resp3);
  append_bulk(bytes, "progress");
  append_integer(bytes, 7);
  RespValue value;
  EXPECT_EQ(parse_reply(bytes, value).value(), bytes.size());
  EXPECT_EQ(value.kind, RespValue::Kind::push);
  EXPECT_EQ(value.items.at(1).integer, 7);
  bytes.front() = '*';
  std::string older;
  append_push(older, 2, Protocol::resp2);
  EXPECT_EQ(bytes.substr(0, older.size()), older);
}

TEST(Replies, TruncatedOnesWaitAndDamagedOnesAreRefused) {
  const std::string whole = "*2\r\n$3\r\nabc\r\n:17\r\n";
  RespValue value;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto length = parse_reply(std::string_view(whole).substr(0, size), value);
    ASSERT_TRUE(length.ok());
    EXPECT_EQ(length.value(), 0U);
  }
  for (const char* bytes : {"?\r\n", ":x\r\n", "$-2\r\n", "$x\r\n", "$1\r\nabc", "*-2\r\n",
                            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"}) {
    EXPECT_FALSE(parse_reply(bytes, value).ok()) << bytes;
  }
}

}  // namespace
}  // namespace leasehold::server
