// What a group of a host keeps while it rests.
#include <leasehold/node/node_host.h>
#include <leasehold/tests/node/host_fixture.h>

#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::node {
namespace {

class SentMessages final : public net::Transport {
 public:
  void send(raft::NodeId to, wire::PeerMessage message) override {
    sent.emplace_back(to, std::move(message));
  }
  std::vector<std::pair<raft::NodeId, wire::PeerMessage>> sent;
};

TEST(RestingGroup, AMemberThatHasNotHeardThatTheGroupFormedIsAnswered) {
  TemporaryFolder folder;
  storage::SegmentLogOptions log_options;
  log_options.dir = folder.path("log");
  log_options.cluster_id = 7;
  log_options.id = raft::NodeId(1);
  const auto log = storage::SharedLog::open(log_options);
  ASSERT_TRUE(log.ok());
  const auto group_log = log.value()->open_group(raft::GroupId(1));
  const std::vector<raft::Member> set{{raft::NodeId(1), log.value()->identity().uuid, "one:1"},
                                      {raft::NodeId(2), raft::Uuid{2, 2}, "two:2"}};
  const std::optional<raft::GroupSettings> settings = raft::GroupSettings{};
  ASSERT_TRUE(group_log.value()->confirm_set(set, settings).ok());
  ASSERT_TRUE(group_log.value()->form({}).ok());

  StoppableClock clock;
  RecordingObserver observer;
  ListMachine machine;
  Loop loop({}, clock, observer);
  replica::Places places([](const raft::Uuid&) { return raft::kNobody; });
  ReplicaLinks links(raft::NodeId(1), loop, places,
                     [](const net::PeerAddress&) { return std::optional<raft::Uuid>(); });
  SentMessages transport;
  ReplicaOptions options;
  options.group = raft::GroupId(1);
  options.id = raft::NodeId(1);
  options.data_dir = folder.path("group");
  GroupShell replica(options, loop, observer);
  GroupGround ground;
  ground.self = log.value()->identity();
  ground.log = group_log.value().get();
  ground.machine = &machine;
  ground.links = &links;
  ground.transport = &transport;
  ground.places = &places;
  ASSERT_TRUE(replica.prepare(std::move(ground)).ok());
  EXPECT_EQ(replica.formation(), nullptr);

  const auto say = [&replica, &settings](const raft::Uuid& from,
                                         const std::vector<raft::Member>& members) {
    replica::PeerMessageReceived event;
    event.from = {raft::NodeId(2), from, {}};
    event.message = {raft::GroupId(1), wire::FormationConfirm{members, false, settings}};
    replica.take(std::move(event));
  };
  say(raft::Uuid{9, 9}, set);
  EXPECT_TRUE(transport.sent.empty()) << "it is another directory";
  say(raft::Uuid{2, 2}, set);
  ASSERT_EQ(transport.sent.size(), 1U);
  EXPECT_EQ(transport.sent[0].first, raft::NodeId(2));
  const auto& answer = std::get<wire::FormationConfirm>(transport.sent[0].second.payload);
  EXPECT_TRUE(answer.formed);
  EXPECT_EQ(answer.members, set);
}

}  // namespace
}  // namespace leasehold::node
