// The fuzzer's function with random inputs, so that every build runs it a little.
#include <leasehold/base/random.h>
#include <leasehold/tests/storage/fuzz_segment.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace leasehold::storage {
namespace {

TEST(SegmentFuzz, TheSeeds) {
  std::size_t seeds = 0;
  for (const auto& file : std::filesystem::directory_iterator(LEASEHOLD_FUZZ_SEEDS)) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    fuzz_segment(bytes);
    // And what stands beside each of them.
    for (std::size_t at = 1; at < bytes.size(); ++at) {
      for (int value = 0; value < 256; value += 15) {
        std::string other = bytes;
        other[at] = static_cast<char>(value);
        fuzz_segment(other);
      }
    }
    ++seeds;
  }
  EXPECT_GE(seeds, 10U);
}

TEST(SegmentFuzz, RandomInputs) {
  Random random(51);
  for (int round = 0; round < 20000; ++round) {
    std::string input(random.below(600), '\0');
    const bool sparse = random.chance(1, 2);
    for (char& c : input) {
      if (!sparse || random.chance(1, 3)) c = static_cast<char>(random.below(256));
    }
    if (!input.empty() && random.chance(1, 2)) input[0] = random.chance(1, 2) ? 3 : 7;
    fuzz_segment(input);
  }
}

}  // namespace
}  // namespace leasehold::storage
