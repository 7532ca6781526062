// Small helpers for the words of commands.
#pragma once

#include <leasehold/base/result.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace leasehold::server {

/// Longest part of a client's word that an error message repeats.
inline constexpr std::size_t kQuotedBytesMax = 128;

inline char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Cut to kQuotedBytesMax.
inline std::string lowered(std::string_view text) {
  std::string out(text.substr(0, kQuotedBytesMax));
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

/// In single quotes, cut to kQuotedBytesMax.
inline std::string quoted(std::string_view text) {
  return fmt::format("'{}'", text.substr(0, kQuotedBytesMax));
}

/// The error of a word, a flag or a setting that is not possible.
inline Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

/// Case is ignored; `lower_text` is in lower case.
inline bool equals_ignoring_case(std::string_view text, std::string_view lower_text) {
  return text.size() == lower_text.size() &&
         std::equal(text.begin(), text.end(), lower_text.begin(),
                    [](char a, char b) { return lower(a) == b; });
}

/// A decimal 64-bit integer and nothing else: no blanks, no plus.
inline std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

inline constexpr const char* kNotAnInteger = "ERR value is not an integer or out of range";

}  // namespace leasehold::server
