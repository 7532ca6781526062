// Sums of decimal fractions, exact and alike on every machine. Not for other rooms.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::kv {

/// A number is at most this long, and smaller than 10 to the power of kDecimalDigitsMax.
inline constexpr std::size_t kDecimalBytesMax = 5119;
inline constexpr std::size_t kDecimalDigitsMax = 4932;
/// Digits behind the point of a sum. Pinned: a replica that rounded elsewhere would differ.
inline constexpr std::size_t kDecimalPlaces = 17;

/// Whether the text is a number: digits with a point or without, a sign in front or none, an
/// exponent behind or none; no blanks.
bool is_decimal(std::string_view text);

/// The sum of two numbers, rounded to kDecimalPlaces digits behind the point, halves to the even
/// digit. Without an exponent, without zeros at the end of its fraction, and zero has no sign.
/// None: it has more than kDecimalDigitsMax digits before the point. Both texts are numbers.
std::optional<std::string> add_decimals(std::string_view a, std::string_view b);

}  // namespace leasehold::kv
