// One input of the fuzzer, as a function: libFuzzer's program and a test with random inputs share
// it.
#pragma once

#include <string_view>

namespace leasehold::storage {

/// Takes `input` as bytes of a log's folder, in one of several ways that its first byte chooses.
/// Stops the process when something that was accepted breaks an invariant.
void fuzz_segment(std::string_view input);

}  // namespace leasehold::storage
