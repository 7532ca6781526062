// Calls to a node whose group has not formed yet.
#include <leasehold/node/unformed_calls.h>
#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::node {
namespace {

using replica::testing::Answer;
using replica::testing::Cluster;

constexpr lease::Duration kLong = std::chrono::seconds(30);

TEST(UnformedCalls, BeforeThereIsAGroupThereIsNoLeader) {
  Cluster cluster(3);
  UnformedCalls unformed(10);
  Answer<replica::ChangeResult> changed;
  Answer<replica::TransferResult> handed;
  const raft::WantedMember only{raft::NodeId(1), raft::Uuid{1, 1}, "127.0.0.1:7001",
                                raft::Suffrage::voter};
  std::vector<replica::Event> events;
  events.emplace_back(replica::ChangeMembers{{only}, cluster.in(kLong), changed.completion()});
  events.emplace_back(
      replica::TransferLeadership{raft::kNobody, cluster.in(kLong), handed.completion()});
  unformed.take(cluster.now(), events, false);
  ASSERT_EQ(changed.calls, 1);
  EXPECT_EQ(changed.value.refused->obstacle, raft::ChangeObstacle::not_leader);
  ASSERT_EQ(handed.calls, 1);
  EXPECT_EQ(handed.value.refused->obstacle, raft::TransferObstacle::not_leader);
  unformed.release(events);
  EXPECT_TRUE(events.empty());
}

TEST(UnformedCalls, TheFirstDeadlineIsDue) {
  Cluster cluster(3);
  UnformedCalls unformed(10);
  EXPECT_EQ(unformed.next_deadline(), raft::PromiseInstant::never());
  Answer<replica::ReadResult> late;
  Answer<replica::ReadResult> soon;
  std::vector<replica::Event> events;
  events.emplace_back(replica::Read{raft::ReadMode::lease, cluster.in(kLong), late.completion()});
  events.emplace_back(
      replica::Read{raft::ReadMode::lease, cluster.in(kLong / 2), soon.completion()});
  unformed.take(cluster.now(), events, false);
  EXPECT_EQ(unformed.next_deadline(), cluster.in(kLong / 2));
  lease::Now then = cluster.now();
  then.promise = unformed.next_deadline();
  unformed.take(then, events, false);
  EXPECT_EQ(soon.calls, 1);
  EXPECT_EQ(unformed.next_deadline(), cluster.in(kLong));
  unformed.take(then, events, true);
  EXPECT_EQ(late.calls, 1);
  EXPECT_EQ(unformed.next_deadline(), raft::PromiseInstant::never());
}

}  // namespace
}  // namespace leasehold::node
