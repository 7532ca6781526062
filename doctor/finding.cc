#include <leasehold/doctor/make_finding.h>

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstddef>

namespace leasehold::doctor {

const char* level_name(Level level) {
  switch (level) {
    case Level::ok: return "ok";
    case Level::skipped: return "skipped";
    case Level::warning: return "warning";
    case Level::error: return "error";
  }
  return "";
}

std::string short_text(lease::Duration duration) {
  const auto ns = static_cast<double>(duration.count());
  if (ns < 1e6) return fmt::format("{:.3g} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.4g} ms", ns / 1e6);
  return fmt::format("{:.4g} s", ns / 1e9);
}

std::string size_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, kUnits[unit]);
}

lease::Duration rounded_up(lease::Duration duration) {
  for (lease::Duration power = std::chrono::milliseconds(1);; power *= 10) {
    for (const int times : {1, 2, 5}) {
      if (power * times >= duration) return power * times;
    }
  }
}

}  // namespace leasehold::doctor
