#include <leasehold/bench/load/key_choice.h>
#include <leasehold/bench/load/mix.h>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace leasehold::bench {
namespace {

constexpr int kDraws = 400'000;

/// Of each of `n` ranks: rank^-s / the sum of all.
std::vector<double> zipf_probabilities(std::uint64_t n, double exponent) {
  std::vector<double> probabilities;
  double sum = 0;
  for (std::uint64_t rank = 1; rank <= n; ++rank) {
    probabilities.push_back(std::pow(static_cast<double>(rank), -exponent));
    sum += probabilities.back();
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

/// Five standard deviations of a count with this probability.
double tolerance(double probability) {
  return 5 * std::sqrt(kDraws * probability * (1 - probability)) + 1;
}

TEST(Zipf, EveryRankHasItsProbability) {
  for (const std::uint64_t n : {1U, 2U, 3U, 100U, 1000U}) {
    for (const double exponent : {0.5, Zipf::kStandard, 1.5}) {
      const std::vector<double> expected = zipf_probabilities(n, exponent);
      const Zipf zipf(n, exponent);
      Random random(n);
      std::vector<int> counts(n);
      for (int i = 0; i < kDraws; ++i) {
        const std::uint64_t rank = zipf.draw(random);
        ASSERT_GE(rank, 1U);
        ASSERT_LE(rank, n);
        ++counts[rank - 1];
      }
      for (std::uint64_t rank = 0; rank < n; ++rank) {
        EXPECT_NEAR(counts[rank], kDraws * expected[rank], tolerance(expected[rank]))
            << "rank " << rank + 1 << " of " << n << ", exponent " << exponent;
      }
    }
  }
}

// The figure by which people know the distribution: of 100,000 keys, the first takes 8 %.
TEST(Zipf, TheFirstOfManyRanksHasItsShare) {
  constexpr std::uint64_t kMany = 100'000;
  const double expected = zipf_probabilities(kMany, Zipf::kStandard)[0];
  EXPECT_NEAR(expected, 0.0783, 0.001);
  const Zipf zipf(kMany);
  Random random(5);
  int first = 0;
  for (int i = 0; i < kDraws; ++i) first += zipf.draw(random) == 1 ? 1 : 0;
  EXPECT_NEAR(first, kDraws * expected, tolerance(expected));
}

TEST(Scramble, IsAPermutation) {
  for (const std::uint64_t n : {1U, 2U, 3U, 4U, 5U, 1000U, 4096U, 4097U}) {
    const Scramble scramble(n);
    std::vector<bool> seen(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t to = scramble(i);
      ASSERT_LT(to, n);
      EXPECT_FALSE(seen[to]) << i << " of " << n;
      seen[to] = true;
    }
  }
}

TEST(Scramble, PopularKeysAreNoNeighbours) {
  const Scramble scramble(100'000);
  int near = 0;
  for (std::uint64_t i = 0; i + 1 < 100; ++i) {
    const auto one = static_cast<std::int64_t>(scramble(i));
    const auto other = static_cast<std::int64_t>(scramble(i + 1));
    near += std::abs(one - other) < 100 ? 1 : 0;
  }
  EXPECT_LT(near, 5);
}

TEST(KeyChoice, ScrambledKeysKeepTheirProbabilities) {
  constexpr std::uint64_t kKeys = 50;
  const KeyChoice choice(Distribution::zipf, kKeys);
  const Scramble scramble(kKeys);
  const std::vector<double> expected = zipf_probabilities(kKeys, Zipf::kStandard);
  std::vector<int> counts(kKeys);
  Random random(9);
  for (int i = 0; i < kDraws; ++i) ++counts[choice.draw(random)];
  for (std::uint64_t rank = 0; rank < kKeys; ++rank) {
    EXPECT_NEAR(counts[scramble(rank)], kDraws * expected[rank], tolerance(expected[rank]));
  }
}

TEST(KeyChoice, UniformDrawsEveryKeyAlike) {
  const KeyChoice choice(Distribution::uniform, 10);
  std::array<int, 10> counts{};
  Random random(3);
  for (int i = 0; i < kDraws; ++i) ++counts.at(choice.draw(random));
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 10, tolerance(0.1));
}

TEST(KeyChoice, TheNewestKeyIsTheMostPopular) {
  KeyChoice choice(Distribution::latest, 20);
  EXPECT_EQ(choice.insert(), 20U);
  EXPECT_EQ(choice.insert(), 21U);
  const std::vector<double> expected = zipf_probabilities(22, Zipf::kStandard);
  std::vector<int> counts(22);
  Random random(4);
  for (int i = 0; i < kDraws; ++i) ++counts.at(choice.draw(random));
  for (std::size_t age = 0; age < 22; ++age) {
    EXPECT_NEAR(counts[21 - age], kDraws * expected[age], tolerance(expected[age])) << age;
  }
}

TEST(Mix, EveryWorkloadOfYcsbHasItsShares) {
  struct Expected {
    const char* name;
    std::array<double, kKinds> shares;  // read, update, insert, scan, modify
    Distribution distribution;
  };
  const Expected all[] = {
      {"get", {1, 0, 0, 0, 0}, Distribution::uniform},
      {"set", {0, 1, 0, 0, 0}, Distribution::uniform},
      {"ycsb-a", {0.5, 0.5, 0, 0, 0}, Distribution::zipf},
      {"ycsb-b", {0.95, 0.05, 0, 0, 0}, Distribution::zipf},
      {"ycsb-c", {1, 0, 0, 0, 0}, Distribution::zipf},
      {"ycsb-d", {0.95, 0, 0.05, 0, 0}, Distribution::latest},
      {"ycsb-e", {0, 0, 0.05, 0.95, 0}, Distribution::zipf},
      {"ycsb-f", {0.5, 0, 0, 0, 0.5}, Distribution::zipf},
  };
  for (const Expected& expected : all) {
    const auto mix = mix_named(expected.name);
    ASSERT_TRUE(mix) << expected.name;
    EXPECT_EQ(mix->distribution, expected.distribution) << expected.name;
    OperationSource source(*mix, Distribution::uniform, 1000, 1);
    std::array<int, kKinds> counts{};
    for (int i = 0; i < kDraws; ++i) ++counts.at(static_cast<std::size_t>(source.next().kind));
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      const double share = expected.shares.at(kind);
      EXPECT_NEAR(counts.at(kind), kDraws * share, share == 0 || share == 1 ? 0 : tolerance(share))
          << expected.name << " " << kind_name(static_cast<OperationKind>(kind));
    }
  }
  EXPECT_FALSE(mix_named("ycsb-g"));
}

TEST(Mix, InsertsAreNewKeysAndScansStayWithinTheKeys) {
  OperationSource source(*mix_named("ycsb-e"), Distribution::zipf, 200, 2);
  std::uint64_t keys = 200;
  std::uint64_t longest = 0;
  for (int i = 0; i < 20'000; ++i) {
    const LoadOperation operation = source.next();
    if (operation.kind == OperationKind::insert) {
      EXPECT_EQ(operation.key, keys++);
      continue;
    }
    EXPECT_GE(operation.count, 1U);
    EXPECT_LE(operation.key + operation.count, keys);
    longest = std::max(longest, operation.count);
  }
  EXPECT_EQ(longest, kScanMax);
}

TEST(Mix, OneSeedGivesOneSequence) {
  OperationSource one(*mix_named("ycsb-a"), Distribution::zipf, 1000, 7);
  OperationSource same(*mix_named("ycsb-a"), Distribution::zipf, 1000, 7);
  for (int i = 0; i < 1000; ++i) {
    const LoadOperation first = one.next();
    const LoadOperation second = same.next();
    EXPECT_EQ(first.kind, second.kind);
    EXPECT_EQ(first.key, second.key);
  }
}

}  // namespace
}  // namespace leasehold::bench
