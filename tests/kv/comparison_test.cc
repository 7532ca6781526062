#include <leasehold/base/random.h>
#include <leasehold/kv/comparison.h>
#include <leasehold/kv/state_sum.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace leasehold::kv {
namespace {

using raft::Index;
using raft::NodeId;
using Verdict = Comparison::Verdict;

const std::vector<NodeId> kThree = {NodeId(1), NodeId(2), NodeId(3)};

StateReport report(std::uint64_t node, std::uint64_t index, std::uint64_t sum) {
  return {NodeId(node), Index(index), kSumVersion, {sum, 0}, {sum, 0}};
}

TEST(StateSum, EveryBitOfARecordMovesTheSum) {
  const std::string key = "\1key";
  std::string value(100, 'v');
  const StateSum whole = record_sum(key, value);
  for (std::size_t bit = 0; bit < 8 * value.size(); ++bit) {
    std::string other = value;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
    const StateSum changed = record_sum(key, other);
    EXPECT_NE(changed.low, whole.low) << bit;
    EXPECT_NE(changed.high, whole.high) << bit;
  }
}

TEST(StateSum, TheBorderOfKeyAndValueAndZeroesAtTheEndCount) {
  std::vector<StateSum> sums;
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"ab", "c"},
                                                        {"a", "bc"},
                                                        {"abc", ""},
                                                        {"", "abc"},
                                                        {std::string("a\0", 2), "bc"},
                                                        {"a", std::string("bc\0", 3)},
                                                        {"a", std::string("bc\0\0\0\0\0\0", 8)}}) {
    sums.push_back(record_sum(key, value));
  }
  for (std::size_t a = 0; a < sums.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(sums[a], sums[b]) << a << " " << b;
  }
}

TEST(StateSum, IsPinned) {
  const StateSum sum = record_sum("key", "a value of more than sixteen bytes");
  EXPECT_EQ(sum, (StateSum{0xdcae2dbd6867b176U, 0xd0c7600e3eb31476U}));
}

TEST(StateSum, ForgetsWhatIsTakenAwayInAnyOrder) {
  Random random(3);
  std::vector<StateSum> shares;
  StateSum sum;
  for (int i = 0; i < 1000; ++i) {
    shares.push_back({random.next(), random.next()});
    sum += shares.back();
  }
  while (!shares.empty()) {
    const std::size_t at = random.below(shares.size());
    sum -= shares[at];
    shares.erase(shares.begin() + static_cast<std::ptrdiff_t>(at));
  }
  EXPECT_EQ(sum, StateSum{});
}

TEST(Comparison, AMajorityWithTheSameSumIsAlike) {
  Comparison comparison;
  EXPECT_FALSE(comparison.newest());
  comparison.take(Index(7), {5, 0});
  EXPECT_EQ(comparison.newest()->index, Index(7));
  EXPECT_EQ(comparison.judge(NodeId(1), kThree).verdict, Verdict::open);
  comparison.hear(report(2, 7, 5));
  const auto judged = comparison.judge(NodeId(1), kThree);
  EXPECT_EQ(judged.verdict, Verdict::alike);
  EXPECT_TRUE(judged.others.empty());
}

TEST(Comparison, TheOddOneDiffers) {
  Comparison comparison;
  comparison.take(Index(7), {5, 0});
  comparison.hear(report(2, 7, 6));
  EXPECT_EQ(comparison.judge(NodeId(1), kThree).verdict, Verdict::open);
  comparison.hear(report(3, 7, 6));
  EXPECT_EQ(comparison.judge(NodeId(1), kThree).verdict, Verdict::differs);
}

TEST(Comparison, TheMajoritySeesTheOddOne) {
  Comparison comparison;
  comparison.take(Index(7), {5, 0});
  comparison.hear(report(3, 7, 6));
  comparison.hear(report(2, 7, 5));
  const auto judged = comparison.judge(NodeId(1), kThree);
  EXPECT_EQ(judged.verdict, Verdict::alike);
  EXPECT_EQ(judged.others, std::vector<NodeId>{NodeId(3)});
}

TEST(Comparison, HalfOfTheGroupIsNoMajority) {
  Comparison comparison;
  comparison.take(Index(7), {5, 0});
  comparison.hear(report(2, 7, 6));
  EXPECT_EQ(comparison.judge(NodeId(1), {NodeId(1), NodeId(2)}).verdict, Verdict::undecided);
  comparison.hear(report(3, 7, 8));
  EXPECT_EQ(comparison.judge(NodeId(1), kThree).verdict, Verdict::undecided);
}

TEST(Comparison, OnlyVotersCountAndALearnerComparesItselfWithThem) {
  Comparison comparison;
  comparison.take(Index(7), {5, 0});
  comparison.hear(report(2, 7, 6));
  comparison.hear(report(3, 7, 6));
  EXPECT_EQ(comparison.judge(NodeId(1), {NodeId(1), NodeId(2), NodeId(4)}).verdict, Verdict::open);
  EXPECT_EQ(comparison.judge(NodeId(1), {NodeId(2), NodeId(3), NodeId(4)}).verdict,
            Verdict::differs);
}

TEST(Comparison, ReportsOfAnotherIndexOrVersionDoNotCount) {
  Comparison comparison;
  comparison.take(Index(7), {5, 0});
  comparison.hear(report(2, 6, 6));
  comparison.hear(report(3, 6, 6));
  StateReport other = report(2, 7, 6);
  other.version = kSumVersion + 1;
  comparison.hear(other);
  other.node = NodeId(3);
  comparison.hear(other);
  EXPECT_EQ(comparison.judge(NodeId(1), kThree).verdict, Verdict::open);
}

TEST(Comparison, AnOlderIndexCountsUntilANewerOneIsJudged) {
  Comparison comparison;
  comparison.take(Index(7), {5, 0});
  comparison.hear(report(2, 7, 6));
  comparison.hear(report(3, 7, 6));
  comparison.take(Index(9), {5, 0});
  EXPECT_EQ(comparison.judge(NodeId(1), kThree).verdict, Verdict::differs);
  comparison.hear(report(2, 9, 5));
  EXPECT_EQ(comparison.judge(NodeId(1), kThree).verdict, Verdict::alike);
  comparison.forget_own();
  EXPECT_EQ(comparison.judge(NodeId(1), kThree).verdict, Verdict::open);
}

TEST(Comparison, OldIndexesAreForgotten) {
  Comparison comparison;
  for (std::uint64_t i = 1; i <= 100; ++i) comparison.take(Index(i), {i, 0});
  comparison.hear(report(2, 1, 6));
  comparison.hear(report(3, 1, 6));
  EXPECT_EQ(comparison.judge(NodeId(1), kThree).verdict, Verdict::open);
}

TEST(Comparison, ADamageThatAnotherHasReportedIsAFaultOfTheProgram) {
  StateReport own = report(1, 7, 5);
  own.stored = {9, 0};
  Comparison comparison;
  EXPECT_EQ(comparison.damage(own), Comparison::Damage::unheard);
  comparison.hear(own);
  EXPECT_EQ(comparison.damage(own), Comparison::Damage::own);
  StateReport other = report(2, 8, 105);
  other.stored = {109, 0};
  comparison.hear(other);
  EXPECT_EQ(comparison.damage(own), Comparison::Damage::own);
  EXPECT_EQ(comparison.damage(other), Comparison::Damage::shared);
  other.stored = {110, 0};
  EXPECT_EQ(comparison.damage(other), Comparison::Damage::unheard);
}

TEST(Comparison, AReportOfDamageIsNoneOfTheState) {
  Comparison comparison;
  comparison.take(Index(7), {5, 0});
  for (std::uint64_t node = 2; node <= 3; ++node) {
    StateReport damaged = report(node, 7, 6);
    damaged.stored = {9, 0};
    comparison.hear(damaged);
  }
  EXPECT_EQ(comparison.judge(NodeId(1), kThree).verdict, Verdict::open);
}

}  // namespace
}  // namespace leasehold::kv
