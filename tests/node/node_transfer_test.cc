// Planned transfers of the leadership of running nodes.
#include <leasehold/tests/node/node_fixture.h>

#include <atomic>

namespace leasehold::node {
namespace {

using namespace std::chrono_literals;

class NodeTransferTest : public NodeTest {
 protected:
  replica::TransferResult transfer_leadership(std::uint64_t at, std::uint64_t to,
                                              lease::Duration timeout = kLong) {
    auto answer = std::make_shared<std::promise<replica::TransferResult>>();
    auto future = answer->get_future();
    replica(at).node->transfer_leadership(
        raft::NodeId(to), timeout,
        [answer](replica::TransferResult result) { answer->set_value(result); });
    LEASEHOLD_ASSERT(future.wait_for(kPatience) == std::future_status::ready);
    return future.get();
  }
  DrainResult drain(std::uint64_t at, lease::Duration timeout = kLong) {
    auto answer = std::make_shared<std::promise<DrainResult>>();
    auto future = answer->get_future();
    replica(at).node->drain(timeout, [answer](DrainResult result) { answer->set_value(result); });
    LEASEHOLD_ASSERT(future.wait_for(kPatience) == std::future_status::ready);
    return future.get();
  }
};

TEST_F(NodeTransferTest, TheNamedNodeLeadsAndWhatWaitedIsAnswered) {
  start_all();
  std::uint64_t leader = await_leader();
  int written = 0;
  for (int round = 0; round < 6; ++round) {
    // Six times in a row: the next leader may be asked before it has heard of the transfer before.
    const std::uint64_t target = leader % 3 + 1;
    std::atomic<int> committed{0};
    constexpr int kEach = 20;
    for (int i = 0; i < kEach; ++i) {
      for (std::uint64_t at = 1; at <= 3; ++at) {
        replica(at).node->propose(Bytes("w"), kLong,
                                  [&committed](const replica::ProposeResult& result) {
                                    if (result.status == replica::ProposeStatus::committed)
                                      ++committed;
                                  });
      }
    }
    const replica::TransferResult result = transfer_leadership(leader, target);
    ASSERT_EQ(result.status, replica::GroupCallStatus::done) << round;
    EXPECT_EQ(result.leader, raft::NodeId(target));
    for (std::uint64_t at = 1; at <= 3; ++at) {
      EXPECT_TRUE(replica(at).read(raft::ReadMode::lease).index.has_value());
    }
    EXPECT_TRUE(eventually([&committed] { return committed == 3 * kEach; }));
    written += 3 * kEach;
    leader = target;
    EXPECT_EQ(await_leader(), leader);
  }
  for (std::uint64_t at = 1; at <= 3; ++at) {
    EXPECT_TRUE(eventually([this, at, written] {
      return replica(at).machine.list().size() == static_cast<std::size_t>(written);
    })) << "each once";
  }
}

TEST_F(NodeTransferTest, ATransferThatCannotBeIsRefused) {
  start_all();
  const std::uint64_t leader = await_leader();
  const std::uint64_t follower = follower_of(leader);
  ASSERT_TRUE(replica(follower).read(raft::ReadMode::quorum).index.has_value());
  const replica::TransferResult elsewhere = transfer_leadership(follower, 0);
  EXPECT_EQ(elsewhere.status, replica::GroupCallStatus::refused);
  EXPECT_EQ(elsewhere.refused->obstacle, raft::TransferObstacle::not_leader);
  EXPECT_EQ(elsewhere.leader, raft::NodeId(leader));
  const replica::TransferResult stranger = transfer_leadership(leader, 9);
  EXPECT_EQ(stranger.refused->obstacle, raft::TransferObstacle::not_a_voter);
  const replica::TransferResult late = transfer_leadership(leader, 0, 0s);
  EXPECT_EQ(late.refused->obstacle, raft::TransferObstacle::too_late);
  const replica::TransferResult same = transfer_leadership(leader, leader);
  EXPECT_EQ(same.status, replica::GroupCallStatus::done);
  EXPECT_EQ(same.leader, raft::NodeId(leader));
  EXPECT_EQ(await_leader(), leader);
}

TEST_F(NodeTransferTest, ATargetThatIsDownDoesNotTakeOver) {
  start_all();
  const std::uint64_t leader = await_leader();
  const std::uint64_t target = follower_of(leader);
  stop(target);
  ASSERT_EQ(replica(leader).propose("x").status, replica::ProposeStatus::committed);
  const replica::TransferResult result = transfer_leadership(leader, target);
  EXPECT_EQ(result.status, replica::GroupCallStatus::failed);
  EXPECT_EQ(result.leader, raft::NodeId(leader));
  EXPECT_EQ(replica(leader).propose("y").status, replica::ProposeStatus::committed);
}

TEST_F(NodeTransferTest, ADrainedLeaderHasTransferredAndAnsweredItsCalls) {
  start_all();
  const std::uint64_t leader = await_leader();
  std::atomic<int> committed{0};
  for (int i = 0; i < 50; ++i) {
    replica(leader).node->propose(Bytes("w"), kLong,
                                  [&committed](const replica::ProposeResult& result) {
                                    if (result.status == replica::ProposeStatus::committed)
                                      ++committed;
                                  });
  }
  const DrainResult result = drain(leader);
  EXPECT_TRUE(result.complete);
  EXPECT_TRUE(result.transferred);
  EXPECT_EQ(result.waiting, 0U);
  EXPECT_TRUE(eventually([&committed] { return committed == 50; }));
  const replica::ProposeResult refused = replica(leader).propose("x");
  EXPECT_EQ(refused.status, replica::ProposeStatus::dropped);
  EXPECT_FALSE(replica(leader).read(raft::ReadMode::quorum).index.has_value());
  stop(leader);
  EXPECT_NE(await_leader(), leader);
  EXPECT_EQ(replica(follower_of(leader)).propose("y").status, replica::ProposeStatus::committed);
}

TEST_F(NodeTransferTest, AllDrainAtOnce) {
  start_all();
  await_leader();
  std::vector<std::thread> threads;
  for (std::uint64_t at = 1; at <= 3; ++at) {
    threads.emplace_back([this, at] {
      drain(at);
      stop(at);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(NodeTransferTest, ADrainOfANodeThatStopsOrNeverBeganIsAnswered) {
  start(1);
  EXPECT_TRUE(drain(1).complete) << "no group, no caller waits";
  replica(1).node->stop();
  EXPECT_TRUE(drain(1).complete);
}

TEST_F(NodeTransferTest, CallsOfOtherThreadsMeetANodeThatStops) {
  start_all();
  await_leader();
  Node& node = *replica(1).node;
  std::atomic<bool> over{false};
  std::atomic<int> asked{0};
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!over) {
        // What waits for the node has no bound of its own.
        if (asked - answered > 100) continue;
        ++asked;
        node.status([&](const NodeStatus& status) {
          EXPECT_EQ(status.id, raft::NodeId(1));
          ++answered;
        });
      }
    });
  }
  EXPECT_TRUE(eventually([&answered] { return answered > 10; }));
  node.stop();
  const int then = answered;
  EXPECT_TRUE(eventually([&] { return answered > then + 10; }));
  over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(asked, answered);
}

TEST_F(NodeTransferTest, AStoppedNodeAnswersAtOnce) {
  start_all();
  Replica& node = replica(await_leader());
  node.node->stop();
  std::optional<replica::TransferResult> result;
  node.node->transfer_leadership(raft::kNobody, kLong,
                                 [&result](replica::TransferResult given) { result = given; });
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status, replica::GroupCallStatus::refused);
}

}  // namespace
}  // namespace leasehold::node
