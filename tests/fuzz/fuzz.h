// A fuzzer is one function of one input, in NAME.cc. libFuzzer's program (main.cc) and a test that
// every build runs (seeds_test.cc) share it.
#pragma once

#include <string_view>

namespace leasehold::fuzz {

/// Takes `input` as bytes from outside or from a disk; in most fuzzers the first byte chooses
/// which. Stops the process when something that was accepted breaks an invariant, or a refusal says
/// nothing.
void take(std::string_view input);

}  // namespace leasehold::fuzz
