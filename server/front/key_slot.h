// Slots of keys, as Redis Cluster has them.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold::server {

inline constexpr std::uint32_t kSlots = 16384;

/// Of the part in the first braces, if there is one and it is not empty: keys with the same such
/// part are in one slot.
std::uint32_t slot_of(std::string_view key);

}  // namespace leasehold::server
