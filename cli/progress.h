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
  /// "restoring": what stands before the percentage.
  explicit Progress(std::string what);

  /// Of `size` bytes, `done` are behind us; a size of 0 is not known.
  void at(std::uint64_t done, std::uint64_t size);
  /// The same without numbers: there is nothing to tell but that it goes on.
  void going_on() { at(0, 0); }

 private:
  std::string what_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace leasehold::cli
