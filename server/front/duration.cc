#include <leasehold/server/front/duration.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace leasehold::server {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
/// Descending. A minute is the largest, because no lease is longer than an hour.
constexpr std::array<Unit, 5> kUnits = {
    {{"m", 60'000'000'000}, {"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::optional<std::int64_t> parse_scaled(std::string_view text, std::int64_t scale) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  std::string_view fraction;
  if (point != std::string_view::npos) {
    fraction = text.substr(point + 1);
    if (!all_digits(fraction)) return std::nullopt;
  }
  if (!all_digits(whole)) return std::nullopt;
  std::int64_t value = 0;
  const auto read = std::from_chars(whole.data(), whole.data() + whole.size(), value);
  if (read.ec != std::errc()) return std::nullopt;
  if (__builtin_mul_overflow(value, scale, &value)) return std::nullopt;
  for (const char digit : fraction) {
    if (scale % 10 != 0 && digit != '0') return std::nullopt;
    scale /= 10;
    if (__builtin_add_overflow(value, (digit - '0') * scale, &value)) return std::nullopt;
  }
  return value;
}

Result<lease::Duration> parse_duration(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end != std::string_view::npos && end > 0) {
    for (const Unit& unit : kUnits) {
      if (text.substr(end) != unit.name) continue;
      if (const auto value = parse_scaled(text.substr(0, end), unit.nanoseconds)) {
        return lease::Duration(*value);
      }
    }
  }
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("'{}' is not a duration: write a number and one of ns, us, ms, s, m, as in 250ms",
                  text)};
}

std::string format_duration(lease::Duration duration) {
  for (const Unit& unit : kUnits) {
    if (duration.count() % unit.nanoseconds == 0 && (duration.count() != 0 || unit.name == "s")) {
      return fmt::format("{}{}", duration.count() / unit.nanoseconds, unit.name);
    }
  }
  return fmt::format("{}ns", duration.count());
}

}  // namespace leasehold::server
