// For the demo: how long operations of one kind take, as people read it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace leasehold::cli {

/// Latencies of one kind of operation.
class Latencies {
 public:
  void add(double microseconds) { all_.push_back(microseconds); }
  template <class Operation>
  void measure(Operation&& operation) {
    const auto start = std::chrono::steady_clock::now();
    operation();
    const auto took = std::chrono::steady_clock::now() - start;
    add(std::chrono::duration<double, std::micro>(took).count());
  }
  double percentile(double fraction) {
    std::sort(all_.begin(), all_.end());
    return all_.at(static_cast<std::size_t>(fraction * static_cast<double>(all_.size() - 1)));
  }
  /// "p50 1.2 ms, p99 3.4 ms".
  std::string text() {
    return fmt::format("p50 {}, p99 {}", format(percentile(0.5)), format(percentile(0.99)));
  }
  /// "median 1.2 ms, longest 3.4 ms".
  std::string spread() {
    return fmt::format("median {}, longest {}", format(percentile(0.5)), format(percentile(1)));
  }

 private:
  static std::string format(double microseconds) {
    if (microseconds < 1000) return fmt::format("{:.0f} us", microseconds);
    return fmt::format("{:.1f} ms", microseconds / 1000);
  }
  std::vector<double> all_;
};

}  // namespace leasehold::cli
