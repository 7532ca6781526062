#include <leasehold/cli/progress.h>

#include <fmt/format.h>

#include <array>
#include <iostream>
#include <utility>

namespace leasehold::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kStep{1};

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, kUnits[unit]);
}

Progress::Progress(std::string what) : what_(std::move(what)), next_(Clock::now() + kStep) {}

void Progress::at(std::uint64_t done, std::uint64_t size) {
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + kStep;
  std::cerr << what_;
  if (size == 0) {
    std::cerr << " ...";
  } else {
    const double part = 100.0 * static_cast<double>(done) / static_cast<double>(size);
    std::cerr << fmt::format(": {:.0f} % of {}", part, bytes_text(size));
  }
  std::cerr << std::endl;
}

}  // namespace leasehold::cli
