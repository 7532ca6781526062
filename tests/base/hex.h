// Bytes as tests compare them.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::testing {

/// "0aff".
inline std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto value = static_cast<unsigned char>(c);
    text.push_back("0123456789abcdef"[value >> 4U]);
    text.push_back("0123456789abcdef"[value & 15U]);
  }
  return text;
}

}  // namespace leasehold::testing
