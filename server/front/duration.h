// Durations as people write them.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/instant.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::server {

/// Strict: a decimal number and one of the units ns, us, ms, s, m, without a space: "250ms",
/// "1.5s". Errors: invalid_argument.
Result<lease::Duration> parse_duration(std::string_view text);
/// A duration in the largest unit that shows it without a fraction: "1500ms".
std::string format_duration(lease::Duration duration);
/// "12" or "12.345" times `scale`, exactly. None: no such number, too precise, or too large.
std::optional<std::int64_t> parse_scaled(std::string_view text, std::int64_t scale);

}  // namespace leasehold::server
