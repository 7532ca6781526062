#include <leasehold/story/span.h>

#include <cstddef>
#include <cstdint>

namespace leasehold::story {
namespace {

constexpr lease::Duration kLongest = std::chrono::hours(1);

/// `digits` with a point in it or not, in units of `unit` nanoseconds.
std::optional<lease::Duration> scaled(const std::string& digits, std::int64_t unit) {
  std::int64_t ns = 0;
  std::int64_t scale = unit;
  bool behind_point = false;
  bool any = false;
  for (const char c : digits) {
    if (c == '.' && any && !behind_point) {
      behind_point = true;
      any = false;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    any = true;
    if (behind_point) {
      if (scale % 10 != 0) return std::nullopt;
      scale /= 10;
      ns += (c - '0') * scale;
    } else {
      ns = ns * 10 + (c - '0') * unit;
      if (ns > kLongest.count()) return std::nullopt;
    }
  }
  if (!any) return std::nullopt;
  return lease::Duration(ns);
}

}  // namespace

std::optional<lease::Duration> parse_span(const std::string& text) {
  const struct {
    const char* name;
    std::int64_t ns;
  } kUnits[] = {{"ms", 1'000'000}, {"us", 1'000}, {"s", 1'000'000'000}};
  for (const auto& unit : kUnits) {
    const std::string name = unit.name;
    if (text.size() <= name.size()) continue;
    if (text.compare(text.size() - name.size(), name.size(), name) != 0) continue;
    return scaled(text.substr(0, text.size() - name.size()), unit.ns);
  }
  return std::nullopt;
}

}  // namespace leasehold::story
