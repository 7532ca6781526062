// What several files read of the text of a setting.
#pragma once

#include <leasehold/base/result.h>

#include <cstdint>
#include <limits>
#include <string_view>

namespace leasehold::server {

/// Of the number of a node.
inline constexpr std::uint64_t kNodeMax = std::numeric_limits<std::uint32_t>::max();

/// Digits alone. Errors: invalid_argument: anything else, or a number outside.
Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t low, std::uint64_t high);

/// "host:port", with a port from `lowest_port` on. Errors: invalid_argument.
Result<void> check_address(std::string_view text, std::uint64_t lowest_port);

/// "64M": a number, and K, M or G for 1024, 1024 K and 1024 M. Errors: invalid_argument.
Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace leasehold::server
