// A sum over the records of a state, which each change moves from the old record to the new one.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold::kv {

/// A multiset of records as one number of 128 bits: the sum, modulo 2^128, of a hash of each. The
/// order in which records came and went does not matter, and a record that is taken away leaves
/// nothing behind. Made for accidents: who can choose records can also find two states of one sum.
struct StateSum {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  StateSum& operator+=(const StateSum& other) {
    low += other.low;
    high += other.high + (low < other.low ? 1 : 0);
    return *this;
  }
  StateSum& operator-=(const StateSum& other) {
    high -= other.high + (low < other.low ? 1 : 0);
    low -= other.low;
    return *this;
  }
  friend StateSum operator-(StateSum left, const StateSum& right) { return left -= right; }
  friend bool operator==(const StateSum&, const StateSum&) = default;
};

/// Of record_sum() and of what is summed. Sums of two versions cannot be compared.
inline constexpr std::uint64_t kSumVersion = 1;

/// The share of one record. Pinned by kSumVersion.
StateSum record_sum(std::string_view key, std::string_view value);

}  // namespace leasehold::kv
