#include <leasehold/base/random.h>
#include <leasehold/raft/quorum.h>

#include <gtest/gtest.h>

#include <map>

namespace leasehold::raft {
namespace {

// By the definition: the largest value such that more than half have reached it.
std::optional<int> dumb_majority(const std::vector<NodeId>& voters,
                                 const std::map<NodeId, int>& values) {
  std::optional<int> best;
  for (const auto& [unused, candidate] : values) {
    std::size_t reached = 0;
    for (const NodeId id : voters) {
      const auto value = values.find(id);
      if (value != values.end() && value->second >= candidate) ++reached;
    }
    if (reached * 2 > voters.size() && (!best || candidate > *best)) best = candidate;
  }
  return best;
}

TEST(QuorumTest, AgreesWithTheDefinition) {
  Random random(11);
  for (int round = 0; round < 20000; ++round) {
    Membership membership;
    std::map<NodeId, int> values;
    for (std::uint64_t i = 1; i <= 9; ++i) {
      if (random.chance(1, 2)) membership.voters.push_back(NodeId(i));
      if (random.chance(1, 4)) membership.outgoing_voters.push_back(NodeId(i));
      if (random.chance(3, 4)) values[NodeId(i)] = static_cast<int>(random.below(5));
    }
    const auto value_of = [&values](NodeId id) -> std::optional<int> {
      const auto value = values.find(id);
      if (value == values.end()) return std::nullopt;
      return value->second;
    };
    std::optional<int> expected = dumb_majority(membership.voters, values);
    if (membership.joint() && expected) {
      const std::optional<int> outgoing = dumb_majority(membership.outgoing_voters, values);
      expected = outgoing ? std::optional<int>(std::min(*expected, *outgoing)) : std::nullopt;
    }
    ASSERT_EQ(quorum_value<int>(membership, value_of), expected);
  }
}

TEST(QuorumTest, OnePassGivesEachKindItsOwnValue) {
  Random random(12);
  for (int round = 0; round < 5000; ++round) {
    Membership membership;
    std::map<NodeId, int> numbers;
    std::map<NodeId, Index> indices;
    for (std::uint64_t i = 1; i <= 9; ++i) {
      if (random.chance(1, 2)) membership.voters.push_back(NodeId(i));
      if (random.chance(1, 4)) membership.outgoing_voters.push_back(NodeId(i));
      if (random.chance(3, 4)) numbers[NodeId(i)] = static_cast<int>(random.below(5));
      if (random.chance(3, 4)) indices[NodeId(i)] = Index(random.below(5));
    }
    const auto in = [](const auto& values, NodeId id) {
      const auto value = values.find(id);
      return value != values.end() ? std::optional(value->second) : std::nullopt;
    };
    const auto number_of = [&](NodeId id) { return in(numbers, id); };
    const auto index_of = [&](NodeId id) { return in(indices, id); };
    const auto both_of = [&](NodeId id) { return std::make_tuple(number_of(id), index_of(id)); };
    const auto [number, index] = quorum_values<int, Index>(membership, both_of);
    ASSERT_EQ(number, quorum_value<int>(membership, number_of));
    ASSERT_EQ(index, quorum_value<Index>(membership, index_of));
  }
}

TEST(QuorumTest, AsManyVotersAsAMembershipMayHave) {
  Membership membership;
  for (std::uint64_t i = 1; i <= kMembersMax; ++i) membership.voters.push_back(NodeId(i));
  membership.outgoing_voters = membership.voters;
  const auto value_of = [](NodeId id) { return std::optional<std::uint64_t>(id.value()); };
  // 33 of 64 have reached it.
  EXPECT_EQ(quorum_value<std::uint64_t>(membership, value_of), kMembersMax - 32);
}

TEST(QuorumTest, NoVotersAreNoQuorum) {
  EXPECT_EQ(quorum_value<int>(Membership{}, [](NodeId) { return std::optional<int>(1); }),
            std::nullopt);
}

}  // namespace
}  // namespace leasehold::raft
