// Real nodes in one process, whose group grows, shrinks and moves.
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tests/node/node_fixture.h>

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

using namespace std::chrono_literals;
using raft::ChangeObstacle;
using What = MemberEdit::What;

class NodeMembersTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kAddresses = 9;

  void SetUp() override {
    for (const std::uint16_t port : free_ports(kAddresses)) addresses_.push_back(address_of(port));
  }
  void TearDown() override { replicas_.clear(); }

  const std::string& address(std::uint64_t id) const { return addresses_.at(id - 1); }
  std::string dir(std::uint64_t id) const { return folder_.path("node" + std::to_string(id)); }
  NodeOptions options(std::uint64_t id) const {
    NodeOptions options;
    options.id = raft::NodeId(id);
    options.data_dir = dir(id);
    options.timing.lease = 400ms;
    options.timing.heartbeat = 40ms;
    options.timing.election_timeout = 150ms;
    return options;
  }
  NodeOptions initial(std::uint64_t id, std::uint64_t members = 3) const {
    NodeOptions made = options(id);
    for (std::uint64_t i = 1; i <= members; ++i)
      made.peers.push_back({raft::NodeId(i), address(i)});
    return made;
  }
  NodeOptions joiner(std::uint64_t id) const {
    NodeOptions made = options(id);
    made.join = {address(1), address(2), address(3)};
    made.listen = address(id);
    return made;
  }
  Replica& start(const NodeOptions& options) {
    auto replica = std::make_unique<Replica>();
    auto opened = Node::open(options, replica->machine, replica->clock, replica->observer);
    if (!opened.ok()) ADD_FAILURE() << opened.error().message;
    replica->node = std::move(opened).value();
    replica->node->on_failure(
        [&failed = replica->failed](Error error) { failed.set_value(std::move(error)); });
    return *(replicas_[options.id.value()] = std::move(replica));
  }
  void start_group(std::uint64_t members = 3) {
    for (std::uint64_t id = 1; id <= members; ++id) start(initial(id, members));
    // A directory that has not formed yet cannot be opened without its initial peers.
    for (std::uint64_t id = 1; id <= members; ++id) {
      EXPECT_TRUE(eventually([&] { return status(id).formed; }));
    }
  }
  void stop(std::uint64_t id) { replicas_.erase(id); }
  void wipe(std::uint64_t id) {
    stop(id);
    std::filesystem::remove_all(dir(id));
  }
  Replica& replica(std::uint64_t id) { return *replicas_.at(id); }

  NodeStatus status(std::uint64_t id) { return replica(id).status(); }
  std::uint64_t leader() {
    std::uint64_t found = 0;
    EXPECT_TRUE(eventually([&] {
      for (const auto& [id, one] : replicas_) {
        if (one->node->lease_view().readable_index(one->clock)) found = id;
      }
      return found != 0;
    }));
    return found;
  }
  /// At the present leader, until it is accepted or refused for good.
  MembersResult change(const MemberEdits& edits) {
    MembersResult result;
    EXPECT_TRUE(eventually([&] {
      result = replica(leader()).node->change_members_and_wait(edits, kLong);
      return result.status == replica::GroupCallStatus::done || !result.retryable;
    }));
    return result;
  }
  ::testing::AssertionResult changed(const MemberEdits& edits) {
    const MembersResult result = change(edits);
    if (result.status == replica::GroupCallStatus::done) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << result.reason;
  }
  MemberEdit add(std::uint64_t id) const { return {What::add, raft::NodeId(id), address(id)}; }
  static MemberEdit edit(What what, std::uint64_t id) { return {what, raft::NodeId(id)}; }
  /// "1v 2v 4l", as node `id` sees it.
  std::string seats(std::uint64_t id) {
    std::string text;
    for (const MemberStatus& member : status(id).members) {
      text += (text.empty() ? "" : " ") + std::to_string(member.id.value());
      text += member.voter ? 'v' : 'l';
    }
    return text;
  }
  ::testing::AssertionResult write(std::uint64_t at, const std::string& text) {
    const auto result = replica(at).node->propose_and_wait(Bytes(text), kLong);
    if (result.status == replica::ProposeStatus::committed) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "not committed";
  }
  bool has(std::uint64_t id, const std::vector<std::string>& list) {
    return eventually([&] { return replica(id).machine.list() == list; });
  }

  TemporaryFolder folder_;
  std::vector<std::string> addresses_;
  std::map<std::uint64_t, std::unique_ptr<Replica>> replicas_;
};

TEST_F(NodeMembersTest, AJoinerWaitsIsAddedAndVotes) {
  start_group();
  ASSERT_TRUE(write(leader(), "a"));
  start(joiner(4));
  const NodeStatus waits = status(4);
  EXPECT_TRUE(waits.joining);
  // At once: a test that waited for this time to pass would not end.
  EXPECT_EQ(replica(4).node->propose_and_wait(Bytes("too early"), std::chrono::hours(1)).status,
            replica::ProposeStatus::dropped);
  EXPECT_FALSE(waits.formed);
  EXPECT_EQ(waits.address, address(4));
  EXPECT_TRUE(waits.members.empty());
  EXPECT_EQ(waits.cluster_id, status(1).cluster_id);

  ASSERT_TRUE(changed({add(4)}));
  EXPECT_EQ(seats(leader()), "1v 2v 3v 4l");
  ASSERT_TRUE(has(4, {"a"}));
  EXPECT_TRUE(eventually([&] { return seats(4) == "1v 2v 3v 4l" && status(4).formed; }));
  ASSERT_TRUE(changed({edit(What::promote, 4)}));
  EXPECT_EQ(seats(leader()), "1v 2v 3v 4v");
  const NodeStatus shown = status(leader());
  EXPECT_TRUE(shown.membership_committed);
  EXPECT_FALSE(shown.membership_joint);
  EXPECT_EQ(shown.members[3].uuid, status(4).uuid);
  EXPECT_EQ(shown.members[3].address, address(4));

  // From here on its log says who the members are: no flags are needed.
  stop(4);
  ASSERT_TRUE(write(leader(), "b"));
  start(options(4));
  EXPECT_TRUE(has(4, {"a", "b"}));
  EXPECT_EQ(seats(4), "1v 2v 3v 4v");
}

TEST_F(NodeMembersTest, TwoMembersAndAWitnessLiveThroughTheLossOfOne) {
  start_group(2);
  ASSERT_TRUE(write(leader(), "a"));
  NodeOptions witness = joiner(3);
  witness.join = {address(1), address(2)};
  witness.witness = true;
  start(witness);
  // It says its kind, and can be added only as that kind.
  const MembersResult wrong = change({add(3)});
  EXPECT_EQ(wrong.refused.obstacle, ChangeObstacle::other_kind);
  EXPECT_FALSE(wrong.retryable);
  EXPECT_NE(wrong.reason.find("node 3 runs as a witness"), std::string::npos) << wrong.reason;
  MemberEdit edit_witness = add(3);
  edit_witness.witness = true;
  ASSERT_TRUE(changed({edit_witness}));
  ASSERT_TRUE(changed({edit(What::promote, 3)}));
  EXPECT_TRUE(status(leader()).members[2].witness);
  EXPECT_TRUE(eventually([&] { return status(3).witness && seats(3) == "1v 2v 3v"; }));

  // A caller that asks it is sent to another node at once.
  const auto refused = replica(3).node->propose_and_wait(Bytes("no"), std::chrono::hours(1));
  EXPECT_EQ(refused.status, replica::ProposeStatus::dropped);
  EXPECT_NE(refused.leader, raft::kNobody);
  EXPECT_FALSE(replica(3).node->read_point(raft::ReadMode::lease, std::chrono::hours(1)).index);
  EXPECT_TRUE(replica(3).machine.list().empty());

  const std::uint64_t lost = leader();
  stop(lost);
  EXPECT_NE(leader(), 3U);
  ASSERT_TRUE(write(leader(), "b"));
  EXPECT_TRUE(has(leader(), {"a", "b"}));
  start(options(lost));
  EXPECT_TRUE(has(lost, {"a", "b"}));

  // Without the flag it would serve an empty state.
  stop(3);
  NodeOptions plain = options(3);
  start(plain);
  EXPECT_NE(replica(3).failure.get().message.find("witness"), std::string::npos);
}

TEST_F(NodeMembersTest, AWitnessIsNotAnInitialMember) {
  NodeOptions witness = initial(1, 2);
  witness.witness = true;
  Replica replica;
  const auto opened = Node::open(witness, replica.machine, replica.clock, replica.observer);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument);
}

TEST_F(NodeMembersTest, AddingANodeThatDoesNotAnswerIsRefusedWithTheReason) {
  start_group();
  const MembersResult nobody = replica(leader()).node->change_members_and_wait({add(4)}, kLong);
  EXPECT_EQ(nobody.status, replica::GroupCallStatus::refused);
  EXPECT_EQ(nobody.refused.obstacle, ChangeObstacle::no_answer);
  EXPECT_TRUE(nobody.retryable);
  EXPECT_NE(nobody.reason.find("no node 4 that waits to be added answers at " + address(4)),
            std::string::npos);
  EXPECT_NE(nobody.reason.find("--join"), std::string::npos);

  const std::uint64_t follower = leader() == 1 ? 2 : 1;
  // A quorum acknowledges the lease without this follower: it may hear from its leader later.
  EXPECT_TRUE(eventually([&] { return status(follower).leader != raft::kNobody; }));
  const MembersResult elsewhere =
      replica(follower).node->change_members_and_wait({edit(What::demote, 3)}, kLong);
  EXPECT_EQ(elsewhere.refused.obstacle, ChangeObstacle::not_leader);
  EXPECT_NE(elsewhere.leader, raft::kNobody);

  EXPECT_EQ(change({edit(What::remove, 9)}).refused.obstacle, ChangeObstacle::not_a_member);
  // Before any node is asked for its uuid.
  EXPECT_EQ(change({edit(What::promote, 2), edit(What::remove, 2), add(4)}).refused.obstacle,
            ChangeObstacle::contradiction);
  MemberEdit nowhere = add(4);
  nowhere.address = "nowhere";
  EXPECT_EQ(change({nowhere}).refused.obstacle, ChangeObstacle::invalid_member);
  EXPECT_EQ(change({edit(What::remove, 1), edit(What::remove, 2), edit(What::remove, 3)})
                .refused.obstacle,
            ChangeObstacle::no_voter);
  // The node that answers is another member.
  MemberEdit wrong = add(5);
  wrong.address = address(leader() == 2 ? 3 : 2);
  const MembersResult member = replica(leader()).node->change_members_and_wait({wrong}, kLong);
  EXPECT_EQ(member.refused.obstacle, ChangeObstacle::no_answer);
  // The text does not tell what answered.
  EXPECT_EQ(member.reason,
            "no node 5 that waits to be added answers at " + wrong.address +
                "; the leader's log says why. Start it first: leasehold serve --id 5 --join with "
                "the address of a member");
  EXPECT_EQ(
      replica(leader()).node->change_members_and_wait({edit(What::demote, 3)}, 0s).refused.obstacle,
      ChangeObstacle::too_late);
}

TEST_F(NodeMembersTest, ARemovedNodeLearnsItAndEnds) {
  start_group();
  const std::uint64_t gone = leader() == 3 ? 2 : 3;
  ASSERT_TRUE(changed({edit(What::remove, gone)}));
  ASSERT_EQ(replica(gone).failure.wait_for(kPatience), std::future_status::ready);
  const Error error = replica(gone).failure.get();
  EXPECT_EQ(error.code, ErrorCode::removed);
  EXPECT_NE(error.message.find("was removed from the group with entry"), std::string::npos);
  stop(gone);
  ASSERT_TRUE(write(leader(), "without"));

  // Its own log may not show the removal: a peer tells it, each time.
  start(initial(gone));
  ASSERT_EQ(replica(gone).failure.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(replica(gone).failure.get().code, ErrorCode::removed);
}

TEST_F(NodeMembersTest, ARemovedNodeThatWasAwayLearnsItWhenItReturns) {
  start_group();
  const std::uint64_t gone = leader() == 3 ? 2 : 3;
  stop(gone);
  ASSERT_TRUE(changed({edit(What::remove, gone)}));
  start(initial(gone));
  ASSERT_EQ(replica(gone).failure.wait_for(kPatience), std::future_status::ready);
  const Error error = replica(gone).failure.get();
  EXPECT_EQ(error.code, ErrorCode::removed);
  EXPECT_NE(error.message.find("says node"), std::string::npos) << error.message;
  EXPECT_TRUE(write(leader(), "undisturbed"));
}

TEST_F(NodeMembersTest, ARemovedLeaderTransfersAndEnds) {
  start_group();
  ASSERT_TRUE(write(leader(), "a"));
  const std::uint64_t old = leader();
  ASSERT_EQ(replica(old).node->change_members_and_wait({edit(What::remove, old)}, kLong).status,
            replica::GroupCallStatus::done);
  ASSERT_EQ(replica(old).failure.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(replica(old).failure.get().code, ErrorCode::removed);
  stop(old);
  EXPECT_TRUE(write(leader(), "b"));
}

// A wiped node is not a member until it was removed and added again.
TEST_F(NodeMembersTest, AWipedNodeIsRefusedUntilItIsRemovedAndAdded) {
  start_group();
  const std::uint64_t wiped = leader() == 3 ? 2 : 3;
  ASSERT_TRUE(write(leader(), "a"));
  wipe(wiped);
  Replica other;
  NodeOptions again = joiner(wiped);
  again.join = {address(leader())};
  const auto refused = Node::open(again, other.machine, other.clock, other.observer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find("wiped or replaced"), std::string::npos);
  EXPECT_NE(refused.error().message.find("leasehold member remove " + std::to_string(wiped)),
            std::string::npos);

  ASSERT_TRUE(changed({edit(What::remove, wiped)}));
  start(again);
  ASSERT_TRUE(changed({add(wiped)}));
  ASSERT_TRUE(changed({edit(What::promote, wiped)}));
  EXPECT_TRUE(has(wiped, {"a"}));
}

TEST_F(NodeMembersTest, AnotherClustersNameIsRefused) {
  start_group();
  leader();
  Replica other;
  NodeOptions stranger = joiner(4);
  stranger.cluster = "another";
  const auto refused = Node::open(stranger, other.machine, other.clock, other.observer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::wrong_cluster);
  EXPECT_NE(refused.error().message.find("--cluster"), std::string::npos);
}

// Every original member goes; the addresses are learned from the log alone.
TEST_F(NodeMembersTest, EveryMemberIsReplaced) {
  start_group();
  std::vector<std::string> list;
  for (std::uint64_t old = 1; old <= 3; ++old) {
    const std::uint64_t fresh = old + 3;
    NodeOptions made = joiner(fresh);
    made.join = {address(leader())};
    start(made);
    ASSERT_TRUE(changed({add(fresh)}));
    list.push_back("before " + std::to_string(old));
    ASSERT_TRUE(write(leader(), list.back()));
    ASSERT_TRUE(changed({edit(What::promote, fresh), edit(What::remove, old)}));
    ASSERT_EQ(replica(old).failure.wait_for(kPatience), std::future_status::ready);
    stop(old);
  }
  EXPECT_EQ(seats(leader()), "4v 5v 6v");
  for (std::uint64_t id = 4; id <= 6; ++id) EXPECT_TRUE(has(id, list));
  // None of the first three is left, and no node has their addresses.
  for (std::uint64_t id = 4; id <= 6; ++id) stop(id);
  for (std::uint64_t id = 4; id <= 6; ++id) start(options(id));
  ASSERT_TRUE(write(leader(), "after"));
  list.emplace_back("after");
  for (std::uint64_t id = 4; id <= 6; ++id) EXPECT_TRUE(has(id, list));
}

TEST_F(NodeMembersTest, FromOneToSevenAndBack) {
  start_group(1);
  ASSERT_TRUE(write(leader(), "one"));
  MemberEdits adds;
  MemberEdits promotions;
  for (std::uint64_t id = 2; id <= 7; ++id) {
    NodeOptions made = joiner(id);
    made.join = {address(1)};
    start(made);
    adds.push_back(add(id));
    promotions.push_back(edit(What::promote, id));
  }
  ASSERT_TRUE(changed(adds));
  ASSERT_TRUE(changed(promotions));
  EXPECT_EQ(seats(1), "1v 2v 3v 4v 5v 6v 7v");
  ASSERT_TRUE(write(leader(), "seven"));
  for (std::uint64_t id = 1; id <= 7; ++id) EXPECT_TRUE(has(id, {"one", "seven"}));
  const std::uint64_t last = leader();
  MemberEdits removals;
  for (std::uint64_t id = 1; id <= 7; ++id) {
    if (id != last) removals.push_back(edit(What::remove, id));
  }
  ASSERT_TRUE(changed(removals));
  ASSERT_TRUE(write(last, "alone"));
}

TEST_F(NodeMembersTest, AMovedMemberIsDialledWhereItIs) {
  start_group();
  const std::uint64_t moved = leader() == 3 ? 2 : 3;
  stop(moved);
  MemberEdit move = edit(What::move, moved);
  move.address = address(9);
  ASSERT_TRUE(changed({move}));
  ASSERT_TRUE(write(leader(), "a"));
  NodeOptions elsewhere = options(moved);
  elsewhere.listen = address(9);
  start(elsewhere);
  EXPECT_TRUE(has(moved, {"a"}));
  EXPECT_TRUE(eventually([&] { return status(moved).address == address(9); }));
}

}  // namespace
}  // namespace leasehold::node
