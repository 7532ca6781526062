// The longest common subsequence of two values. Not for other rooms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::kv {

/// A run of bytes that is in both: the first and the last one in each.
struct CommonRun {
  std::size_t a_first = 0, a_last = 0;
  std::size_t b_first = 0, b_last = 0;

  std::size_t length() const { return a_last - a_first + 1; }
};

struct CommonPart {
  std::uint64_t length = 0;
  std::string text;             ///< if it was wanted
  std::vector<CommonRun> runs;  ///< with the text; the last one of the values first
};

/// Steps that common_part() takes.
inline std::uint64_t common_part_steps(std::string_view a, std::string_view b) {
  return 1 + std::uint64_t{a.size()} * b.size();
}

/// Of several longest ones, and of several ways to find it in both values, the one that Redis
/// answers. Memory: four bytes for each byte of `b`; with the text an eighth of a byte for each
/// step.
CommonPart common_part(std::string_view a, std::string_view b, bool with_text);

}  // namespace leasehold::kv
