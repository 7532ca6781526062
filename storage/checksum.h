// CRC32C (Castagnoli), as RocksDB's log files carry it.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold::storage {

/// The checksum of `bytes`; with `previous`, of what `previous` stands for followed by `bytes`.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t previous = 0);

}  // namespace leasehold::storage
