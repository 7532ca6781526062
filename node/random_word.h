// 64 random bits of the system. Not an interface for users.
#pragma once

#include <cstdint>
#include <random>

namespace leasehold::node {

/// No other process has drawn them, as far as anybody can expect.
inline std::uint64_t random_word() {
  // A new one asks the processor what it can do, and a virtual machine lets it wait: some 20 us.
  thread_local std::random_device device;
  const std::uint64_t high = device();
  const std::uint64_t low = device();
  return (high << 32U) | (low & 0xffffffffU);
}

}  // namespace leasehold::node
