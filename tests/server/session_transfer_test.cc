// Sessions over a fake node: the leadership is transferred on demand, and a node is about to stop.
#include <leasehold/server/front/session.h>
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class SessionTransferTest : public SessionTest {
 protected:
  std::string answered(replica::GroupCallStatus status, raft::NodeId leader,
                       std::optional<raft::TransferObstacle> obstacle = std::nullopt) {
    EXPECT_EQ(feed("LEASEHOLD TRANSFER\r\n"), "");
    replica::TransferResult result;
    result.status = status;
    result.leader = leader;
    if (obstacle) result.refused = raft::TransferRefused{*obstacle, leader};
    node_.end_transfer(result);
    return pump();
  }
};

TEST_F(SessionTransferTest, ItIsAskedBehindTheWritesBeforeItAndToldWhoLeads) {
  EXPECT_EQ(feed("SET k v\r\nleasehold transfer 3\r\nPING\r\n"), "");
  node_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_EQ(node_.next_transfer(), raft::NodeId(3));
  replica::TransferResult result;
  result.status = replica::GroupCallStatus::done;
  result.leader = raft::NodeId(3);
  node_.end_transfer(result);
  const std::string reply = pump();
  EXPECT_THAT(reply, HasSubstr("{\"leader\":3,\"took_us\":"));
  EXPECT_THAT(reply, HasSubstr("+PONG\r\n"));
}

TEST_F(SessionTransferTest, WithoutANumberTheNodeChooses) {
  EXPECT_EQ(feed("LEASEHOLD TRANSFER\r\n"), "");
  EXPECT_EQ(node_.next_transfer(), raft::kNobody);
}

TEST_F(SessionTransferTest, AWrongNumberIsRefused) {
  for (const char* wrong : {"0", "-1", "x", "4294967296", "99999999999999999999"}) {
    EXPECT_THAT(feed("LEASEHOLD TRANSFER " + std::string(wrong) + "\r\n"),
                HasSubstr("is not the number of a node\r\n"));
  }
  EXPECT_EQ(feed("LEASEHOLD TRANSFER 1 2\r\n"), "-ERR expected LEASEHOLD TRANSFER [id]\r\n");
}

TEST_F(SessionTransferTest, TheFirstWordSaysWhatToDo) {
  using raft::TransferObstacle;
  using replica::GroupCallStatus;
  state_.options.client_addresses[raft::NodeId(2)] = "10.0.0.2:7201";
  EXPECT_EQ(
      answered(GroupCallStatus::refused, raft::NodeId(2), TransferObstacle::not_leader),
      "-NOLEADER this node does not lead, and only the leader transfers the leadership; node 2 "
      "leads, at 10.0.0.2:7201\r\n");
  EXPECT_THAT(answered(GroupCallStatus::refused, raft::kNobody, TransferObstacle::not_leader),
              HasSubstr("; no leader is known\r\n"));
  EXPECT_THAT(answered(GroupCallStatus::refused, raft::NodeId(1), TransferObstacle::not_a_voter),
              StartsWith("-ERR node 1 is not a voter"));
  for (const auto obstacle : {TransferObstacle::transfer_under_way,
                              TransferObstacle::nobody_to_follow, TransferObstacle::too_late}) {
    EXPECT_THAT(answered(GroupCallStatus::refused, raft::NodeId(1), obstacle),
                StartsWith("-TRYAGAIN "));
  }
  EXPECT_EQ(answered(GroupCallStatus::failed, raft::NodeId(1)),
            "-TRYAGAIN the other node did not take over in time; node 1 leads as before\r\n");
  EXPECT_THAT(answered(GroupCallStatus::unknown, raft::kNobody), StartsWith("-UNKNOWNOUTCOME "));
}

TEST_F(SessionTransferTest, ANodeThatIsAboutToStopRefusesWhatTouchesTheStore) {
  EXPECT_EQ(feed("SET k v\r\n"), "");
  EXPECT_EQ(feed("MULTI\r\n"), "") << "behind the write";
  node_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n+OK\r\n");
  EXPECT_EQ(feed("DISCARD\r\nSET j v\r\n"), "+OK\r\n");
  state_.draining = true;
  const std::string refused =
      "-TRYAGAIN this node is about to stop; the command was not executed, ask another node\r\n";
  EXPECT_EQ(feed("SET k w\r\nPING\r\n"), "") << "in their order, behind what is in flight";
  node_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n" + refused + "+PONG\r\n");
  node_.grant_lease(std::chrono::seconds(1));
  for (const char* command : {"GET k", "DEL k", "KEYS *", "WATCH k", "LEASEHOLD READ quorum GET k",
                              "LEASEHOLD TRANSFER"}) {
    EXPECT_EQ(feed(std::string(command) + "\r\n"), refused) << command;
  }
  EXPECT_EQ(feed("RESET\r\nMULTI\r\nINCR n\r\nEXEC\r\n"), "+RESET\r\n+OK\r\n+QUEUED\r\n" + refused);
  EXPECT_EQ(feed("EXEC\r\n"), "-ERR EXEC without MULTI\r\n") << "the transaction is over";
  EXPECT_EQ(node_.proposals() + node_.reads(), 0U);
}

TEST_F(SessionTest, AWitnessChangesNothing) {
  state_.options.witness = true;
  for (const char* line :
       {"LEASEHOLD TRANSFER", "LEASEHOLD MEMBER REMOVE 2", "LEASEHOLD SETTINGS SET lease 2s",
        "SET k v", "ACL SETUSER ann on", "LEASEHOLD SESSION OPEN"}) {
    EXPECT_THAT(feed(std::string(line) + "\r\n"), StartsWith("-WITNESS ")) << line;
  }
  EXPECT_EQ(node_.proposals(), 0U);
}

}  // namespace
}  // namespace leasehold::server
