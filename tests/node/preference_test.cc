// The leadership moves to the preferred node, and stays there.
#include <leasehold/node/preference.h>
#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

using replica::testing::Cluster;
using replica::testing::milliseconds;
using replica::testing::Rig;

constexpr lease::Duration kSettle = std::chrono::seconds(10);

class PreferenceTest : public ::testing::Test {
 protected:
  /// Every node has the same preferences.
  void want(std::vector<std::uint64_t> ids) {
    std::vector<raft::NodeId> wanted;
    for (const std::uint64_t id : ids) wanted.emplace_back(id);
    preferences_.clear();
    for (std::uint64_t id = 1; id <= 3; ++id) {
      preferences_.push_back(std::make_unique<Preference>(raft::NodeId(id), wanted, kSettle));
    }
  }
  /// Time passes as in three shells. Counts the transfers.
  void run(lease::Duration d) {
    for (lease::Duration gone{0}; gone < d; gone += milliseconds(5)) {
      cluster_.advance(milliseconds(5));
      for (std::uint64_t id = 1; id <= 3; ++id) {
        Rig& rig = cluster_.node(id);
        std::vector<replica::Event> events;
        preferences_.at(id - 1)->look(cluster_.now(), rig.driver(), reached_, events);
        for (replica::Event& event : events) {
          asked_.push_back(std::get<replica::TransferLeadership>(event).to);
          rig.handle(cluster_.now(), std::move(event));
        }
      }
      cluster_.settle();
    }
  }

  Cluster cluster_{3};
  std::uint64_t leader_ = cluster_.await_leader().id().value();
  std::vector<std::unique_ptr<Preference>> preferences_;
  std::vector<raft::NodeId> asked_;
  std::set<raft::NodeId> away_;
  std::function<bool(raft::NodeId)> reached_ = [this](raft::NodeId id) {
    return away_.count(id) == 0;
  };
};

TEST_F(PreferenceTest, WithoutAWishNothingMoves) {
  want({});
  run(3 * kSettle);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(PreferenceTest, ThePreferredNodeLeadsAfterAWhileAndKeepsTheLeadership) {
  const std::uint64_t best = leader_ % 3 + 1;
  want({best, leader_});
  run(kSettle - milliseconds(100));
  EXPECT_TRUE(asked_.empty());
  run(milliseconds(200));
  EXPECT_TRUE(cluster_.node(best).leads());
  run(10 * kSettle);
  EXPECT_EQ(asked_.size(), 1U);
  EXPECT_TRUE(cluster_.node(best).leads());
}

TEST_F(PreferenceTest, ALeaderThatStandsFirstKeepsTheLeadership) {
  want({leader_, leader_ % 3 + 1});
  run(3 * kSettle);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(PreferenceTest, OneThatIsAwayOrBehindIsNotWell) {
  const std::uint64_t best = leader_ % 3 + 1;
  const std::uint64_t second = best % 3 + 1;
  want({best, second});
  cluster_.cut(best);
  run(kSettle + milliseconds(1500));  // until its last promise has ended, and the wait
  EXPECT_EQ(asked_, std::vector<raft::NodeId>{raft::NodeId(second)});
  EXPECT_TRUE(cluster_.node(second).leads());
  // It comes back, and has to be well for the whole time.
  cluster_.heal();
  run(kSettle / 2);
  cluster_.cut(best);
  run(milliseconds(1500));
  cluster_.heal();
  run(kSettle - milliseconds(200));
  EXPECT_EQ(asked_.size(), 1U);
  run(milliseconds(2000));
  EXPECT_TRUE(cluster_.node(best).leads());
  EXPECT_EQ(asked_.size(), 2U);
}

TEST_F(PreferenceTest, AFailedTransferIsTriedMoreAndMoreRarely) {
  const std::uint64_t best = leader_ % 3 + 1;
  want({best});
  cluster_.lose = [](raft::NodeId, const Rig::Sent& sent) {
    const auto* message = std::get_if<raft::Message>(&sent.message.payload);
    return message != nullptr && std::holds_alternative<raft::TimeoutNow>(*message);
  };
  run(8 * kSettle);  // after 1, 3 and 7 times
  EXPECT_EQ(asked_.size(), 3U);
  EXPECT_TRUE(cluster_.node(leader_).leads());
}

TEST_F(PreferenceTest, ContradictingPreferencesMoveItAtMostOncePerSettleTime) {
  want({});
  const std::uint64_t other = leader_ % 3 + 1;
  preferences_[leader_ - 1] = std::make_unique<Preference>(
      raft::NodeId(leader_), std::vector{raft::NodeId(other)}, kSettle);
  preferences_[other - 1] = std::make_unique<Preference>(
      raft::NodeId(other), std::vector{raft::NodeId(leader_)}, kSettle);
  run(10 * kSettle);
  EXPECT_LE(asked_.size(), 10U);
  EXPECT_GE(asked_.size(), 2U);
}

}  // namespace
}  // namespace leasehold::node
