// When a member that was removed ends. Bare cores; the connections are the test's.
#include <leasehold/node/node_members.h>
#include <leasehold/tests/raft/group.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace leasehold::node {
namespace {

using namespace std::chrono_literals;
using raft::NodeId;
using raft::Role;
using raft::test::Envelope;

// 1 and 4 have a state, 2 and 3 are witnesses.
const std::vector<int> kWitnesses = {2, 3};

NodeId node(int id) {
  return NodeId(static_cast<std::uint64_t>(id));
}

raft::WantedMember voter(int id) {
  raft::WantedMember wanted;
  wanted.id = node(id);
  wanted.uuid = {wanted.id.value(), wanted.id.value()};
  wanted.address = "node" + std::to_string(id);
  wanted.suffrage = raft::Suffrage::voter;
  wanted.witness = std::count(kWitnesses.begin(), kWitnesses.end(), id) > 0;
  return wanted;
}

/// Keeps the peers that it is given, and which of them were dismissed.
class FakeLinks final : public Links {
 public:
  void describe(const std::string&, raft::LogId) override {}
  void set_peer(const net::PeerAddress& member) override {
    const auto same = [&](const net::PeerAddress& peer) { return peer.id == member.id; };
    if (std::none_of(peers_.begin(), peers_.end(), same)) peers_.push_back(member);
  }
  std::vector<net::PeerAddress> peers() const override { return peers_; }
  void dismiss_peer(NodeId member, const wire::Refusal&) override {
    dismissed.push_back(member);
    const auto same = [&](const net::PeerAddress& peer) { return peer.id == member; };
    peers_.erase(std::remove_if(peers_.begin(), peers_.end(), same), peers_.end());
  }
  std::optional<raft::LogId> known_membership(NodeId) const override { return std::nullopt; }
  void introduce(const MemberEdit&, std::function<void(Result<wire::Hello>)>) override {}
  std::optional<std::uint32_t> wire_version(NodeId) const override { return std::nullopt; }
  bool connected(NodeId) const override { return true; }
  net::PeerProofs proofs(NodeId) const override { return {}; }

  std::vector<NodeId> dismissed;

 private:
  std::vector<net::PeerAddress> peers_;
};

struct Seat {
  explicit Seat(int id)
      : members(
            {node(id), {node(id).value(), node(id).value()}, "here", voter(id).witness}, links,
            [](replica::Event) {}, [](const std::string&) {}) {}

  FakeLinks links;
  Members members;
};

/// The leader is removed, and the only full voter that stays does not have the last entry.
class Farewell : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const int id : {1, 2, 3, 4}) seats_[id] = std::make_unique<Seat>(id);
    leader_ = group_.elect();
    other_ = 5 - leader_;
    look(0ms);
    group_.filter = [this](const Envelope& e) {
      const auto* append = std::get_if<raft::AppendRequest>(&e.message);
      if (append == nullptr || append->entries.empty() || e.to != node(other_)) return true;
      return group_.core(leader_).membership().joint();
    };
    const auto started = group_.change(leader_, {voter(2), voter(3), voter(other_)});
    ASSERT_TRUE(std::holds_alternative<raft::LogId>(started));
    look(300ms);
    ASSERT_EQ(core().commit_index(), core().log().last_index());
    ASSERT_EQ(core().membership().find(node(leader_)), nullptr);
    ASSERT_EQ(core().role(), Role::leader);
  }

  const raft::Core& core() { return group_.core(leader_); }
  Members& removed() { return seat(leader_).members; }
  Seat& seat(int id) { return *seats_.at(id); }
  /// Time passes, and the nodes look at their members every five milliseconds.
  void look(lease::Duration span) {
    for (lease::Duration passed{0}; passed <= span; passed += 5ms) {
      if (passed > 0ms) group_.run(5ms);
      for (const int id : {1, 2, 3, 4}) seat(id).members.look(group_.core(id), group_.now());
    }
  }
  bool gone() { return removed().gone(group_.now()).has_value(); }

  raft::test::Group group_{4, {}, 1, lease::Duration(0), kWitnesses};
  std::map<int, std::unique_ptr<Seat>> seats_;
  int leader_ = 0;
  int other_ = 0;
};

TEST_F(Farewell, ALeaderThatWasRemovedStaysAsLongAsItLeads) {
  look(3s);
  ASSERT_EQ(core().role(), Role::leader);
  EXPECT_FALSE(gone());
  EXPECT_FALSE(removed().seated());
  EXPECT_GT(removed().due(), group_.now().promise);
  // They do not know that it is committed before a full voter has it.
  for (const int id : kWitnesses) EXPECT_TRUE(seat(id).links.dismissed.empty());

  group_.filter = [](const Envelope&) { return true; };
  look(300ms);
  ASSERT_EQ(group_.core(other_).role(), Role::leader);
  EXPECT_FALSE(gone());
  look(1s);
  ASSERT_TRUE(gone());
  EXPECT_EQ(removed().gone(group_.now())->code, ErrorCode::removed);
  look(300ms);
  for (const int id : kWitnesses) {
    EXPECT_EQ(seat(id).links.dismissed, std::vector<NodeId>{node(leader_)});
  }
}

}  // namespace
}  // namespace leasehold::node
