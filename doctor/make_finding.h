// How findings are made, for the judges.
#pragma once

#include <leasehold/doctor/finding.h>
#include <leasehold/lease/instant.h>

#include <cstdint>
#include <string>
#include <utility>

namespace leasehold::doctor {

inline Finding fine(const char* check, std::string found) {
  return {check, Level::ok, std::move(found), ""};
}
inline Finding skipped(const char* check, std::string why) {
  return {check, Level::skipped, std::move(why), ""};
}
inline Finding warning(const char* check, std::string found, std::string cure) {
  return {check, Level::warning, std::move(found), std::move(cure)};
}
inline Finding fault(const char* check, std::string found, std::string cure) {
  return {check, Level::error, std::move(found), std::move(cure)};
}

/// "1.25 ms", "3 us", "12 s": for people.
std::string short_text(lease::Duration duration);
/// "64.0 MiB".
std::string size_text(std::uint64_t bytes);
/// Rounded up to a number that people would choose: 1, 2 or 5 times a power of ten of milliseconds.
lease::Duration rounded_up(lease::Duration duration);

}  // namespace leasehold::doctor
