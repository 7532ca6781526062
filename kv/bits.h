// The bits of a value: those of a byte count from its highest one. Not for other rooms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leasehold::kv {

/// False behind the end.
bool bit_of(std::string_view bytes, std::uint64_t at);
/// How many bits are set from `first` to `last`, both included; `first` may be above `last`: none.
/// Both are bits of `bytes`.
std::uint64_t bits_set(std::string_view bytes, std::uint64_t first, std::uint64_t last);

}  // namespace leasehold::kv
