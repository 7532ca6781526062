// Every build runs each fuzzer a little: on its seeds and their neighbours, on earlier findings,
// and on random inputs.
#include <leasehold/base/random.h>
#include <leasehold/tests/fuzz/fuzz.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace leasehold::fuzz {
namespace {

constexpr int kRounds = LEASEHOLD_FUZZ_ROUNDS;

std::vector<std::string> files_of(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> out;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return out;
}

std::vector<std::string> seeds() {
  return files_of(LEASEHOLD_FUZZ_SEEDS);
}

char any_byte(Random& random) {
  return static_cast<char>(random.below(256));
}

TEST(Fuzz, TheSeeds) {
  const std::vector<std::string> all = seeds();
  EXPECT_GE(all.size(), 8U) << LEASEHOLD_FUZZ_SEEDS;
  for (const std::string& seed : all) {
    take(seed);
    EXPECT_FALSE(seed.empty());
  }
}

TEST(Fuzz, WhatWasFoundBefore) {
  const std::vector<std::string> all = files_of(LEASEHOLD_FUZZ_CORPUS);
  EXPECT_GE(all.size(), 50U) << LEASEHOLD_FUZZ_CORPUS;
  for (const std::string& input : all) take(input);
}

TEST(Fuzz, WhatStandsBesideTheSeeds) {
  const std::vector<std::string> all = seeds();
  Random random(51);
  for (int round = 0; round < kRounds; ++round) {
    std::string input = all[random.below(all.size())];
    for (std::uint64_t changes = 1 + random.below(3); changes > 0 && !input.empty(); --changes) {
      const std::size_t at = random.below(input.size());
      const std::string& other = all[random.below(all.size())];
      switch (random.below(5)) {
        case 0: input[at] = any_byte(random); break;
        case 1: input[at] = static_cast<char>(input[at] ^ (1 << random.below(8))); break;
        case 2: input.erase(at, 1 + random.below(8)); break;
        case 3: input.insert(at, random.below(8) + 1, any_byte(random)); break;
        default:
          input.replace(at, std::string::npos, other, std::min(at, other.size()),
                        std::string::npos);
      }
    }
    take(input);
  }
}

TEST(Fuzz, RandomInputs) {
  Random random(52);
  for (int round = 0; round < kRounds; ++round) {
    std::string input(random.below(300), '\0');
    const bool sparse = random.chance(1, 2);
    for (char& c : input) {
      if (!sparse || random.chance(1, 3)) c = any_byte(random);
    }
    take(input);
  }
}

}  // namespace
}  // namespace leasehold::fuzz
