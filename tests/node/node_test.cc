// A running node and its calls.
#include <leasehold/tests/node/node_fixture.h>

#include <atomic>
#include <condition_variable>

namespace leasehold::node {
namespace {

using namespace std::chrono_literals;

TEST_F(NodeTest, ThreeNodesFormElectAndReplicate) {
  start_all();
  std::vector<std::string> expected;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    expected.push_back("from " + std::to_string(id));
    const replica::ProposeResult result = replica(id).propose(expected.back());
    ASSERT_EQ(result.status, replica::ProposeStatus::committed);
    EXPECT_EQ(result.result.view(), "done:" + expected.back());
  }
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_TRUE(eventually([&] { return replica(id).machine.list() == expected; }));
    const NodeStatus status = replica(id).status();
    EXPECT_TRUE(status.formed);
    EXPECT_TRUE(status.missing.empty());
    EXPECT_EQ(status.members.size(), 3U);
    EXPECT_TRUE(
        eventually([&] { return replica(id).status().leader == raft::NodeId(await_leader()); }));
  }
}

TEST_F(NodeTest, AnyThreadReadsUnderTheLease) {
  start_all();
  const std::uint64_t leader = await_leader();
  Replica& node = replica(leader);
  ASSERT_EQ(node.propose("x").status, replica::ProposeStatus::committed);
  const NodeStatus before = node.status();
  std::atomic<int> served{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&node, &served] {
      for (int i = 0; i < 20'000; ++i) {
        const auto index = node.node->lease_view().readable_index(node.clock);
        if (!index || node.node->lease_view().applied() < *index) continue;
        served.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_GT(served.load(), 0);
  EXPECT_EQ(node.machine.list(), (std::vector<std::string>{"x"}));
  const NodeStatus after = node.status();
  EXPECT_EQ(after.last, before.last) << "a lease read costs no entry";
}

TEST_F(NodeTest, EveryNodeServesEveryKindOfRead) {
  start_all();
  const std::uint64_t leader = await_leader();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    for (const raft::ReadMode mode :
         {raft::ReadMode::lease, raft::ReadMode::quorum, raft::ReadMode::log}) {
      const std::string value = "v" + std::to_string(id);
      const replica::ProposeResult written = replica(leader).propose(value);
      ASSERT_EQ(written.status, replica::ProposeStatus::committed);
      const replica::ReadResult result = replica(id).read(mode);
      ASSERT_TRUE(result.index.has_value()) << id;
      EXPECT_GE(*result.index, written.id.index);
      EXPECT_EQ(replica(id).machine.list().back(), value) << "the write is seen at once";
    }
  }
}

TEST_F(NodeTest, WaitAppliedSeesWhatAnotherNodeWrote) {
  start_all();
  const replica::ProposeResult written = replica(1).propose("x");
  ASSERT_EQ(written.status, replica::ProposeStatus::committed);
  std::promise<replica::ReadResult> answer;
  replica(2).node->wait_applied(
      written.id.index, kLong, [&answer](replica::ReadResult result) { answer.set_value(result); });
  EXPECT_EQ(answer.get_future().get().index, written.id.index);
  EXPECT_EQ(replica(2).machine.list(), (std::vector<std::string>{"x"}));
}

TEST_F(NodeTest, ALostLeaderIsReplacedAndComesBack) {
  start_all();
  const std::uint64_t old_leader = await_leader();
  ASSERT_EQ(replica(old_leader).propose("a").status, replica::ProposeStatus::committed);
  stop(old_leader);
  const std::uint64_t other = follower_of(old_leader);
  ASSERT_EQ(replica(other).propose("b").status, replica::ProposeStatus::committed)
      << "waits until there is a new leader";
  start(old_leader);
  const std::vector<std::string> expected{"a", "b"};
  EXPECT_TRUE(eventually([&] { return replica(old_leader).machine.list() == expected; }));
  EXPECT_GT(replica(old_leader).status().incarnation, raft::Incarnation(1));
}

TEST_F(NodeTest, AllStoppedAndStartedAgainContinue) {
  start_all();
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) {
    expected.push_back(std::to_string(i));
    ASSERT_EQ(replica(1 + static_cast<std::uint64_t>(i) % 3).propose(expected.back()).status,
              replica::ProposeStatus::committed);
  }
  for (std::uint64_t id = 1; id <= 3; ++id) stop(id);
  start_all();
  expected.emplace_back("after");
  ASSERT_EQ(replica(2).propose("after").status, replica::ProposeStatus::committed);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_TRUE(eventually([&] { return replica(id).machine.list() == expected; })) << id;
  }
}

TEST_F(NodeTest, ManyProposalsFromManyThreadsAllEndOnce) {
  start_all();
  await_leader();
  constexpr int kThreads = 3;
  constexpr int kEach = 300;
  std::atomic<int> committed{0};
  std::atomic<int> others{0};
  std::vector<std::thread> clients;
  for (int t = 0; t < kThreads; ++t) {
    clients.emplace_back([this, t, &committed, &others] {
      for (int i = 0; i < kEach; ++i) {
        replica(static_cast<std::uint64_t>(t) + 1)
            .node->propose(
                Bytes("c" + std::to_string(t * kEach + i)), kLong,
                [&committed, &others](replica::ProposeResult result) {
                  (result.status == replica::ProposeStatus::committed ? committed : others)
                      .fetch_add(1);
                });
      }
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_TRUE(eventually([&] { return committed.load() + others.load() == kThreads * kEach; }));
  EXPECT_EQ(committed.load(), kThreads * kEach);
  EXPECT_TRUE(eventually(
      [&] { return replica(1).machine.list().size() == std::size_t{kThreads} * kEach; }));
  EXPECT_TRUE(eventually([&] { return replica(3).machine.list() == replica(1).machine.list(); }));
}

TEST_F(NodeTest, BeforeFormationTheStatusNamesTheMissingMembers) {
  start(1);
  EXPECT_TRUE(eventually([&] { return replica(1).status().missing.size() == 3; }));
  EXPECT_FALSE(replica(1).status().formed);
  EXPECT_EQ(replica(1).propose("x", 50ms).status, replica::ProposeStatus::dropped);
  EXPECT_FALSE(replica(1).read(raft::ReadMode::lease, 50ms).index.has_value());
  std::promise<replica::ProposeResult> waiting;
  replica(1).node->propose(
      Bytes(std::string("early")), kLong,
      [&waiting](replica::ProposeResult result) { waiting.set_value(std::move(result)); });
  start(2);
  start(3);
  EXPECT_EQ(waiting.get_future().get().status, replica::ProposeStatus::committed);
}

TEST_F(NodeTest, ABatchIsAppliedInItsOrderAndEachIsAnswered) {
  start_all();
  const std::uint64_t leader = await_leader();
  const NodeStatus before = replica(leader).status();
  constexpr int kCommands = 500;
  std::vector<std::string> expected;
  std::vector<Proposal> batch;
  std::mutex mutex;
  std::vector<std::string> results;
  for (int i = 0; i < kCommands; ++i) {
    expected.push_back("b" + std::to_string(i));
    batch.push_back({Bytes(expected.back()), [&mutex, &results](replica::ProposeResult result) {
                       const std::lock_guard<std::mutex> lock(mutex);
                       results.emplace_back(result.result.view());
                     }});
  }
  replica(leader).node->propose_batch(std::move(batch), kLong);
  const auto answered = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    return results.size() == kCommands;
  };
  EXPECT_TRUE(eventually(answered));
  EXPECT_EQ(replica(leader).machine.list(), expected);
  for (std::size_t i = 0; i < kCommands; ++i) EXPECT_EQ(results[i], "done:" + expected[i]);
  const NodeStatus after = replica(leader).status();
  // Heartbeats aside, one append and one disk write carry all of them; a few more if a peer or the
  // leadership moved meanwhile.
  EXPECT_LT(after.counters.batches_persisted - before.counters.batches_persisted, 20U);
  replica(leader).node->propose_batch({}, kLong);
}

TEST_F(NodeTest, CallsThatWait) {
  start_all();
  const std::uint64_t leader = await_leader();
  Node& node = *replica(leader).node;
  const replica::ProposeResult written = node.propose_and_wait(Bytes(std::string("x")), 30s);
  ASSERT_EQ(written.status, replica::ProposeStatus::committed);
  for (const raft::ReadMode mode :
       {raft::ReadMode::lease, raft::ReadMode::quorum, raft::ReadMode::log}) {
    const replica::ReadResult read = node.read_point(mode, 30s);
    ASSERT_TRUE(read.index.has_value());
    EXPECT_GE(*read.index, written.id.index);
    EXPECT_GE(node.lease_view().applied(), *read.index);
  }
  Node& follower = *replica(follower_of(leader)).node;
  const replica::ReadResult remote = follower.read_point(raft::ReadMode::lease, 30s);
  ASSERT_TRUE(remote.index.has_value());
  EXPECT_EQ(remote.basis, raft::ReadBasis::leader);
  EXPECT_EQ(follower.propose_and_wait(Bytes(std::string("y")), 0s).status,
            replica::ProposeStatus::dropped);
  EXPECT_FALSE(follower.read_point(raft::ReadMode::quorum, 0s).index.has_value());
}

TEST_F(NodeTest, ALeaseReadPointAsksNoNode) {
  start_all();
  const std::uint64_t leader = await_leader();
  Replica& node = replica(leader);
  ASSERT_EQ(node.propose("x").status, replica::ProposeStatus::committed);
  const NodeStatus before = node.status();
  int by_lease = 0;
  for (int i = 0; i < 1000; ++i) {
    const replica::ReadResult read = node.node->read_point(raft::ReadMode::lease, kLong);
    ASSERT_TRUE(read.index.has_value());
    if (read.basis == raft::ReadBasis::lease) ++by_lease;
  }
  const NodeStatus after = node.status();
  EXPECT_GT(by_lease, 0);
  EXPECT_EQ(after.last, before.last);
  EXPECT_EQ(after.counters.reads_lease, before.counters.reads_lease)
      << "those are counted where the node's thread serves them";
}

TEST_F(NodeTest, CancelEndsWhatWaitsBeforeFormation) {
  start(1);
  std::atomic<int> dropped{0};
  std::atomic<int> others{0};
  const auto count = [](std::atomic<int>& counter) {
    return [&counter](const replica::ProposeResult& result) {
      EXPECT_EQ(result.status, replica::ProposeStatus::dropped);
      counter.fetch_add(1);
    };
  };
  Node& node = *replica(1).node;
  node.propose(Bytes(std::string("a")), {kLong, replica::CallGroup(3)}, count(dropped));
  node.propose(Bytes(std::string("b")), {kLong, replica::CallGroup(4)}, count(others));
  node.read(raft::ReadMode::quorum, {kLong, replica::CallGroup(3)},
            [&dropped](const replica::ReadResult& result) {
              EXPECT_FALSE(result.index.has_value());
              dropped.fetch_add(1);
            });
  node.cancel(replica::CallGroup(3));
  EXPECT_TRUE(eventually([&] { return dropped.load() == 2; }));
  EXPECT_EQ(others.load(), 0);
  stop(1);
  EXPECT_EQ(others.load(), 1);
}

TEST_F(NodeTest, AnObserverHearsOfLeadershipLeaseAndMembers) {
  start_all();
  const std::uint64_t first = await_leader();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    RecordingObserver& observer = replica(id).observer;
    EXPECT_TRUE(eventually([&] {
      const auto leadership = observer.last<replica::LeadershipChange>();
      return leadership && leadership->leader == raft::NodeId(first);
    }));
    const auto members = observer.last<replica::MembershipChange>();
    ASSERT_TRUE(members.has_value());
    EXPECT_EQ(members->membership.voters.size(), 3U);
    EXPECT_EQ(observer.thread(), "lh-node");
  }
  RecordingObserver& observer = replica(first).observer;
  EXPECT_TRUE(eventually([&] { return observer.last<replica::LeaseChange>()->held; }));
  EXPECT_FALSE(replica(follower_of(first)).observer.last<replica::LeaseChange>()->held);
  replica(first).node->stop();
  EXPECT_FALSE(observer.last<replica::LeaseChange>()->held) << "a stopped node holds no lease";
  std::optional<replica::LeadershipChange> leadership;
  std::optional<replica::LeaseChange> lease;
  for (const replica::Change& change : observer.changes()) {
    if (const auto* now = std::get_if<replica::LeadershipChange>(&change)) {
      EXPECT_NE(leadership, *now) << "reported twice";
      leadership = *now;
    } else if (const auto* now_lease = std::get_if<replica::LeaseChange>(&change)) {
      EXPECT_NE(lease, *now_lease) << "reported twice";
      lease = *now_lease;
    }
  }
}

TEST_F(NodeTest, TheLastLeaderIsRememberedWhileThereIsNone) {
  start_all();
  const std::uint64_t leader = await_leader();
  const std::uint64_t left = follower_of(leader);
  EXPECT_TRUE(
      eventually([&] { return replica(left).status().last_leader == raft::NodeId(leader); }));
  stop(6 - leader - left);  // the two others are still a majority
  stop(leader);
  EXPECT_TRUE(eventually([&] { return replica(left).status().leader == raft::kNobody; }));
  EXPECT_EQ(replica(left).status().last_leader, raft::NodeId(leader));
}

TEST_F(NodeTest, StopAnswersEveryWaitingCall) {
  start(1);  // forms no group: what is asked waits
  std::atomic<int> answers{0};
  replica(1).node->propose(Bytes(std::string("x")), kLong,
                           [&answers](replica::ProposeResult result) {
                             EXPECT_EQ(result.status, replica::ProposeStatus::dropped);
                             answers.fetch_add(1);
                           });
  replica(1).node->read(raft::ReadMode::quorum, kLong, [&answers](replica::ReadResult result) {
    EXPECT_FALSE(result.index.has_value());
    answers.fetch_add(1);
  });
  replica(1).node->stop();
  EXPECT_EQ(answers.load(), 2);
  replica(1).node->propose(Bytes(std::string("late")), kLong,
                           [&answers](replica::ProposeResult result) {
                             EXPECT_EQ(result.status, replica::ProposeStatus::dropped);
                             answers.fetch_add(1);
                           });
  EXPECT_EQ(answers.load(), 3);
  replica(1).node->stop();
}

TEST_F(NodeTest, ALeaseEndsWithItsNode) {
  start_all();
  const std::uint64_t leader = await_leader();
  replica(leader).node->stop();
  EXPECT_EQ(replica(leader).node->lease_view().readable_index(replica(leader).clock), std::nullopt);
}

TEST_F(NodeTest, ADirectoryOfAnotherClusterIsRefused) {
  start(1);
  stop(1);
  NodeOptions other = options(1);
  other.cluster = "another";
  Replica unused;
  const auto opened = open(unused, other);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::wrong_cluster);
}

TEST_F(NodeTest, ADirectoryInUseIsRefused) {
  start(1);
  NodeOptions second = options(1);
  second.listen = spare_address_;
  Replica unused;
  const auto opened = open(unused, second);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::in_use);
}

TEST_F(NodeTest, APeerOfAnotherClusterIsRefusedAndDisturbsNoPeer) {
  start(1);
  start(2);
  NodeOptions stranger = options(3);
  stranger.cluster = "another";
  start(3, stranger);
  EXPECT_TRUE(eventually([&] { return replica(1).status().frames_rejected > 0; }));
  EXPECT_NE(replica(1).status().problem.find("wrong_cluster"), std::string::npos);
  stop(3);
  std::filesystem::remove_all(dir(3));
  start(3);
  EXPECT_EQ(replica(1).propose("x").status, replica::ProposeStatus::committed);
}

TEST_F(NodeTest, AWipedNodeIsRefusedAndLearnsWhy) {
  start_all();
  ASSERT_EQ(replica(1).propose("x").status, replica::ProposeStatus::committed);
  stop(3);
  std::filesystem::remove_all(dir(3));
  Replica& wiped = start(3);
  ASSERT_EQ(wiped.failure.wait_for(kPatience), std::future_status::ready);
  const Error error = wiped.failure.get();
  EXPECT_EQ(error.code, ErrorCode::wrong_cluster) << error.message;
  EXPECT_FALSE(wiped.status().formed);
  EXPECT_EQ(replica(1).propose("y").status, replica::ProposeStatus::committed);
}

TEST_F(NodeTest, OfTwoProcessesOnCopiesOfOneDirectoryOneIsFenced) {
  start_all();
  ASSERT_EQ(replica(1).propose("x").status, replica::ProposeStatus::committed);
  stop(3);
  std::filesystem::copy(dir(3), dir(4), std::filesystem::copy_options::recursive);
  start(3);
  EXPECT_TRUE(eventually([&] {
    const NodeStatus status = replica(3).status();
    std::size_t connected = 0;
    for (const MemberStatus& member : status.members) connected += member.connected ? 1 : 0;
    return connected == 3;
  }));
  NodeOptions copy = options(3);
  copy.data_dir = dir(4);
  copy.listen = spare_address_;
  Replica& twin = start(4, copy);
  ASSERT_EQ(twin.failure.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(twin.failure.get().code, ErrorCode::in_use);
  EXPECT_EQ(replica(3).propose("y").status, replica::ProposeStatus::committed);
}

TEST_F(NodeTest, ALeaderWhoseMachineWasStoppedEndsWithItsLease) {
  start_all();
  const std::uint64_t leader = await_leader();
  Replica& stopped = replica(leader);
  stopped.clock.machine_was_stopped();
  EXPECT_FALSE(stopped.node->lease_view().readable_index(stopped.clock));
  ASSERT_EQ(stopped.failure.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(stopped.failure.get().code, ErrorCode::clock_disrupted);
  EXPECT_EQ(stopped.node->lease_view().load().end, raft::HolderInstant::earliest());
  EXPECT_FALSE(stopped.read(raft::ReadMode::quorum).index.has_value());
  stop(leader);
  EXPECT_NE(await_leader(), leader);
  start(leader);
  EXPECT_EQ(replica(leader).propose("x").status, replica::ProposeStatus::committed);
}

TEST_F(NodeTest, OptionsThatCannotWorkAreRefusedWithTheReason) {
  const auto message = [this](const std::function<void(NodeOptions&)>& spoil) {
    NodeOptions spoilt = options(1);
    spoil(spoilt);
    Replica unused;
    const auto opened = open(unused, spoilt);
    EXPECT_FALSE(opened.ok());
    if (opened.ok()) return std::string();
    EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument) << opened.error().message;
    return opened.error().message;
  };
  EXPECT_NE(message([](NodeOptions& o) { o.id = raft::kNobody; }).find("id 0"), std::string::npos);
  EXPECT_NE(message([](NodeOptions& o) { o.id = raft::NodeId(9); }).find("not among"),
            std::string::npos);
  EXPECT_NE(message([](NodeOptions& o) { o.peers[1].id = raft::NodeId(1); }).find("twice"),
            std::string::npos);
  EXPECT_NE(message([](NodeOptions& o) { o.peers[1].address = "nowhere"; }).find("nowhere"),
            std::string::npos);
  EXPECT_NE(message([](NodeOptions& o) { o.data_dir.clear(); }).find("data directory"),
            std::string::npos);
  EXPECT_NE(message([](NodeOptions& o) { o.timing.heartbeat = 1s; }).find("U"), std::string::npos);
}

TEST_F(NodeTest, OneNodeIsAGroupToo) {
  peers_.resize(1);
  start(1);
  EXPECT_EQ(replica(1).propose("x").status, replica::ProposeStatus::committed);
  EXPECT_TRUE(replica(1).read(raft::ReadMode::lease).index.has_value());
  stop(1);
  start(1);
  EXPECT_EQ(replica(1).propose("y").status, replica::ProposeStatus::committed);
  EXPECT_EQ(replica(1).machine.list(), (std::vector<std::string>{"x", "y"}));
}

}  // namespace
}  // namespace leasehold::node
