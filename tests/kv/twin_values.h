// What the rules say of values, in the shortest way.
#pragma once

#include <leasehold/kv/command.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::kv::testing {

__extension__ typedef __int128 TwinWide;

inline std::optional<std::int64_t> twin_integer(const std::string& text) {
  errno = 0;
  const long long value = std::strtoll(text.c_str(), nullptr, 10);
  if (errno != 0 || std::to_string(value) != text) return std::nullopt;
  return value;
}

/// In 17 digits behind the point; of numbers with few digits and no exponent.
inline std::optional<TwinWide> twin_number(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  TwinWide value = 0;
  int places = -1;
  int digits = 0;
  for (const char c : text) {
    if (c == '.' && places < 0) {
      places = 0;
    } else if (c >= '0' && c <= '9') {
      value = value * 10 + (c - '0');
      ++digits;
      if (places >= 0) ++places;
    } else {
      return std::nullopt;
    }
  }
  if (digits == 0) return std::nullopt;
  for (int i = places < 0 ? 0 : places; i < 17; ++i) value *= 10;
  return negative ? -value : value;
}

inline std::optional<std::string> twin_sum(const std::string& base, std::string_view delta) {
  const auto number = twin_number(base);
  if (!number) return std::nullopt;
  TwinWide sum = *number + *twin_number(delta);
  const bool negative = sum < 0;
  if (negative) sum = -sum;
  std::string digits;
  for (int i = 0; i < 18 || sum > 0; ++i, sum /= 10) {
    if (i == 17) digits.insert(0, ".");
    digits.insert(0, 1, static_cast<char>('0' + static_cast<int>(sum % 10)));
  }
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return negative ? "-" + digits : digits;
}

/// As text() shows the reply to KeyLease, of a key that exists.
inline std::string twin_time(std::uint64_t lease, std::uint64_t stamp, lease::Duration ttl,
                             std::int64_t end_ms) {
  if (lease == 0) return "0";
  std::string out = "[";
  for (const std::int64_t number : {static_cast<std::int64_t>(lease),
                                    static_cast<std::int64_t>(stamp), std::int64_t{ttl.count()}}) {
    out += std::to_string(number) + ",";
  }
  return out + (end_ms == 0 ? "]" : std::to_string(end_ms) + ",]");
}

inline bool twin_bit(const std::string& bytes, std::size_t at) {
  if (at / 8 >= bytes.size()) return false;
  return ((static_cast<unsigned char>(bytes[at / 8]) >> (7 - at % 8)) & 1) == 1;
}

/// Whether the one at `i` is in the part, of so many. As in Redis, an end before the beginning
/// means the first one.
inline bool twin_inside(std::int64_t i, std::int64_t start, std::int64_t end, std::int64_t length) {
  if (start < 0 && end < 0 && start > end) return false;
  const bool behind_start = start < 0 ? i >= length + start : i >= start;
  const bool before_end = end < 0 ? i == 0 || i <= length + end : i <= end;
  return behind_start && before_end;
}

inline std::size_t twin_bits(const std::string& bytes, const BitCount& query) {
  const std::size_t scale = query.bits ? 1 : 8;
  const auto length = static_cast<std::int64_t>(bytes.size() * 8 / scale);
  std::size_t count = 0;
  for (std::size_t at = 0; at < bytes.size() * 8; ++at) {
    const auto i = static_cast<std::int64_t>(at / scale);
    if (twin_inside(i, query.start, query.end, length) && twin_bit(bytes, at)) ++count;
  }
  return count;
}

/// The table as a whole, and the way back through it. With the runs as text() shows them.
inline std::string twin_common(const std::string& a, const std::string& b, const Lcs& query) {
  std::vector<std::vector<int>> table(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1
                                         : std::max(table[i - 1][j], table[i][j - 1]);
    }
  }
  const std::string length = std::to_string(table.back().back());
  if (query.wanted == LcsWanted::length) return length;
  std::string common;
  std::string runs;
  std::size_t run = 0;
  for (std::size_t i = a.size(), j = b.size(); i > 0 && j > 0;) {
    const bool same = a[i - 1] == b[j - 1];
    if (same) {
      common.insert(0, 1, a[i - 1]);
      ++run;
      --i;
      --j;
    }
    if (run > 0 && (!same || i == 0 || j == 0)) {
      const auto ends = [run](std::size_t first) {
        return "[" + std::to_string(first) + "," + std::to_string(first + run - 1) + ",],";
      };
      if (run >= query.least) {
        runs += "[" + ends(i) + ends(j) + (query.lengths ? std::to_string(run) + "," : "") + "],";
      }
      run = 0;
    }
    if (!same) table[i - 1][j] > table[i][j - 1] ? --i : --j;
  }
  if (query.wanted == LcsWanted::text) return "\"" + common + "\"";
  return "[[" + runs + "]," + length + ",]";
}

inline std::string twin_part(const std::string& bytes, const GetRange& range) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (twin_inside(static_cast<std::int64_t>(i), range.start, range.end,
                    static_cast<std::int64_t>(bytes.size()))) {
      out.push_back(bytes[i]);
    }
  }
  return out;
}

}  // namespace leasehold::kv::testing
