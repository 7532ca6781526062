// Which key the next operation has: uniform, by Zipf's law, or among the newest.
#pragma once

#include <leasehold/base/random.h>

#include <cstdint>
#include <string_view>

namespace leasehold::bench {

/// Uniform in [0, 1).
double unit_draw(Random& random);

/// Ranks from 1 to n, each with a probability in proportion to rank^-s. Exact, without tables:
/// rejection-inversion (Hörmann and Derflinger, 1996), which draws once or twice.
class Zipf {
 public:
  /// The exponent of YCSB.
  static constexpr double kStandard = 0.99;

  /// `n` above 0, `exponent` above 0 and not 1.
  explicit Zipf(std::uint64_t n, double exponent = kStandard);

  std::uint64_t draw(Random& random) const;

 private:
  double area(double x) const;
  double area_inverse(double area) const;
  double height(double x) const;

  double exponent_;
  double n_;
  double first_area_;
  double last_area_;
  double sure_;  ///< within this distance of its rank a draw is always taken
};

/// A fixed order of 0 to n - 1 that looks random, so that popular keys are not neighbours: a
/// permutation, so each keeps its own probability.
class Scramble {
 public:
  explicit Scramble(std::uint64_t n);

  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t n_;
  unsigned half_bits_;
};

enum class Distribution : std::uint8_t {
  uniform,
  zipf,    ///< scrambled
  latest,  ///< Zipf's law over the age: the newest key is the most popular
};

/// Draws existing keys, of which there are `keys` at first.
class KeyChoice {
 public:
  KeyChoice(Distribution distribution, std::uint64_t keys);

  std::uint64_t draw(Random& random) const;
  /// The number of a key that nobody has written yet. Only `latest` draws it from here on.
  std::uint64_t insert();
  std::uint64_t keys() const { return keys_; }

 private:
  Distribution distribution_;
  std::uint64_t first_keys_;
  std::uint64_t keys_;
  Zipf zipf_;
  Scramble scramble_;
};

}  // namespace leasehold::bench
