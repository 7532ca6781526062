#include <leasehold/net/tcp_transport.h>

#include <leasehold/tests/net/tcp_rig.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::net {
namespace {

using raft::NodeId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint64_t> numbers(const TestNode& node) {
  std::vector<std::uint64_t> all;
  for (const auto& [from, message] : node.received) all.push_back(number_of(message));
  return all;
}

std::vector<std::uint64_t> counting_to(std::uint64_t last) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 1; i <= last; ++i) all.push_back(i);
  return all;
}

TEST(TcpTransport, MessagesArriveWholeAndInOrder) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TestNode& two = rig.start(2);
  TestNode& three = rig.start(3);
  ASSERT_TRUE(rig.connect_all());
  EXPECT_EQ(one.peers_up.size(), 2U);
  for (std::uint64_t i = 1; i <= 500; ++i) {
    one.transport->send(NodeId(2), with_payload(i, i % 7 == 0 ? 5000 : i % 50));
    two.transport->send(NodeId(1), numbered(i));
    three.transport->send(NodeId(2), numbered(0));
  }
  ASSERT_TRUE(
      rig.run_until([&] { return two.received.size() == 1000 && one.received.size() == 500; }));
  std::vector<std::uint64_t> from_one;
  for (const auto& [from, message] : two.received) {
    if (from == NodeId(1)) from_one.push_back(number_of(message));
  }
  EXPECT_EQ(from_one, counting_to(500));
  EXPECT_EQ(numbers(one), counting_to(500));
  EXPECT_EQ(one.transport->counters().frames_sent, 500U);
  EXPECT_EQ(two.transport->counters().frames_received, 1000U);
  EXPECT_EQ(one.transport->counters().rejected_total(), 0U);
}

TEST(TcpTransport, LargeMessagesCrossManyReadsAndWrites) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TestNode& two = rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  for (std::uint64_t i = 1; i <= 5; ++i) one.transport->send(NodeId(2), with_payload(i, 9U << 20U));
  ASSERT_TRUE(rig.run_until([&] { return two.received.size() == 5; }));
  EXPECT_EQ(numbers(two), counting_to(5));
  const auto& command = std::get<wire::ForwardRequest>(two.received[4].second.payload).command;
  EXPECT_EQ(command.view(), std::string(9U << 20U, 'p'));
  EXPECT_EQ(one.transport->queued_bytes(NodeId(2)), 0U);
}

TEST(TcpTransport, EverythingOfOneTurnLeavesTogether) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  const std::uint64_t before = one.transport->counters().bytes_sent;
  for (std::uint64_t i = 1; i <= 10; ++i) one.transport->send(NodeId(2), numbered(i));
  const std::size_t queued = one.transport->queued_bytes(NodeId(2));
  EXPECT_GT(queued, 0U);
  EXPECT_EQ(one.transport->counters().bytes_sent, before);  // send() itself writes nothing
  ASSERT_TRUE(rig.run_until([&] { return one.transport->counters().bytes_sent > before; }));
  EXPECT_EQ(one.transport->counters().bytes_sent, before + queued);
}

TEST(TcpTransport, SendingToNobodyIsALostMessage) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  one.transport->send(NodeId(2), numbered(1));
  one.transport->send(NodeId(1), numbered(1));
  EXPECT_EQ(one.transport->counters().dropped_unconnected, 2U);
  EXPECT_FALSE(one.transport->connected(NodeId(2)));
}

TEST(TcpTransport, ARestartedPeerIsReachedAgain) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  for (std::uint64_t start = 2; start <= 6; ++start) {
    rig.kill(2);
    ASSERT_TRUE(rig.run_until([&] { return !one.transport->connected(NodeId(2)); }));
    TcpOptions again = TcpRig::options(2);
    again.incarnation = raft::Incarnation(start);
    again.process = 5000 + start;
    TestNode& two = rig.start(again);
    ASSERT_TRUE(rig.connect_all());
    one.transport->send(NodeId(2), numbered(start));
    two.transport->send(NodeId(1), numbered(start));
    ASSERT_TRUE(rig.run_until(
        [&] { return two.received.size() == 1 && one.received.size() == start - 1; }));
  }
  EXPECT_EQ(one.transport->counters().rejected_total(), 0U);
  EXPECT_GE(one.transport->counters().disconnects, 10U);
}

TEST(TcpTransport, APeerThatComesBackIsDialledBackAtOnce) {
  TcpRig rig;
  TcpOptions patient = TcpRig::options(1);
  patient.limits.reconnect_min = std::chrono::hours(1);
  patient.limits.reconnect_max = std::chrono::hours(1);
  TestNode& one = rig.start(patient);
  rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  rig.kill(2);
  ASSERT_TRUE(rig.run_until([&] { return !one.transport->connected(NodeId(2)); }));
  TcpOptions again = TcpRig::options(2);
  again.incarnation = raft::Incarnation(2);
  rig.introduce(one, rig.start(again));
  EXPECT_TRUE(rig.run_until([&] { return one.transport->connected(NodeId(2)); }));
}

TEST(TcpTransport, AWrongClusterIsRefusedOnBothSides) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TcpOptions foreign = TcpRig::options(2);
  foreign.cluster_id = 0xbad;
  TestNode& two = rig.start(foreign);
  rig.introduce_all();
  ASSERT_TRUE(rig.run_until([&] {
    return one.rejected(RejectReason::wrong_cluster) > 0 &&
           two.rejected(RejectReason::wrong_cluster) > 0 &&
           one.transport->counters().refused_by_peers > 0;
  }));
  EXPECT_EQ(one.transport->counters().connects + one.transport->counters().accepts, 0U);
  bool told = false;
  for (const Rejection& rejection : one.rejections) {
    EXPECT_EQ(rejection.reason, RejectReason::wrong_cluster);
    EXPECT_EQ(rejection.error.code, ErrorCode::wrong_cluster);
    EXPECT_THAT(rejection.error.message, HasSubstr("0000000000000bad"));
    told = told || rejection.by_peer;
  }
  EXPECT_TRUE(told);
}

TEST(TcpTransport, TheNodeMayRefuseAUuidAndThePeerLearnsWhy) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  one.accept = [](NodeId, raft::Uuid uuid, raft::Incarnation) -> Result<void> {
    if (uuid == raft::Uuid{2, 102}) return {};
    return Error{ErrorCode::wrong_cluster, "this directory was wiped"};
  };
  TcpOptions wiped = TcpRig::options(2);
  wiped.uuid = raft::Uuid{9, 9};
  TestNode& two = rig.start(wiped);
  rig.introduce_all();
  ASSERT_TRUE(rig.run_until([&] { return two.transport->counters().refused_by_peers >= 2; }));
  EXPECT_GE(one.rejected(RejectReason::refused_by_node), 2U);
  EXPECT_FALSE(one.transport->connected(NodeId(2)));
  EXPECT_TRUE(two.rejections.at(0).by_peer);
  EXPECT_EQ(two.rejections.at(0).peer, NodeId(1));
  EXPECT_THAT(two.rejections.at(0).error.message, HasSubstr("this directory was wiped"));
  two.transport->send(NodeId(1), numbered(1));
  rig.poll();
  EXPECT_TRUE(one.received.empty());
}

TEST(TcpTransport, AnUnknownPeerIsRefused) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TestNode& two = rig.start(2);
  rig.introduce(one, two);
  ASSERT_TRUE(rig.run_until([&] { return two.transport->counters().refused_by_peers > 0; }));
  EXPECT_GE(one.rejected(RejectReason::unknown_peer), 1U);
  EXPECT_THAT(two.rejections.at(0).error.message, HasSubstr("add it there first"));
  // Once it is known it gets in by itself.
  rig.introduce(two, one);
  EXPECT_TRUE(rig.run_until(
      [&] { return one.transport->connected(NodeId(2)) && two.transport->connected(NodeId(1)); }));
}

TEST(TcpTransport, AWrongAddressIsReported) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TestNode& two = rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  ASSERT_TRUE(
      one.transport
          ->set_peer(PeerAddress{NodeId(3), "127.0.0.1:" + std::to_string(two.transport->port())})
          .ok());
  ASSERT_TRUE(rig.run_until([&] { return one.transport->counters().refused_by_peers > 0; }));
  EXPECT_EQ(one.rejections.at(0).reason, RejectReason::wrong_target);
  EXPECT_THAT(one.rejections.at(0).error.message, HasSubstr("this is node 2, not node 3"));
  ASSERT_TRUE(
      one.transport
          ->set_peer(PeerAddress{NodeId(4), "127.0.0.1:" + std::to_string(one.transport->port())})
          .ok());
  ASSERT_TRUE(rig.run_until([&] { return one.rejected(RejectReason::same_id) > 0; }));
  EXPECT_TRUE(one.transport->connected(NodeId(2)));
}

// Two processes claim to be node 2. The first stays connected and is not disturbed.
TEST(TcpTransport, ASecondNodeWithTheSameIdDisturbsNoPeer) {
  TcpRig rig;
  TcpRig other_rig;  // only to give the second process of node 2 another port
  TestNode& one = rig.start(1);
  TestNode& two = rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  const std::uint64_t connects = one.transport->counters().connects;

  TcpOptions same_id = TcpRig::options(2);
  same_id.uuid = raft::Uuid{9, 9};
  TestNode& imposter = other_rig.start(same_id);
  rig.introduce(one, imposter);
  TcpOptions copied = TcpRig::options(2);
  copied.process = 77;
  TcpRig third_rig;
  TestNode& copy = third_rig.start(copied);
  rig.introduce(one, copy);
  std::uint64_t sent = 0;
  const auto refused_often = [&] {
    one.transport->send(NodeId(2), numbered(++sent));
    other_rig.poll();
    third_rig.poll();
    return imposter.transport->counters().refused_by_peers > 5 &&
           copy.transport->counters().refused_by_peers > 5;
  };
  ASSERT_TRUE(rig.run_until(refused_often));
  EXPECT_GE(one.rejected(RejectReason::duplicate_process), 10U);
  ASSERT_TRUE(rig.run_until([&] { return two.received.size() == sent; }));
  EXPECT_EQ(numbers(two), counting_to(sent));
  EXPECT_EQ(one.transport->counters().connects, connects);
  EXPECT_EQ(one.transport->counters().disconnects, 0U);
}

TEST(TcpTransport, AnOlderStartIsFencedByANewerOne) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TestNode& old = rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  TcpRig other_rig;
  TcpOptions newer = TcpRig::options(2);
  newer.incarnation = raft::Incarnation(2);
  newer.process = 77;
  TestNode& self = other_rig.start(newer);
  rig.introduce(one, self);
  rig.introduce(self, one);  // one now dials the newer one
  ASSERT_TRUE(rig.run_until([&] {
    other_rig.poll();
    return self.transport->connected(NodeId(1)) && one.transport->connected(NodeId(2)) &&
           old.transport->counters().refused_by_peers > 0;
  }));
  EXPECT_EQ(old.rejections.at(0).reason, RejectReason::older_incarnation);
  EXPECT_TRUE(old.rejections.at(0).by_peer);
  one.transport->send(NodeId(2), numbered(1));
  ASSERT_TRUE(rig.run_until([&] {
    other_rig.poll();
    return self.received.size() == 1;
  }));
  EXPECT_TRUE(old.received.empty());
}

TEST(TcpTransport, APeerThatDoesNotReadFillsABoundedQueue) {
  TcpRig rig;
  TcpOptions small = TcpRig::options(1);
  small.limits.queue_bytes_max = 4U << 20U;
  TestNode& one = rig.start(small);
  TcpRig stalled;
  TestNode& two = stalled.start(2);
  rig.introduce(two, one);
  rig.introduce(one, two);
  ASSERT_TRUE(rig.run_until([&] {
    stalled.poll();
    return one.transport->connected(NodeId(2));
  }));
  // Node 2 is not run any more: the kernel's buffers fill up, then the queue.
  std::uint64_t sent = 0;
  ASSERT_TRUE(rig.run_until([&] {
    for (int i = 0; i < 10; ++i) one.transport->send(NodeId(2), with_payload(++sent, 100000));
    return one.transport->counters().dropped_full > 100;
  }));
  EXPECT_LE(one.transport->queued_bytes(NodeId(2)), small.limits.queue_bytes_max);
  // It comes back: what was queued arrives in order, with a gap where messages were dropped.
  const std::uint64_t dropped = one.transport->counters().dropped_full;
  ASSERT_TRUE(rig.run_until([&] {
    stalled.poll();
    return two.received.size() == sent - dropped;
  }));
  for (std::size_t i = 1; i < two.received.size(); ++i) {
    ASSERT_LT(number_of(two.received[i - 1].second), number_of(two.received[i].second));
  }
}

TEST(TcpTransport, AMessageAboveTheFrameLimitIsDroppedHere) {
  TcpRig rig;
  TcpOptions small = TcpRig::options(1);
  small.limits.frame_bytes_max = 64U << 10U;
  TestNode& one = rig.start(small);
  TestNode& two = rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  one.transport->send(NodeId(2), with_payload(1, 64U << 10U));
  one.transport->send(NodeId(2), numbered(2));
  ASSERT_TRUE(rig.run_until([&] { return two.received.size() == 1; }));
  EXPECT_EQ(number_of(two.received[0].second), 2U);
  EXPECT_EQ(one.transport->counters().dropped_oversized, 1U);
}

TEST(TcpTransport, MayBeStoppedInsideACallback) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TestNode& two = rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  two.on_message = [&two] { two.transport->stop(); };
  for (std::uint64_t i = 1; i <= 100; ++i) one.transport->send(NodeId(2), numbered(i));
  ASSERT_TRUE(rig.run_until([&] { return !one.transport->connected(NodeId(2)); }));
  EXPECT_EQ(two.received.size(), 1U);
  two.transport->stop();
  EXPECT_FALSE(two.transport->connected(NodeId(1)));
}

TEST(TcpTransport, MayBeDestroyedWithHandlersUnderWay) {
  TcpRig rig;
  for (std::uint64_t start = 1; start <= 20; ++start) {
    for (std::uint64_t id = 1; id <= 3; ++id) {
      TcpOptions options = TcpRig::options(id);
      options.incarnation = raft::Incarnation(start);
      rig.start(options);
    }
    rig.introduce_all();
    for (std::uint64_t step = 0; step < start; ++step) {
      rig.io.restart();
      rig.io.run_one_for(std::chrono::milliseconds(1));
    }
    for (std::uint64_t id = 1; id <= 3; ++id) rig.kill(id);
    rig.poll();
  }
}

TEST(TcpTransport, ARemovedPeerIsForgotten) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TestNode& two = rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  one.transport->remove_peer(NodeId(2));
  EXPECT_FALSE(one.transport->connected(NodeId(2)));
  ASSERT_TRUE(rig.run_until([&] { return one.rejected(RejectReason::unknown_peer) > 0; }));
  EXPECT_FALSE(two.transport->connected(NodeId(1)));
}

TEST(TcpTransport, HostNamesAreLookedUp) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TestNode& two = rig.start(2);
  rig.introduce(one, two);
  ASSERT_TRUE(
      one.transport
          ->set_peer(PeerAddress{NodeId(2), "localhost:" + std::to_string(two.transport->port())})
          .ok());
  EXPECT_TRUE(rig.run_until([&] { return one.transport->connected(NodeId(2)); }));
}

Error start_error(TcpOptions options) {
  asio::io_context io;
  TcpTransport transport(io, std::move(options), TcpCallbacks{});
  const Result<void> started = transport.start();
  return started.ok() ? Error{ErrorCode::stopped, "started"} : started.error();
}

TEST(TcpTransport, BadOptionsSayWhatToDo) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TcpOptions options = TcpRig::options(2);
  options.listen = "127.0.0.1:" + std::to_string(one.transport->port());
  EXPECT_EQ(start_error(options).code, ErrorCode::in_use);
  EXPECT_THAT(start_error(options).message, HasSubstr("stop the other process"));
  options = TcpRig::options(2);
  options.listen = "nonsense";
  EXPECT_EQ(start_error(options).code, ErrorCode::invalid_argument);
  options = TcpRig::options(2);
  options.peers = {PeerAddress{NodeId(1), "a:1"}, PeerAddress{NodeId(1), "b:1"}};
  EXPECT_THAT(start_error(options).message, HasSubstr("given to two peers"));
  options.peers.clear();
  for (std::uint64_t id = 1; id <= 129; ++id) {
    options.peers.push_back(PeerAddress{NodeId(id), "a:1"});
  }
  EXPECT_THAT(start_error(options).message, HasSubstr("more than 128 peers"));
  options = TcpRig::options(0);
  EXPECT_EQ(start_error(options).code, ErrorCode::invalid_argument);
  options = TcpRig::options(2);
  options.incarnation = raft::Incarnation();
  EXPECT_EQ(start_error(options).code, ErrorCode::invalid_argument);
  options = TcpRig::options(2);
  options.limits.frame_bytes_max = 10;
  EXPECT_EQ(start_error(options).code, ErrorCode::invalid_argument);
}

TEST(TcpTransport, AConnectionForSnapshotsDoesNotReplaceTheOther) {
  TcpRig rig;
  TestNode& one = rig.start(1);
  TestNode& two = rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  // Node 2 dials a second time, as it does when it has a snapshot for node 1.
  wire::Hello hello = test_hello(2, 1);
  hello.process = two.options.process;
  hello.uuid = two.options.uuid;
  hello.incarnation = two.options.incarnation;
  hello.purpose = wire::Purpose::snapshots;
  Stranger second(one.transport->port());
  second.send(hello_bytes(hello));
  ASSERT_TRUE(rig.run_until([&] { return one.transport->counters().accepts == 2; }));
  second.send(message_bytes(numbered(7)));
  two.transport->send(NodeId(1), numbered(8));
  ASSERT_TRUE(rig.run_until([&] { return one.received.size() == 2; }));
  EXPECT_EQ(one.transport->counters().disconnects, 0U);
  EXPECT_EQ(two.transport->counters().disconnects, 0U);
  EXPECT_FALSE(second.ended());

  // A newer one replaces it, and nothing else.
  Stranger third(one.transport->port());
  third.send(hello_bytes(hello));
  EXPECT_TRUE(rig.run_until([&] { return second.ended(); }));
  EXPECT_EQ(one.transport->counters().disconnects, 1U);
  EXPECT_TRUE(two.transport->connected(NodeId(1)));
  one.transport->remove_peer(NodeId(2));
  EXPECT_TRUE(rig.run_until([&] { return third.ended(); }));
}

wire::PeerMessage chunk_of(std::size_t bytes) {
  raft::SnapshotChunk chunk;
  chunk.term = raft::Term(2);
  chunk.round = raft::Round(1);
  chunk.lease = std::chrono::seconds(1);
  chunk.id = {{raft::Term(1), raft::Index(9)}, 5};
  chunk.membership.members.push_back({NodeId(1), raft::Uuid{1, 1}, "127.0.0.1:1"});
  chunk.membership.voters.push_back(NodeId(1));
  chunk.size = bytes;
  chunk.data = Bytes(std::string(bytes, 's'));
  return wire::PeerMessage{raft::GroupId(), raft::Message(std::move(chunk))};
}

TEST(TcpTransport, ChunksOfSnapshotsDialAConnectionOfTheirOwn) {
  TcpRig rig;
  TcpOptions options = TcpRig::options(1);
  options.limits.snapshot_idle = std::chrono::milliseconds(50);
  options.limits.snapshot_queue_bytes_max = 300'000;
  TestNode& one = rig.start(options);
  TestNode& two = rig.start(2);
  ASSERT_TRUE(rig.connect_all());
  one.transport->send(NodeId(2), chunk_of(100'000));
  EXPECT_EQ(one.transport->counters().dropped_unconnected, 1U) << "it only dials";
  ASSERT_TRUE(rig.run_until([&] { return one.transport->counters().connects == 2; }));
  EXPECT_EQ(one.peers_up.size(), 1U) << "the peer was reached before";

  // More than the queue holds, and a message that does not wait behind it.
  for (int i = 0; i < 10; ++i) one.transport->send(NodeId(2), chunk_of(100'000));
  EXPECT_GT(one.transport->counters().dropped_full, 0U);
  EXPECT_LT(one.transport->queued_bytes(NodeId(2)), 1000U);
  one.transport->send(NodeId(2), numbered(1));
  const std::size_t sent = 11 - one.transport->counters().dropped_full;
  ASSERT_TRUE(rig.run_until([&] { return two.received.size() == sent; }));

  ASSERT_TRUE(rig.run_until([&] { return one.transport->counters().disconnects == 1; })) << "idle";
  EXPECT_TRUE(one.transport->connected(NodeId(2)));
  ASSERT_TRUE(rig.run_until([&] { return two.transport->counters().disconnects == 1; }));
  const std::size_t before = two.received.size();
  ASSERT_TRUE(rig.run_until([&] {
    one.transport->send(NodeId(2), chunk_of(1000));
    return two.received.size() > before;
  }));
}

}  // namespace
}  // namespace leasehold::net
