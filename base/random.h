// A portable random generator: one seed gives one sequence under every compiler and library.
//
// The standard distributions differ between libraries, so they are not used anywhere that a seed
// has to reproduce. Never draw twice in one expression: the order of evaluation is the compiler's
// choice.
#pragma once

#include <leasehold/base/assert.h>

#include <cstdint>

namespace leasehold {

/// xoshiro256** (Blackman and Vigna, 2018), seeded through splitmix64. Not for secrets.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (auto& word : state_) word = split_mix(seed);
  }

  /// The next 64 bits.
  std::uint64_t next() {
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  /// Uniform in [0, bound). `bound` is above 0. Unbiased: values in the incomplete last part of the
  /// range are drawn again.
  std::uint64_t below(std::uint64_t bound) {
    LEASEHOLD_ASSERT(bound > 0);
    for (;;) {
      const std::uint64_t draw = next();
      // That part is shorter than `bound`, so its length is rarely needed.
      if (draw >= bound || draw >= (0 - bound) % bound) return draw % bound;
    }
  }

  /// Uniform in [low, high). `low` is below `high`.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    LEASEHOLD_ASSERT(low < high);
    const auto width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + below(width));
  }

  /// True in `numerator` of `denominator` cases.
  bool chance(std::uint64_t numerator, std::uint64_t denominator) {
    return below(denominator) < numerator;
  }

  /// True in `ppm` of a million cases.
  bool chance_ppm(std::uint64_t ppm) { return chance(ppm, 1'000'000); }

 private:
  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  static std::uint64_t split_mix(std::uint64_t& seed) {
    seed += 0x9e3779b97f4a7c15U;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  std::uint64_t state_[4];
};

}  // namespace leasehold
