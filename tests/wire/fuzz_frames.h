// One input of the fuzzer, as a function: libFuzzer's program and a test with random inputs share
// it.
#pragma once

#include <string_view>

namespace leasehold::wire {

/// Takes `input` as bytes of a peer, in one of several ways that its first byte chooses. Stops the
/// process when something that was accepted breaks an invariant or does not survive a round trip.
void fuzz_frames(std::string_view input);

}  // namespace leasehold::wire
