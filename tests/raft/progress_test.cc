#include <gtest/gtest.h>
#include <leasehold/raft/progress.h>

#include <vector>

namespace leasehold::raft {
namespace {

std::vector<std::uint64_t> ids(const Peers& peers) {
  std::vector<std::uint64_t> all;
  for (const auto& [id, progress] : peers) all.push_back(id.value());
  return all;
}

TEST(Peers, AreInTheOrderOfTheirIds) {
  Peers peers;
  for (const std::uint64_t id : {3U, 1U, 2U}) {
    const auto [entry, added] = peers.add(NodeId(id));
    EXPECT_TRUE(added);
    entry->second.match_index = Index(10 * id);
  }
  EXPECT_EQ(ids(peers), (std::vector<std::uint64_t>{1, 2, 3}));
  for (const auto& [id, progress] : peers) {
    EXPECT_EQ(progress.match_index, Index(10 * id.value()));
  }
}

TEST(Peers, KeepWhatIsKnownOfOneThatIsAddedAgain) {
  Peers peers;
  peers.add(NodeId(2)).first->second.match_index = Index(7);
  const auto [entry, added] = peers.add(NodeId(2));
  EXPECT_FALSE(added);
  EXPECT_EQ(entry->second.match_index, Index(7));
  EXPECT_EQ(peers.size(), 1U);
}

TEST(Peers, ForgetOneThatIsErased) {
  Peers peers;
  for (const std::uint64_t id : {1U, 2U, 3U}) peers.add(NodeId(id));
  const auto next = peers.erase(peers.find(NodeId(2)));
  EXPECT_EQ(next->first, NodeId(3));
  EXPECT_EQ(ids(peers), (std::vector<std::uint64_t>{1, 3}));
  EXPECT_FALSE(peers.contains(NodeId(2)));
  EXPECT_EQ(peers.find(NodeId(2)), peers.end());
  EXPECT_EQ(peers.at(NodeId(3)).match_index, Index(0));
}

TEST(Peers, CountWhoComesAndGoes) {
  Peers peers;
  peers.add(NodeId(1));
  const std::uint64_t one = peers.changes();
  peers.add(NodeId(1));
  EXPECT_EQ(peers.changes(), one);
  peers.add(NodeId(2));
  const std::uint64_t two = peers.changes();
  EXPECT_NE(two, one);
  peers.erase(peers.find(NodeId(2)));
  EXPECT_NE(peers.changes(), two);
  EXPECT_NE(peers.changes(), one);
}

}  // namespace
}  // namespace leasehold::raft
