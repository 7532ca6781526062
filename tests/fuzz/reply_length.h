// The judge of what a session sends.
#pragma once

#include <cstddef>
#include <string_view>

namespace leasehold::fuzz {

/// The length of the reply at the front of `bytes`; 0 if it is not whole or not well-formed.
std::size_t reply_length(std::string_view bytes);

}  // namespace leasehold::fuzz
