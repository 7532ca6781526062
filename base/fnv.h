// A small hash whose values are the same everywhere and forever. Not against those who choose the
// bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold {

/// FNV-1a with 64 bits (Fowler, Noll, Vo).
class Fnv {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * kPrime;
  }
  std::uint64_t value() const { return hash_; }

 private:
  static constexpr std::uint64_t kPrime = 0x100000001b3U;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace leasehold
