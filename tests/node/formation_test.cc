#include <leasehold/base/random.h>
#include <leasehold/node/formation.h>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

using raft::Member;
using raft::NodeId;
using raft::Uuid;

std::vector<Member> addresses(std::uint64_t size) {
  std::vector<Member> members;
  for (std::uint64_t id = 1; id <= size; ++id) {
    members.push_back({NodeId(id), {}, "host" + std::to_string(id) + ":7000"});
  }
  return members;
}

/// One node's directory and its process.
struct Directory {
  Uuid uuid;
  InitialSet confirmed;
  bool formed = false;
};

/// Nodes whose messages wait until the test lets them through.
class World {
 public:
  explicit World(std::uint64_t size, Formation::Manner manner = Formation::Manner::tells)
      : members_(addresses(size)), manner_(manner) {
    for (const Member& member : members_) wipe(member.id);
  }

  void wipe(NodeId id) {
    directories_[id] = Directory{{++last_uuid_, id.value()}, {}, false};
    start(id);
  }
  void start(NodeId id) {
    const Directory& directory = directories_[id];
    raft::GroupSettings own;
    own.timing.lease = std::chrono::seconds(id.value());
    nodes_[id] = std::make_unique<Formation>(id, directory.uuid, InitialSet{members_, own},
                                             directory.confirmed, directory.formed, manner_);
    act(id);
  }
  Formation& node(std::uint64_t id) { return *nodes_.at(NodeId(id)); }
  const Directory& directory(std::uint64_t id) { return directories_.at(NodeId(id)); }
  std::vector<std::pair<NodeId, Formation::Send>>& sent() { return sent_; }
  std::vector<Error>& errors() { return errors_; }

  /// Both learn who the other is, unless one refuses the other.
  bool handshake(std::uint64_t a, std::uint64_t b) {
    const bool let_in = node(a).judge(NodeId(b), directory(b).uuid).ok() &&
                        node(b).judge(NodeId(a), directory(a).uuid).ok();
    if (!let_in) return false;
    node(a).learned(NodeId(b), directory(b).uuid);
    act(NodeId(a));
    node(b).learned(NodeId(a), directory(a).uuid);
    act(NodeId(b));
    return true;
  }
  void deliver(std::size_t at) {
    const auto message = sent_.at(at);
    sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(at));
    Formation& to = *nodes_.at(message.second.to);
    const Result<void> result = to.received(message.first, message.second.message);
    if (!result.ok()) errors_.push_back(result.error());
    act(message.second.to);
  }
  void deliver_all() {
    while (!sent_.empty()) deliver(0);
  }

 private:
  void act(NodeId id) {
    Directory& directory = directories_[id];
    for (Formation::Output& output : nodes_.at(id)->take_outputs()) {
      if (auto* confirm = std::get_if<Formation::Confirm>(&output)) {
        ASSERT_TRUE(directory.confirmed.members.empty()) << "one set, and never another";
        directory.confirmed = confirm->set;
      } else if (auto* send = std::get_if<Formation::Send>(&output)) {
        ASSERT_EQ(send->message.members, directory.confirmed.members)
            << "durable before it is said";
        ASSERT_EQ(send->message.settings, directory.confirmed.settings);
        ASSERT_EQ(send->message.formed, directory.formed);
        sent_.emplace_back(id, *send);
      } else {
        ASSERT_FALSE(directory.formed);
        directory.formed = true;
      }
    }
  }

  std::vector<Member> members_;
  Formation::Manner manner_;
  std::uint64_t last_uuid_ = 0;
  std::map<NodeId, Directory> directories_;
  std::map<NodeId, std::unique_ptr<Formation>> nodes_;
  std::vector<std::pair<NodeId, Formation::Send>> sent_;
  std::vector<Error> errors_;
};

std::vector<NodeId> ids(std::vector<std::uint64_t> numbers) {
  std::vector<NodeId> out;
  for (const std::uint64_t number : numbers) out.emplace_back(number);
  return out;
}

TEST(Formation, OneNodeFormsByItself) {
  World world(1);
  EXPECT_TRUE(world.directory(1).formed);
  EXPECT_TRUE(world.node(1).missing().empty());
}

TEST(Formation, ThreeNodesForm) {
  World world(3);
  EXPECT_EQ(world.node(1).missing(), ids({1, 2, 3}));
  world.handshake(1, 2);
  world.handshake(1, 3);
  EXPECT_EQ(world.node(1).missing(), ids({2, 3})) << "it knows all members and has confirmed";
  EXPECT_FALSE(world.directory(1).formed);
  EXPECT_TRUE(world.directory(2).confirmed.members.empty());
  world.deliver_all();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_TRUE(world.directory(id).formed) << id;
    EXPECT_EQ(world.directory(id).confirmed, world.directory(1).confirmed);
  }
  EXPECT_TRUE(world.errors().empty());
}

// Nodes that were started with different numbers follow one set of them.
TEST(Formation, TheMemberWithTheLowestIdProposesTheSettings) {
  World world(3);
  world.handshake(2, 3);
  world.handshake(3, 1);
  world.handshake(2, 1);
  EXPECT_TRUE(world.directory(3).confirmed.members.empty()) << "it knows all, and waits for node 1";
  world.deliver_all();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    ASSERT_TRUE(world.directory(id).formed) << id;
    ASSERT_TRUE(world.directory(id).confirmed.settings.has_value()) << id;
    EXPECT_EQ(world.directory(id).confirmed.settings->timing.lease, std::chrono::seconds(1)) << id;
  }
}

TEST(Formation, OtherSettingsThanTheConfirmedOnesAreRefused) {
  World world(3);
  world.handshake(1, 2);
  world.handshake(1, 3);
  const std::vector<Member> members = world.directory(1).confirmed.members;
  const auto earlier = world.node(1).received(NodeId(2), wire::FormationConfirm{members, false});
  ASSERT_FALSE(earlier.ok());
  EXPECT_NE(earlier.error().message.find("earlier build"), std::string::npos);
  EXPECT_FALSE(world.directory(1).formed);
}

// A group whose first member runs a build that knows no settings is formed without any.
TEST(Formation, ASetWithoutSettingsIsConfirmedAsItIs) {
  World world(2);
  std::vector<Member> members = addresses(2);
  for (Member& member : members) member.uuid = world.directory(member.id.value()).uuid;
  ASSERT_TRUE(world.node(2).received(NodeId(1), wire::FormationConfirm{members, false}).ok());
  const auto outputs = world.node(2).take_outputs();
  ASSERT_FALSE(outputs.empty());
  EXPECT_FALSE(std::get<Formation::Confirm>(outputs[0]).set.settings.has_value());
}

// Its host was known before, so that nothing tells the proposer that it is there now.
TEST(Formation, AReplicaOfAHostThatComesLaterAsksTheProposer) {
  World world(3, Formation::Manner::asks);
  world.handshake(1, 2);
  world.handshake(1, 3);
  world.sent().clear();
  world.start(NodeId(2));
  EXPECT_TRUE(world.sent().empty());
  world.node(2).learned(NodeId(3), world.directory(3).uuid);
  EXPECT_TRUE(world.node(2).take_outputs().empty()) << "only one proposes";
  world.node(2).learned(NodeId(1), world.directory(1).uuid);
  const auto asked = world.node(2).take_outputs();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0], Formation::Output(Formation::Send{NodeId(1), {}}));
  ASSERT_TRUE(world.node(1).received(NodeId(2), {}).ok());
  const auto answered = world.node(1).take_outputs();
  ASSERT_EQ(answered.size(), 1U);
  EXPECT_EQ(std::get<Formation::Send>(answered[0]).message.members,
            world.directory(1).confirmed.members);
  EXPECT_TRUE(world.node(3).received(NodeId(2), {}).ok());
  EXPECT_TRUE(world.node(3).take_outputs().empty()) << "it has confirmed nothing";
}

TEST(Formation, DoesNotFormWhileOneHasNotConfirmed) {
  World world(3);
  world.handshake(1, 2);
  world.handshake(1, 3);
  world.handshake(2, 3);
  // The messages of 3 are lost.
  while (!world.sent().empty()) {
    if (world.sent()[0].first == NodeId(3)) {
      world.sent().erase(world.sent().begin());
    } else {
      world.deliver(0);
    }
  }
  EXPECT_FALSE(world.directory(1).formed);
  EXPECT_FALSE(world.directory(2).formed);
  EXPECT_EQ(world.node(1).missing(), ids({3}));
}

TEST(Formation, ALateMemberLearnsThatTheGroupIsFormed) {
  World world(3);
  world.handshake(1, 2);
  world.handshake(1, 3);
  world.handshake(2, 3);
  while (!world.sent().empty()) {  // nothing reaches 3 after the first confirmation
    const bool confirmed = !world.directory(3).confirmed.members.empty();
    if (confirmed && world.sent()[0].second.to == NodeId(3)) {
      world.sent().erase(world.sent().begin());
    } else {
      world.deliver(0);
    }
  }
  EXPECT_TRUE(world.directory(1).formed);
  EXPECT_FALSE(world.directory(3).formed);
  world.start(NodeId(1));
  world.start(NodeId(3));  // says again what it has confirmed
  world.deliver_all();
  EXPECT_TRUE(world.directory(3).formed);
}

TEST(Formation, AMemberWipedAfterAConfirmationIsRefused) {
  World world(3);
  world.handshake(1, 2);
  world.handshake(1, 3);
  world.sent().clear();
  world.wipe(NodeId(3));
  EXPECT_FALSE(world.handshake(1, 3));
  const auto judged = world.node(1).judge(NodeId(3), world.directory(3).uuid);
  ASSERT_FALSE(judged.ok());
  EXPECT_EQ(judged.error().code, ErrorCode::wrong_cluster);
  EXPECT_NE(judged.error().message.find("start again"), std::string::npos);
  // Node 2, which has not confirmed, meets the new one, and hears the old set from 1.
  world.handshake(2, 3);
  world.node(1).repeat();
  world.start(NodeId(1));
  world.deliver_all();
  EXPECT_FALSE(world.errors().empty());
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_FALSE(world.directory(id).formed);
}

TEST(Formation, AMemberWipedBeforeAnyConfirmationJoinsUnderItsNewUuid) {
  World world(3);
  world.handshake(1, 3);
  world.wipe(NodeId(3));
  world.handshake(1, 3);
  world.handshake(1, 2);
  world.handshake(2, 3);
  world.deliver_all();
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_TRUE(world.directory(id).formed);
}

TEST(Formation, AMemberWipedAfterFormationIsRefusedWithTheReason) {
  World world(3);
  world.handshake(1, 2);
  world.handshake(1, 3);
  world.deliver_all();
  ASSERT_TRUE(world.directory(3).formed);
  const auto confirmed = world.directory(1).confirmed;
  world.wipe(NodeId(3));
  EXPECT_FALSE(world.handshake(1, 3));
  const auto told =
      world.node(3).received(NodeId(1), wire::FormationConfirm{confirmed.members, true});
  ASSERT_FALSE(told.ok());
  EXPECT_NE(told.error().message.find("the group exists"), std::string::npos);
  EXPECT_TRUE(world.node(3).take_outputs().empty());
}

TEST(Formation, SetsOfOtherMembersAreNotConfirmed) {
  World world(3);
  std::vector<Member> others = addresses(4);
  for (Member& member : others) member.uuid = Uuid{9, member.id.value()};
  others[0].uuid = world.directory(1).uuid;
  EXPECT_FALSE(world.node(1).received(NodeId(2), wire::FormationConfirm{others, false}).ok());
  EXPECT_TRUE(world.node(1).take_outputs().empty());
}

// Random schedules with loss, duplicates, restarts and wipes: never do two nodes form different
// groups, and never does a group form that a member of it has not confirmed.
TEST(Formation, RandomSchedulesFormAtMostOneGroup) {
  int formed_runs = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    World world(3, seed % 3 == 0 ? Formation::Manner::asks : Formation::Manner::tells);
    for (int step = 0; step < 120; ++step) {
      const std::uint64_t what = random.below(100);
      const std::uint64_t a = 1 + random.below(3);
      const std::uint64_t b = 1 + random.below(3);
      if (what < 30) {
        if (a != b) world.handshake(a, b);
      } else if (what < 80) {
        if (!world.sent().empty()) world.deliver(random.below(world.sent().size()));
      } else if (what < 85) {
        if (!world.sent().empty()) world.sent().push_back(world.sent()[0]);
      } else if (what < 90) {
        if (!world.sent().empty()) world.sent().erase(world.sent().begin());
      } else if (what < 99 || seed % 2 == 0) {
        world.start(NodeId(a));
      } else {
        world.wipe(NodeId(a));
      }
      std::optional<InitialSet> group;
      for (std::uint64_t id = 1; id <= 3; ++id) {
        const Directory& directory = world.directory(id);
        if (!directory.formed) continue;
        if (group) {
          ASSERT_EQ(*group, directory.confirmed) << "seed " << seed;
        }
        group = directory.confirmed;
      }
      if (!group) continue;
      for (const Member& member : group->members) {
        const Directory& directory = world.directory(member.id.value());
        if (directory.uuid == member.uuid) {
          ASSERT_EQ(directory.confirmed, *group) << "seed " << seed;
        }
      }
    }
    if (world.directory(1).formed) ++formed_runs;
  }
  EXPECT_GT(formed_runs, 1000) << "the schedules have to reach what they are about";
}

}  // namespace
}  // namespace leasehold::node
