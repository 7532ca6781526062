// A stranger on the peer port can do nothing, and its attempts are counted.
#include <leasehold/base/random.h>
#include <leasehold/net/tcp_transport.h>
#include <leasehold/tests/net/tcp_rig.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::net {
namespace {

using raft::NodeId;
using ::testing::HasSubstr;

/// What this process has in memory.
std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all_pages = 0;
  std::size_t resident_pages = 0;
  statm >> all_pages >> resident_pages;
  EXPECT_GT(resident_pages, 0U);
  return resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Two good nodes that keep talking, and how much of it arrived.
class Hostile : public ::testing::Test {
 protected:
  void begin(const TcpLimits& limits) {
    TcpOptions options = TcpRig::options(1);
    options.limits = limits;
    victim = &rig.start(options);
    good = &rig.start(2);
    ASSERT_TRUE(rig.connect_all());
    connects = victim->transport->counters().connects;
  }
  void begin() { begin(TcpRig::options(1).limits); }

  std::uint16_t port() const { return victim->transport->port(); }

  /// Runs until the other side has ended the connection.
  bool closed(Stranger& stranger) {
    return rig.run_until([&] { return stranger.ended(); });
  }

  /// The good peers have not noticed anything.
  void expect_undisturbed() {
    const std::size_t before = victim->received.size();
    const std::size_t before_good = good->received.size();
    good->transport->send(NodeId(1), numbered(1));
    victim->transport->send(NodeId(2), numbered(1));
    EXPECT_TRUE(rig.run_until([&] {
      return victim->received.size() == before + 1 && good->received.size() == before_good + 1;
    }));
    EXPECT_EQ(victim->transport->counters().connects, connects);
    EXPECT_EQ(good->transport->counters().disconnects, 0U);
  }

  TcpRig rig;
  TestNode* victim = nullptr;
  TestNode* good = nullptr;
  std::uint64_t connects = 0;
};

TEST_F(Hostile, AnotherProtocolIsClosedAndCounted) {
  begin();
  Stranger stranger(port());
  stranger.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(closed(stranger));
  EXPECT_EQ(victim->rejected(RejectReason::malformed), 1U);
  ASSERT_EQ(victim->rejections.size(), 1U);
  EXPECT_THAT(victim->rejections[0].address, HasSubstr("127.0.0.1:"));
  expect_undisturbed();
}

TEST_F(Hostile, AMessageBeforeTheHandshakeIsClosed) {
  begin();
  Stranger stranger(port());
  stranger.send(message_bytes(numbered(1)));
  EXPECT_TRUE(closed(stranger));
  EXPECT_EQ(victim->rejected(RejectReason::malformed), 1U);
  EXPECT_TRUE(victim->received.empty());
  expect_undisturbed();
}

TEST_F(Hostile, ARefusalBeforeTheHandshakeIsClosed) {
  begin();
  Stranger stranger(port());
  wire::SendBuffer out;
  wire::encode_refusal(wire::Refusal{wire::RefusalCode::older_incarnation, "go away", {}}, out);
  std::string_view view;
  ASSERT_EQ(out.front(&view, 1), 1U);
  stranger.send(view);
  EXPECT_TRUE(closed(stranger));
  EXPECT_EQ(victim->rejected(RejectReason::malformed), 1U);
  EXPECT_EQ(victim->transport->counters().refused_by_peers, 0U);
  expect_undisturbed();
}

TEST_F(Hostile, ALargeFrameIsRefusedBeforeTheHandshake) {
  begin();
  Stranger stranger(port());
  stranger.send(message_bytes(with_payload(1, 100000)).substr(0, wire::kFrameHeaderBytes));
  EXPECT_TRUE(closed(stranger));
  EXPECT_EQ(victim->rejected(RejectReason::oversized), 1U);
  expect_undisturbed();
}

TEST_F(Hostile, AfterTheHandshakeBadFramesEndOnlyTheirConnection) {
  begin();
  ASSERT_TRUE(victim->transport->set_peer(PeerAddress{NodeId(3), "127.0.0.1:1"}).ok());
  Random random(31);
  const std::string hello = hello_bytes(test_hello(3, 1));
  const std::string good_frame = message_bytes(with_payload(7, 300));
  std::uint64_t good_frames = 0;
  std::uint64_t bad_ends = 0;
  for (int round = 0; round < 60; ++round) {
    std::string stream = hello + good_frame;
    ++good_frames;
    switch (round % 6) {
      case 0: stream += hello; break;  // a second hello
      case 1: stream += std::string(100, static_cast<char>(random.below(256))); break;
      case 2: {  // one flipped bit
        std::string flipped = good_frame;
        const std::size_t bit = random.below(flipped.size() * 8);
        flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
        stream += flipped;
        break;
      }
      case 3: {  // a header that announces 4 GiB
        wire::FrameHeader header{wire::kWireVersionMax, wire::FrameKind::message, 0x7fffffff,
                                 0x7fffffff, 0};
        wire::append_header(header, stream);
        break;
      }
      case 4: {  // a newer wire version
        std::string newer = good_frame;
        newer[4] = static_cast<char>(wire::kWireVersionMax + 1);
        stream += newer;
        break;
      }
      default: stream += hello_bytes(test_hello(3, 1)).substr(0, 20) + good_frame; break;
    }
    Stranger stranger(port());
    stranger.send(stream);
    ASSERT_TRUE(closed(stranger)) << round;
    ++bad_ends;
    ASSERT_EQ(victim->transport->counters().rejected_total(), bad_ends);
    ASSERT_EQ(victim->received.size(), good_frames);
  }
  EXPECT_EQ(victim->rejected(RejectReason::oversized), 10U);
  EXPECT_GE(victim->rejected(RejectReason::version), 10U);
  expect_undisturbed();
}

TEST_F(Hostile, AConnectionThatEndsInsideAFrameIsCounted) {
  begin();
  ASSERT_TRUE(victim->transport->set_peer(PeerAddress{NodeId(3), "127.0.0.1:1"}).ok());
  {
    Stranger stranger(port());
    const std::string frame = message_bytes(numbered(1));
    stranger.send(hello_bytes(test_hello(3, 1)) + frame.substr(0, frame.size() - 1));
    rig.run_until([&] { return victim->transport->counters().accepts == 2; });
    stranger.ended();
  }
  EXPECT_TRUE(rig.run_until([&] { return victim->rejected(RejectReason::malformed) == 1; }));
  expect_undisturbed();
}

TEST_F(Hostile, ASlowHandshakeIsEndedByItsDeadline) {
  TcpLimits limits = TcpRig::options(1).limits;
  limits.handshake_timeout = std::chrono::milliseconds(100);
  begin(limits);
  Stranger silent(port());
  Stranger slow(port());
  const std::string hello = hello_bytes(test_hello(2, 1));
  std::size_t at = 0;
  EXPECT_TRUE(rig.run_until([&] {
    // One byte a turn, but never the last one.
    if (at + 1 < hello.size()) slow.send(hello.substr(at++, 1));
    return silent.ended() && slow.ended();
  }));
  EXPECT_EQ(victim->rejected(RejectReason::handshake_timeout), 2U);
  expect_undisturbed();
}

TEST_F(Hostile, AFloodOfSilentConnectionsKeepsNoPeerOut) {
  TcpLimits limits = TcpRig::options(1).limits;
  limits.handshakes_max = 8;
  limits.handshake_timeout = std::chrono::minutes(10);
  begin(limits);
  std::vector<std::unique_ptr<Stranger>> flood;
  for (int i = 0; i < 400; ++i) {
    flood.push_back(std::make_unique<Stranger>(port()));
    rig.poll();
  }
  EXPECT_TRUE(rig.run_until([&] { return victim->rejected(RejectReason::too_many) == 392; }));
  expect_undisturbed();
  // And an honest peer gets in during the flood.
  ASSERT_TRUE(victim->transport->set_peer(PeerAddress{NodeId(3), "127.0.0.1:1"}).ok());
  rig.introduce(*victim, rig.start(3));
  EXPECT_TRUE(rig.run_until([&] { return rig.node(3).transport->connected(NodeId(1)); }));
}

// Lengths are only promises: memory grows with the bytes that arrive, not with those announced.
TEST_F(Hostile, AnnouncedFramesCostNoMemory) {
  begin();
  ASSERT_TRUE(victim->transport->set_peer(PeerAddress{NodeId(3), "127.0.0.1:1"}).ok());
  const std::size_t before = resident_bytes();
  std::string announced = hello_bytes(test_hello(3, 1));
  wire::FrameHeader header{wire::kWireVersionMax, wire::FrameKind::message, 30, 31U << 20U, 0};
  wire::append_header(header, announced);
  announced += std::string(1000, 'x');
  const std::string hello = hello_bytes(test_hello(3, 1));
  std::vector<std::unique_ptr<Stranger>> kept;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    kept.push_back(std::make_unique<Stranger>(port()));  // replaces the one before
    kept.back()->send(announced);
    ASSERT_TRUE(rig.run_until([&] { return victim->transport->counters().accepts == i + 1; }));
    kept.push_back(std::make_unique<Stranger>(port()));  // and one that never ends its hello
    kept.back()->send(hello.substr(0, hello.size() - 1));
    rig.poll();
  }
  EXPECT_LT(resident_bytes(), before + (48U << 20U));
  EXPECT_EQ(victim->transport->counters().accepts - victim->transport->counters().disconnects, 2U);
  expect_undisturbed();
}

TEST_F(Hostile, TenThousandGarbageFrames) {
  begin();
  Random random(32);
  const std::string message = message_bytes(with_payload(1, 30));
  const std::string hello = hello_bytes(test_hello(2, 1));
  std::vector<std::unique_ptr<Stranger>> senders;
  constexpr std::uint64_t kFrames = 10000;
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    std::string frame = random.chance(1, 2) ? hello : message;
    const std::size_t bit = random.below(frame.size() * 8);
    frame[bit / 8] = static_cast<char>(frame[bit / 8] ^ (1 << (bit % 8)));
    senders.push_back(std::make_unique<Stranger>(port()));
    senders.back()->send(frame);
    if (senders.size() < 50) continue;
    // A flipped length may leave a frame that waits for its end: that comes when its sender goes.
    rig.poll();
    senders.clear();
    rig.poll();
  }
  senders.clear();
  EXPECT_TRUE(
      rig.run_until([&] { return victim->transport->counters().rejected_total() == kFrames; }));
  EXPECT_TRUE(victim->received.empty());
  expect_undisturbed();
}

}  // namespace
}  // namespace leasehold::net
