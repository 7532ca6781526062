// CRC32C (Castagnoli): the checksum of a frame.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold::wire {

/// The checksum of `bytes`, or, with the checksum of what stands before as `previous`, of both
/// together: crc32c(b, crc32c(a)) == crc32c(a + b). Uses the processor's instruction where there is
/// one.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t previous = 0);

/// The same with tables only, for processors without the instruction; tests compare the two.
std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t previous = 0);

}  // namespace leasehold::wire
