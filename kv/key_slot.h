// Slots of keys, as Redis Cluster has them.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold::kv {

inline constexpr std::uint32_t kSlots = 16384;

/// Of so many groups, each with one range of slots, the one that has the slot at first: 0 is the
/// first one. `slot` is below kSlots, `groups` is from 1 to kSlots.
constexpr std::uint32_t first_group_of(std::uint32_t slot, std::uint32_t groups) {
  return static_cast<std::uint32_t>(std::uint64_t{slot} * groups / kSlots);
}

/// Of the part in the first braces, if there is one and it is not empty: keys with the same such
/// part are in one slot.
std::uint32_t slot_of(std::string_view key);

}  // namespace leasehold::kv
