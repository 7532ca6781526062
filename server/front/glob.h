// The patterns of KEYS, SCAN, CONFIG GET and COMMAND LIST.
#pragma once

#include <cstddef>
#include <string_view>

namespace leasehold::server {

/// Longest pattern that a client may send.
inline constexpr std::size_t kPatternBytesMax = 1024;
/// Steps that the patterns of one command may take, so that no pattern delays the thread.
inline constexpr std::size_t kPatternStepsMax = std::size_t{20} << 20U;

/// `*` any bytes, `?` one byte, `[abc]`, `[a-z]`, `[^x]` one of a set, `\x` the byte x itself.
/// Takes its steps off `budget`; when that is 0 afterwards the answer means nothing.
bool glob_matches(std::string_view pattern, std::string_view text, std::size_t& budget);

}  // namespace leasehold::server
