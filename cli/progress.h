// Progress of long work, for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::cli {

/// "12.3 MiB".
std::string bytes_text(std::uint64_t bytes);

/// Lines on stderr, one a second at most, and none before the work has taken a second. One thread.
class Progress {
 public:
  /// `what` comes before the percentage, as in "restoring".
  explicit Progress(std::string what);

  /// `done` of `size` bytes are finished; a size of 0 is not known.
  void at(std::uint64_t done, std::uint64_t size);
  /// The same without numbers: shows only that the work goes on.
  void going_on() { at(0, 0); }

 private:
  std::string what_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace leasehold::cli
