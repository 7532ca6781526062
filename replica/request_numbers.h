// The first of the numbers by which a process names the commands that it forwards.
#pragma once

#include <leasehold/raft/types.h>

#include <cstdint>

namespace leasehold::replica {

/// splitmix64's last steps: every bit of the sum reaches every bit of the result.
constexpr std::uint64_t mix_bits(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

/// Two processes share a range of numbers only with a chance of 2^-30: neither two incarnations of
/// a directory, nor two directories that are members under one id one after the other, whose
/// incarnations both begin at 1. So the command of one is never mistaken for the other's: neither
/// in the log, which has commands of both, nor by a leader that has seen those of both.
constexpr std::uint64_t first_request(const raft::Uuid& uuid, raft::Incarnation incarnation) {
  const std::uint64_t mixed =
      mix_bits(mix_bits(mix_bits(uuid.high) ^ uuid.low) ^ incarnation.value());
  // Above 0, and far from the end.
  return 1 + (mixed >> 2U);
}

}  // namespace leasehold::replica
