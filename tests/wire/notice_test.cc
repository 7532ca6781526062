#include <leasehold/wire/notice.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::wire {
namespace {

EndNotice good_notice() {
  EndNotice notice;
  notice.cluster_id = 0x1122334455667788U;
  notice.ended = {raft::NodeId(3), raft::Uuid{4, 5}, {raft::Incarnation(6), 7}};
  for (std::size_t i = 0; i < kSecretBytes; ++i) notice.secret += static_cast<char>(i);
  return notice;
}

TEST(EndNotice, ComesBackAsItWas) {
  EXPECT_EQ(decode_notice(encode_notice(good_notice())), good_notice());
}

// Other builds read these bytes.
TEST(EndNotice, HasTheseBytes) {
  const std::string bytes = encode_notice(good_notice());
  ASSERT_EQ(bytes.size(), kNoticeBytes);
  EXPECT_EQ(bytes.substr(0, 12), std::string("LHND\x01\0\0\0\0\0\0\0", 12));
  EXPECT_EQ(bytes.substr(12, 16),
            std::string("\x11\x22\x33\x44\x55\x66\x77\x88\0\0\0\0\0\0\0\x03", 16));
  EXPECT_EQ(bytes.substr(bytes.size() - 2), std::string("\x1e\x1f"));
  const std::string answer = encode_notice_answer(good_notice().ended, raft::NodeId(9));
  EXPECT_EQ(answer.size(), kAnswerBytes);
  EXPECT_EQ(answer.substr(0, 5), std::string("LHNA\x01"));
}

TEST(EndNotice, IsReadWholeOrNotAtAll) {
  const std::string good = encode_notice(good_notice());
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode_notice(good.substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_notice(good + "x"));
  for (std::size_t i = 0; i < 5; ++i) {
    std::string other = good;
    other[i] = static_cast<char>(other[i] + 1);
    EXPECT_FALSE(decode_notice(other)) << i;
  }
}

// A process without a place or an incarnation cannot be compared with another.
TEST(EndNotice, NamesAProcess) {
  EndNotice notice = good_notice();
  notice.ended.process.place = 0;
  EXPECT_FALSE(decode_notice(encode_notice(notice)));
  notice = good_notice();
  notice.ended.process.incarnation = raft::Incarnation(0);
  EXPECT_FALSE(decode_notice(encode_notice(notice)));
}

}  // namespace
}  // namespace leasehold::wire
