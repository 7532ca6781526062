// The fuzzer's function with random inputs, so that every build runs it a little.
#include <leasehold/base/random.h>
#include <leasehold/tests/storage/fuzz_segment.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::storage {
namespace {

TEST(SegmentFuzz, RandomInputs) {
  Random random(51);
  for (int round = 0; round < 20000; ++round) {
    std::string input(random.below(600), '\0');
    const bool sparse = random.chance(1, 2);
    for (char& c : input) {
      if (!sparse || random.chance(1, 3)) c = static_cast<char>(random.below(256));
    }
    if (!input.empty() && random.chance(1, 2)) input[0] = 3;
    fuzz_segment(input);
  }
}

}  // namespace
}  // namespace leasehold::storage
