// One input of the fuzzer, as a function: libFuzzer's program and a test with random inputs share
// it.
#pragma once

#include <string_view>

namespace leasehold::server {

/// Takes `input` as bytes of a client: the first one chooses how they arrive (in which pieces, with
/// a lease or without, and when the node answers). Stops the process when the parser judges the
/// pieces otherwise than the whole, or when what the session sends is not well-formed RESP.
void fuzz_client(std::string_view input);

/// The length of the reply at the front of `bytes`; 0 if it is not whole or not well-formed.
std::size_t reply_length(std::string_view bytes);

}  // namespace leasehold::server
