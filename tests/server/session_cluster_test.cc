// Sessions over a fake node: replies to cluster-aware clients.
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>

#include <string>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class ClusterLayout : public SessionTest {
 protected:
  ClusterLayout() {
    state_.options.client_addresses = {{raft::NodeId(1), "a:7201"}, {raft::NodeId(2), "b:7202"}};
  }
  /// "b a": hosts, the master first.
  std::string hosts(std::uint64_t leader, std::uint64_t last_leader) {
    node::NodeStatus status;
    status.id = raft::NodeId(1);
    status.leader = raft::NodeId(leader);
    status.last_leader = raft::NodeId(last_leader);
    status.members = {{raft::NodeId(1), "a:1", true, true, {}},
                      {raft::NodeId(2), "b:1", true, true, {}},
                      {raft::NodeId(3), "c:1", true, true, {}}};
    const auto ask = [&](const std::string& what) {
      feed("CLUSTER " + what + "\r\n");
      node_.end_status(status);
      return pump();
    };
    const auto order = [](const std::string& reply) {
      EXPECT_THAT(reply, AllOf(HasSubstr("\r\na\r\n"), HasSubstr("\r\nb\r\n")));
      return reply.find("\r\na\r\n") < reply.find("\r\nb\r\n") ? "a b" : "b a";
    };
    const std::string slots = order(ask("SLOTS"));
    EXPECT_EQ(order(ask("SHARDS")), slots);
    EXPECT_THAT(ask("NODES"), ContainsRegex(slots.substr(0, 1) + ":720[12]@0 (myself,)?master"));
    return slots;
  }
};

// ruby-redis 4.8 keeps an empty layout for good.
TEST_F(ClusterLayout, NamesTheLastLeaderWhileNoneIsKnown) {
  EXPECT_EQ(hosts(2, 2), "b a");
  EXPECT_EQ(hosts(0, 2), "b a");
  EXPECT_EQ(hosts(1, 1), "a b");
}

TEST_F(ClusterLayout, NamesThisNodeIfTheLeaderCannotBeNamed) {
  EXPECT_EQ(hosts(0, 0), "a b") << "no leader was ever known";
  EXPECT_EQ(hosts(3, 3), "a b") << "nobody knows the leader's client address";
}

}  // namespace
}  // namespace leasehold::server
