// Inputs that a fuzzer's mutator makes of nothing: so that every build runs it a little.
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/mutator.h>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace leasehold::fuzz {
namespace {

TEST(Fuzz, WhatItsMutatorMakes) {
  constexpr int kInputs = 2000;
  Random random(53);
  std::set<std::string> inputs;
  for (int i = 0; i < kInputs; ++i) {
    std::string input;
    for (std::uint64_t changes = 1 + random.below(12); changes > 0; --changes) {
      input = changed(input, random);
    }
    take(input);
    inputs.insert(std::move(input));
  }
  EXPECT_GT(inputs.size(), kInputs / 2U);
}

}  // namespace
}  // namespace leasehold::fuzz
