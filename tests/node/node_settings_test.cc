// The settings of running groups: what they form with, what a restart follows, and changes.
#include <leasehold/net/handshake.h>
#include <leasehold/node/node_ground.h>
#include <leasehold/storage/segment_log.h>
#include <leasehold/tests/node/node_fixture.h>

#include <filesystem>
#include <memory>
#include <vector>

namespace leasehold::node {
namespace {

using namespace std::chrono_literals;

class NodeSettingsTest : public NodeTest {
 protected:
  replica::SettingsResult change(std::uint64_t at, const raft::SettingsEdit& edit) {
    auto answer = std::make_shared<std::promise<replica::SettingsResult>>();
    auto future = answer->get_future();
    replica(at).node->change_settings(edit, kLong, [answer](const replica::SettingsResult& result) {
      answer->set_value(result);
    });
    LEASEHOLD_ASSERT(future.wait_for(kPatience) == std::future_status::ready);
    return future.get();
  }
  /// Makes the directories of all as a version without settings did.
  void form_without_settings() {
    std::vector<net::PeerAddress> addresses;
    for (const Peer& peer : peers_) addresses.push_back({peer.id, peer.address});
    std::vector<std::unique_ptr<storage::SegmentLog>> logs;
    std::vector<raft::Member> members;
    for (const Peer& peer : peers_) {
      storage::SegmentLogOptions log;
      std::filesystem::create_directories(dir(peer.id.value()));
      log.dir = dir(peer.id.value()) + "/log";
      log.group = kGroup;
      log.cluster_id = net::cluster_id(options(1).cluster, addresses, 0);
      log.id = peer.id;
      logs.push_back(storage::SegmentLog::open(log).value());
      members.push_back({peer.id, logs.back()->identity().uuid, peer.address});
    }
    for (const auto& log : logs) {
      ASSERT_TRUE(log->confirm_set(members).ok());
      ASSERT_TRUE(log->form().ok());
    }
  }
  raft::FeatureLevel level(std::uint64_t at) {
    const raft::FeatureLevel seen = replica(at).node->lease_view().level();
    EXPECT_LE(seen, replica(at).status().level);
    return seen;
  }
  /// Of a node that follows what its group has agreed on; zero: the group has not.
  lease::Duration agreed_lease(std::uint64_t at) {
    const NodeStatus status = replica(at).status();
    if (!status.settings) return lease::Duration(0);
    EXPECT_EQ(status.settings->timing, status.timing);
    return status.timing.lease;
  }
};

TEST_F(NodeSettingsTest, AGroupFormsWithThoseOfItsFirstMember) {
  for (std::uint64_t id = 1; id <= 3; ++id) {
    NodeOptions own = options(id);
    own.timing.lease = 400ms + 100ms * static_cast<int>(id);
    start(id, own);
  }
  await_leader();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_EQ(agreed_lease(id), 500ms) << id;
    EXPECT_TRUE(eventually([this, id] { return level(id) == raft::kSettingsLevel; })) << id;
  }
}

TEST_F(NodeSettingsTest, AreChangedAndOutliveARestartWithOtherFlags) {
  start_all();
  const std::uint64_t leader = await_leader();
  raft::SettingsEdit edit;
  edit.lease = 800ms;
  EXPECT_EQ(change(leader % 3 + 1, edit).refused->obstacle, raft::SettingsObstacle::not_leader);
  const replica::SettingsResult done = change(leader, edit);
  ASSERT_EQ(done.status, replica::GroupCallStatus::done);
  EXPECT_EQ(agreed_lease(leader), 800ms);
  EXPECT_EQ(change(leader, edit).status, replica::GroupCallStatus::done) << "it is so already";
  EXPECT_TRUE(eventually([this] {
    return agreed_lease(1) == 800ms && agreed_lease(2) == 800ms && agreed_lease(3) == 800ms;
  }));
  const std::uint64_t other = leader % 3 + 1;
  stop(other);
  start(other);  // with the flags of before
  EXPECT_TRUE(eventually([this, other] { return agreed_lease(other) == 800ms; }));
}

TEST_F(NodeSettingsTest, AnEarlierGroupGetsItsFirstOnesOnceAllMembersKnowThem) {
  form_without_settings();
  start(1);
  start(2);
  std::uint64_t leader = await_leader();
  EXPECT_EQ(agreed_lease(leader), 0s);
  EXPECT_EQ(level(leader), raft::kOldestLevel);
  raft::SettingsEdit edit;
  edit.lease = 600ms;
  const replica::SettingsResult refused = change(leader, edit);
  ASSERT_EQ(refused.status, replica::GroupCallStatus::refused);
  EXPECT_EQ(refused.refused->obstacle, raft::SettingsObstacle::member_unready);
  EXPECT_EQ(refused.refused->node, raft::NodeId(3));
  start(3);
  EXPECT_TRUE(eventually([&] {
    leader = await_leader();
    return change(leader, edit).status == replica::GroupCallStatus::done;
  }));
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_TRUE(eventually([this, id] { return agreed_lease(id) == 600ms; })) << id;
    EXPECT_TRUE(eventually([this, id] { return level(id) == raft::kSettingsLevel; })) << id;
  }
}

TEST_F(NodeSettingsTest, ThatBreakAnInequalityAreRefusedWithIt) {
  start_all();
  const std::uint64_t leader = await_leader();
  raft::SettingsEdit edit;
  edit.margin = 1s;
  const replica::SettingsResult refused = change(leader, edit);
  ASSERT_EQ(refused.status, replica::GroupCallStatus::refused);
  EXPECT_NE(text_of(*refused.refused).find("unsafe lease"), std::string::npos);
}

}  // namespace
}  // namespace leasehold::node
