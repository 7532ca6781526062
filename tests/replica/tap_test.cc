// What a tap in a driver sees, and when the driver lets it go.
#include <leasehold/replica/tap.h>

#include "driver_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace leasehold::replica::testing {
namespace {

/// Notes the names of what it is shown.
class NotingTap final : public Tap {
 public:
  bool begin(lease::Now, const raft::Core&, raft::Index) override {
    seen.emplace_back("begin");
    return wanted;
  }
  void received(const raft::Peer&, const wire::Payload&) override { seen.emplace_back("received"); }
  void released() override { seen.emplace_back("released"); }
  void turned(const raft::Core&) override { seen.emplace_back("turned"); }
  void sent(raft::NodeId, const wire::Payload&) override { seen.emplace_back("sent"); }
  void event(const raft::Event&) override { seen.emplace_back("event"); }
  void stopped(const std::optional<Error>& failure) override {
    seen.emplace_back(failure ? "failed" : "stopped");
  }
  std::size_t count(const std::string& name) const {
    return static_cast<std::size_t>(std::count(seen.begin(), seen.end(), name));
  }

  std::vector<std::string> seen;
  bool wanted = true;
};

TEST(Tap, SeesAllThatComesAndGoes) {
  Cluster cluster(3);
  const auto tap = std::make_shared<NotingTap>();
  Rig& node = cluster.node(1);
  node.driver().tap(tap);
  std::size_t sent = 0;
  cluster.lose = [&](raft::NodeId from, const Rig::Sent&) {
    if (from == node.id()) ++sent;
    return false;
  };
  cluster.await_leader();
  cluster.advance(milliseconds(500));
  EXPECT_GT(sent, 0U);
  EXPECT_EQ(tap->count("sent"), sent);
  EXPECT_EQ(tap->count("event") + 1, node.events().size()) << "the first one came with the driver";
  EXPECT_GT(tap->count("received"), 0U);
  EXPECT_GT(tap->count("turned"), 0U);
  EXPECT_EQ(tap->seen.front(), "begin");
}

TEST(Tap, AMessageIsSeenBeforeWhatItCauses) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  cluster.settle();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  const auto tap = std::make_shared<NotingTap>();
  follower.driver().tap(tap);
  cluster.lose = [&](raft::NodeId, const Rig::Sent&) { return !tap->seen.empty(); };
  cluster.advance(milliseconds(300));
  ASSERT_GE(tap->seen.size(), 4U);
  EXPECT_EQ((std::vector<std::string>(tap->seen.begin(), tap->seen.begin() + 4)),
            (std::vector<std::string>{"begin", "received", "turned", "sent"}));
}

TEST(Tap, IsLetGoWhenItHasSeenEnough) {
  Cluster cluster(3);
  auto tap = std::make_shared<NotingTap>();
  const std::weak_ptr<NotingTap> left = tap;
  cluster.node(1).driver().tap(tap);
  cluster.await_leader();
  tap->wanted = false;
  tap->seen.clear();
  cluster.advance(milliseconds(500));
  EXPECT_EQ(tap->seen, std::vector<std::string>{"begin"});
  tap.reset();
  EXPECT_TRUE(left.expired());
}

TEST(Tap, SeesTheEnd) {
  Cluster cluster(3);
  auto tap = std::make_shared<NotingTap>();
  const std::weak_ptr<NotingTap> left = tap;
  Rig& node = cluster.node(1);
  node.driver().tap(tap);
  node.handle(cluster.now(), Stop{});
  EXPECT_EQ(tap->count("stopped"), 1U);
  Rig& other = cluster.node(2);
  other.driver().tap(tap);
  other.handle(cluster.now(), StorageFailed{Error{ErrorCode::io, "x"}});
  EXPECT_EQ(tap->count("failed"), 1U);
  tap.reset();
  EXPECT_TRUE(left.expired());
}

}  // namespace
}  // namespace leasehold::replica::testing
