// Histories as files: one JSON object a line, one operation an object (docs/formats/history.md).
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/check/history.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace leasehold::check {

/// Takes the lines of one file, in order.
class HistoryReader {
 public:
  /// Newest version of the format, and the only one.
  static constexpr std::uint64_t kVersion = 1;
  /// Longest line, in bytes: what is longer is no operation.
  static constexpr std::size_t kLineBytesMax = 16U << 20U;

  /// `history` is filled, and outlives the reader.
  explicit HistoryReader(History& history) : history_(history) {}

  /// `line` without its end. Reads whose answer never came say nothing and are left out; empty
  /// lines are passed over. The error names the line and says what is allowed there.
  Result<void> take(std::string_view line);
  /// Lines that were taken.
  std::uint64_t lines() const { return line_; }

 private:
  History& history_;
  std::uint64_t line_ = 0;
  std::string unescaped_[3];
};

/// The line of `operation` in a file, without its end.
std::string line_of(const Operation& operation, const History& history);

}  // namespace leasehold::check
