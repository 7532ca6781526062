// Notices of ended processes over real sockets.

#include <leasehold/net/notice_port.h>
#include <leasehold/tls/digest.h>
#include <leasehold/wire/notice.h>

#include <gtest/gtest.h>
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/udp.hpp>

#include <array>
#include <chrono>
#include <string>
#include <vector>

namespace leasehold::net {
namespace {

constexpr std::uint64_t kCluster = 77;
constexpr raft::NodeId kSelf{9};

wire::EndNotice notice_of(std::uint64_t incarnation, char secret = 's') {
  wire::EndNotice notice;
  notice.cluster_id = kCluster;
  notice.ended = {raft::NodeId(1), raft::Uuid{2, 3}, {raft::Incarnation(incarnation), 4}};
  notice.secret = std::string(wire::kSecretBytes, secret);
  return notice;
}

wire::Hello hello_of(const wire::EndNotice& notice) {
  wire::Hello hello;
  hello.from = notice.ended.id;
  hello.uuid = notice.ended.uuid;
  hello.incarnation = notice.ended.process.incarnation;
  hello.place = notice.ended.process.place;
  hello.end_commitment = tls::sha256(notice.secret);
  return hello;
}

class NoticePortTest : public ::testing::Test {
 protected:
  NoticePortTest() {
    // Any free port.
    asio::ip::udp::socket probe(io_, {asio::ip::make_address("127.0.0.1"), 0});
    at_ = probe.local_endpoint();
    probe.close();
    const auto listening = port_.listen({"127.0.0.1", at_.port()});
    EXPECT_TRUE(listening.ok()) << listening.error().message;
    sender_.open(asio::ip::udp::v4());
    sender_.non_blocking(true);
  }

  /// The answer; empty if none came.
  std::string send(const std::string& datagram) {
    const std::uint64_t seen = taken();
    const bool empty = datagram.empty();
    sender_.send_to(asio::buffer(datagram), at_);
    std::array<char, 64> answer{};
    for (int i = 0; i < 1000; ++i) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(5));
      asio::error_code error;
      asio::ip::udp::endpoint from;
      const std::size_t bytes = sender_.receive_from(asio::buffer(answer), from, 0, error);
      if (!error) return std::string(answer.data(), bytes);
      if (taken() > seen && !empty) break;
    }
    return "";
  }
  std::uint64_t taken() const {
    const NoticeCounters& counters = port_.counters();
    return counters.believed + counters.late + counters.refused;
  }
  std::string send(const wire::EndNotice& notice) { return send(wire::encode_notice(notice)); }

  asio::io_context io_;
  std::vector<raft::Peer> ended_;
  NoticePort port_{io_, kCluster, kSelf,
                   [this](const raft::Peer& peer) { ended_.push_back(peer); }};
  asio::ip::udp::socket sender_{io_};
  asio::ip::udp::endpoint at_;
};

TEST_F(NoticePortTest, BelievesWhoHasTheSecretAndAnswersEachCopy) {
  const wire::EndNotice notice = notice_of(5);
  port_.met(hello_of(notice));
  EXPECT_EQ(send(notice), wire::encode_notice_answer(notice.ended, kSelf));
  EXPECT_EQ(send(notice), wire::encode_notice_answer(notice.ended, kSelf));
  EXPECT_EQ(ended_, std::vector{notice.ended});
  EXPECT_EQ(port_.counters().believed, 1U);
  EXPECT_EQ(port_.counters().refused, 0U);
}

TEST_F(NoticePortTest, RefusesAForgedOneWithoutAnAnswer) {
  const wire::EndNotice notice = notice_of(5);
  port_.met(hello_of(notice));
  wire::EndNotice other_cluster = notice;
  other_cluster.cluster_id = 78;
  wire::EndNotice other_directory = notice;
  other_directory.ended.uuid.low = 9;
  wire::EndNotice other_place = notice;
  other_place.ended.process.place = 9;
  wire::EndNotice other_node = notice;
  other_node.ended.id = raft::NodeId(2);
  std::uint64_t refused = 0;
  for (const wire::EndNotice& forged :
       {notice_of(5, 'x'), notice_of(6), other_cluster, other_directory, other_place, other_node}) {
    EXPECT_EQ(send(forged), "");
    EXPECT_EQ(port_.counters().refused, ++refused);
  }
  EXPECT_EQ(send("short"), "");
  EXPECT_EQ(send(std::string(2000, 'x')), "");
  EXPECT_TRUE(ended_.empty());
}

// The process that is met now has a secret of its own.
TEST_F(NoticePortTest, RefusesTheNoticeOfAnEarlierLife) {
  const wire::EndNotice earlier = notice_of(5, 'a');
  port_.met(hello_of(earlier));
  port_.met(hello_of(notice_of(6, 'b')));
  EXPECT_EQ(send(earlier), "");
  wire::EndNotice mixed = notice_of(6, 'a');
  EXPECT_EQ(send(mixed), "");
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(port_.counters().late, 1U);
  EXPECT_EQ(port_.counters().refused, 1U);
}

TEST_F(NoticePortTest, KnowsNobodyWhoPromisedNoNotice) {
  wire::Hello hello = hello_of(notice_of(5));
  hello.end_commitment.clear();
  port_.met(hello);
  EXPECT_EQ(send(notice_of(5)), "");
  wire::EndNotice empty = notice_of(5);
  EXPECT_EQ(send(empty), "");
  EXPECT_TRUE(ended_.empty());
}

TEST_F(NoticePortTest, SaysThatItsPortIsTaken) {
  NoticePort second(io_, kCluster, kSelf, [](const raft::Peer&) {});
  const auto listening = second.listen({"127.0.0.1", at_.port()});
  ASSERT_FALSE(listening.ok());
  EXPECT_EQ(listening.error().code, ErrorCode::in_use);
}

}  // namespace
}  // namespace leasehold::net
