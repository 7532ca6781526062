// The bytes of commands, as tests compare them.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/tests/base/hex.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::kv::testing {

using leasehold::testing::hex;

inline std::string encoded_text(const Command& command) {
  const auto bytes = encode_command(command);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return std::string(bytes.value().view());
}

}  // namespace leasehold::kv::testing
