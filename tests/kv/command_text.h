// The bytes of commands, as tests compare them.
#pragma once

#include <leasehold/kv/command.h>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace leasehold::kv::testing {

inline std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto value = static_cast<unsigned char>(c);
    out.push_back("0123456789abcdef"[value >> 4U]);
    out.push_back("0123456789abcdef"[value & 15U]);
  }
  return out;
}

inline std::string encoded_text(const Command& command) {
  const auto bytes = encode_command(command);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return std::string(bytes.value().view());
}

}  // namespace leasehold::kv::testing
